/** Workers behind names of DNS: one for each address, or for each record of a service. */
import { promises as dns } from "node:dns";
import type { DnsName } from "../../config/dns-name.ts";
import { type Clock, sleep } from "../clock.ts";
import type { SourceSink, WorkerSource } from "../worker-source.ts";

/** Lookups, as far as they are needed. Both reject for names that there are not, or that nobody answers for. */
export interface Lookup {
  /** IP addresses of a host. */
  addresses(name: string): Promise<readonly string[]>;
  services(name: string): Promise<readonly { readonly name: string; readonly port: number }[]>;
}

export interface DnsSettings {
  readonly refreshMs: number;
  /** How long the last answer holds for a name that cannot be looked up any more. */
  readonly keepMs: number;
  readonly scheme: "grpc" | "http" | undefined;
}

/** The system's: names may be of the hosts file, or short where there is a search list. */
export const systemLookup: Lookup = {
  async addresses(name) {
    const found = await dns.lookup(name, { all: true });
    // an engine that has addresses of both kinds is one worker, not two
    const kind = found.some(({ family }) => family === 4) ? 4 : 6;
    return found.filter(({ family }) => family === kind).map(({ address }) => address);
  },
  services: (name) => dns.resolveSrv(name),
};

/** Looks the names up again and again. Addresses that have left an answer leave the fleet. */
export function dnsSource(
  names: readonly DnsName[],
  settings: DnsSettings,
  clock: Clock,
  lookup: Lookup = systemLookup,
): WorkerSource {
  return {
    name: "dns",
    start(sink, signal) {
      void follow(
        names.map((name) => new Behind(name, settings, lookup)),
        { settings, clock, sink, signal },
      );
    },
  };
}

interface Around {
  readonly settings: DnsSettings;
  readonly clock: Clock;
  readonly sink: SourceSink;
  readonly signal: AbortSignal;
}

async function follow(names: readonly Behind[], { settings, clock, sink, signal }: Around): Promise<void> {
  for (;;) {
    const problems = await Promise.all(names.map((name) => name.look(clock.now())));
    if (signal.aborted) return;
    const places = new Map(names.flatMap((name) => [...name.places]));
    // not when nothing is known yet: workers of an earlier answer are not there to be kept
    if (names.some(({ isKnown }) => isKnown))
      sink.replace([...places].toSorted().map(([key, scheme]) => ({ key, spec: { url: scheme + key } })));
    for (const problem of problems) if (problem !== undefined) sink.problem(problem);
    await sleep(clock, settings.refreshMs, signal);
  }
}

/** What is behind one name. */
class Behind {
  /** Scheme before an address, such as `grpc://`, by address. */
  places: ReadonlyMap<string, string> = new Map();
  isKnown = false;
  private answeredAt = 0;
  private told = "";

  constructor(
    private readonly name: DnsName,
    private readonly settings: DnsSettings,
    private readonly lookup: Lookup,
  ) {}

  /** Gives a problem that was not told yet. */
  async look(now: number): Promise<Error | undefined> {
    try {
      const found = await this.resolve();
      this.answeredAt = now;
      this.isKnown = true;
      this.told = "";
      this.places = new Map(found.toSorted().map((place) => [place, this.prefix]));
      return undefined;
    } catch (error) {
      const isOver = this.isKnown && now - this.answeredAt >= this.settings.keepMs;
      if (isOver) this.places = new Map();
      const what = isOver ? "its workers are given up" : "its workers stay";
      const message = `${this.name.name} cannot be looked up${this.isKnown ? `, ${what}` : ""}: ${reasonOf(error)}`;
      if (message === this.told) return undefined;
      this.told = message;
      return new Error(message);
    }
  }

  private async resolve(): Promise<string[]> {
    const { lookup, name } = this;
    if (name.kind === "addresses") return (await lookup.addresses(name.name)).map((ip) => placeOf(ip, name.port));
    const services = await lookup.services(name.name);
    const found = await Promise.all(
      services.map(async ({ name: host, port }) => (await lookup.addresses(host)).map((ip) => placeOf(ip, port))),
    );
    return found.flat();
  }

  /** A service's name says what it speaks, unless the settings do. */
  private get prefix(): string {
    const { name, settings } = this;
    const said = name.kind === "services" ? /^_(grpcs?|https?)\./.exec(name.name)?.[1] : undefined;
    const scheme = settings.scheme ?? said;
    return scheme === undefined ? "" : `${scheme}://`;
  }
}

const placeOf = (ip: string, port: number): string => (ip.includes(":") ? `[${ip}]:${port}` : `${ip}:${port}`);

const reasonOf = (error: unknown): string =>
  error instanceof Error && "code" in error ? String(error.code) : String(error);
