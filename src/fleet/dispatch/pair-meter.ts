import { runtimeOf } from "../../engines/http/models.ts";
import type { Clock } from "../clock.ts";
import { HTTP_DIALECT, type WorkerEntry } from "../snapshot.ts";
import type { DispatchObserver } from "./observer.ts";

/** How the cache gets from the worker that prefills to the other: through vLLM's connectors, or as the first of them says. */
export type ConnectorMode = "nixl" | "mooncake" | "passthrough";

/** What takes its time of a request that two workers share. */
export type PairPart = "prefill" | "transfer" | "first token";

/** Takes the times of one try at a pair. */
export class PairMeter {
  private readonly startedAt: number;
  private prefilledAt: number | undefined;
  private hasBegun = false;
  private isAlone = false;

  constructor(
    private readonly observer: DispatchObserver,
    private readonly clock: Clock,
    /** The one that prefills. */
    private readonly worker: WorkerEntry,
  ) {
    this.startedAt = clock.now();
  }

  prefilled(): void {
    if (this.prefilledAt !== undefined) return;
    this.prefilledAt = this.clock.now();
    this.took("prefill", this.startedAt);
  }

  /** Nothing of it is handed over: the other prefills anew. */
  alone(): void {
    this.isAlone = true;
  }

  /** The first token came from the one that decodes. */
  begun(): void {
    if (this.hasBegun) return;
    this.hasBegun = true;
    // of halves that work at once it may be known later that the first is done
    if (this.prefilledAt !== undefined && !this.isAlone) this.took("transfer", this.prefilledAt);
    this.took("first token", this.startedAt);
  }

  private took(part: PairPart, since: number): void {
    this.observer.pairTook(part, this.worker, Math.max(0, this.clock.now() - since) / 1000);
  }
}

const CONNECTORS: Readonly<Record<string, ConnectorMode>> = { NixlConnector: "nixl", MooncakeConnector: "mooncake" };

/** `usual`: its connector where nobody tells. */
export const connectorMode = ({ labels }: WorkerEntry, usual = ""): ConnectorMode =>
  CONNECTORS[labels?.["kv_connector"] || usual] ?? "passthrough";

/** By SMG's names. */
export const runtimeNameOf = ({ dialect, facts }: WorkerEntry): string =>
  dialect !== HTTP_DIALECT ? dialect : facts === undefined ? "unknown" : runtimeOf(facts);
