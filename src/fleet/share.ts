/**
 * What this gateway guesses of the workers' caches, told to the other gateways of the fleet, and theirs to it. What engines tell by
 * themselves, their caches and loads, reaches each gateway without it.
 */
import { CHAIN_VERSION } from "../routing/chain.ts";
import { BatchWriter, readBatch } from "../shared-state/batch.ts";
import { type ChannelTiming, openChannel } from "../shared-state/redis.ts";
import type { Logger } from "../telemetry/log.ts";
import type { Counted, MetricRegistry } from "../telemetry/registry.ts";
import type { PrefixReader, PrefixWriter } from "../threads/prefix-types.ts";
import type { Clock } from "./clock.ts";
import type { WorkerRecord } from "./worker-record.ts";

export interface Share {
  counted(): Counted;
  close(): void;
}

export interface ShareOptions {
  readonly url: string;
  readonly outbox: Pick<PrefixWriter, "drain">;
  readonly index: Pick<PrefixReader, "promise">;
  readonly workers: () => Iterable<Pick<WorkerRecord, "place" | "members">>;
  readonly clock: Clock;
  readonly log: Logger;
  readonly metrics: MetricRegistry;
  /** Bytes a second that are told, and that are taken from the others together. */
  readonly limits?: { readonly sent: number; readonly received: number };
  readonly timing?: ChannelTiming | undefined;
}

const EVERY_MS = 20;
const LIMITS = { sent: 1 << 20, received: 4 << 20 };

/** Publish and subscribe know no databases: the one in the URL keeps fleets apart that use one server. */
export const channelName = (url: string): string =>
  `collie:routing:${/^\/(\d+)$/.exec(new URL(url).pathname)?.[1] ?? "0"}`;

/** Begins to share. Neither a server that is away nor a slow one is ever waited for. */
export function startShare({
  url,
  outbox,
  index,
  workers,
  clock,
  log,
  metrics,
  limits = LIMITS,
  timing,
}: ShareOptions): Share {
  const names = new WorkerNames(workers);
  const batch = new BatchWriter(CHAIN_VERSION);
  const sending = new Budget(limits.sent, clock);
  const receiving = new Budget(limits.received, clock);
  const [sent, received, dropped] = (["sent", "received", "dropped"] as const).map((direction) =>
    metrics.counter("collie_routing_shared_blocks_total", direction),
  ) as [Count, Count, Count];
  let wasTold = false;

  const channel = openChannel({
    url,
    name: channelName(url),
    received: apply,
    up: () => log.info("what is guessed of the workers' caches is shared with other gateways"),
    down: (reason) =>
      log.warn("nothing is shared with other gateways, as Redis is away; requests go on without it", { reason }),
    ...(timing && { timing }),
  });

  function apply(message: Uint8Array): void {
    const isAllowed = receiving.take(message.length);
    const now = clock.now();
    names.forget();
    const isOurs = readBatch(message, CHAIN_VERSION, (worker, keys, count) => {
      const member = isAllowed ? names.memberOf(worker) : undefined;
      if (member === undefined) return dropped.add(count);
      index.promise({ keys, count, blockSize: 0 }, 0, member, now, true);
      received.add(count);
    });
    if (isOurs || wasTold) return;
    wasTold = true;
    log.warn("another gateway shares in a form that is not known here: is it another release?");
  }

  function tell(): void {
    names.forget();
    outbox.drain((member, keys, count) => {
      const worker = names.nameOf(member);
      if (worker === undefined || !channel.isUp) return dropped.add(count);
      batch.add(worker, keys, count);
      if (batch.isFull) flush();
    });
    flush();
    stop = clock.after(EVERY_MS, tell);
  }

  function flush(): void {
    const { blocks } = batch;
    if (blocks === 0) return;
    const bytes = batch.take();
    const isSent = sending.take(bytes.length) && channel.send(bytes);
    (isSent ? sent : dropped).add(blocks);
  }

  let stop = clock.after(EVERY_MS, tell);
  return {
    counted: () => ({ collie_routing_share_up: [{ labels: [], value: Number(channel.isUp) }] }),
    close() {
      stop();
      channel.close();
    },
  };
}

type Count = ReturnType<MetricRegistry["counter"]>;

/** Names of members that all gateways agree on: hashes of where a worker listens, and of the rank. */
class WorkerNames {
  private readonly known = new Map<string, bigint>();
  private readonly names = new Map<number, bigint>();
  private readonly members = new Map<bigint, number>();
  private isFresh = false;

  constructor(private readonly workers: ShareOptions["workers"]) {}

  /** Who is in the fleet is looked at anew when a name is asked for next. */
  forget(): void {
    this.isFresh = false;
  }

  nameOf(member: number): bigint | undefined {
    this.refresh();
    return this.names.get(member);
  }

  memberOf(name: bigint): number | undefined {
    this.refresh();
    return this.members.get(name);
  }

  private refresh(): void {
    if (this.isFresh) return;
    this.isFresh = true;
    this.names.clear();
    this.members.clear();
    for (const { place, members = [] } of this.workers())
      for (const [rank, member] of members.entries()) {
        const name = this.name(`${place} ${rank}`);
        this.names.set(member, name);
        this.members.set(name, member);
      }
  }

  private name(of: string): bigint {
    let name = this.known.get(of);
    if (name === undefined) {
      if (this.known.size >= 4096) this.known.clear(); // those that have left
      name = new Bun.CryptoHasher("sha256").update(of).digest().readBigUint64LE(0);
      this.known.set(of, name);
    }
    return name;
  }
}

/** So much a second; what was not used can be used within the second after. */
class Budget {
  private left: number;
  private at: number;

  constructor(
    private readonly perSecond: number,
    private readonly clock: Clock,
  ) {
    this.left = perSecond;
    this.at = clock.now();
  }

  take(amount: number): boolean {
    const now = this.clock.now();
    this.left = Math.min(this.perSecond, this.left + (Math.max(0, now - this.at) / 1000) * this.perSecond);
    this.at = now;
    if (amount > this.left) return false;
    this.left -= amount;
    return true;
  }
}
