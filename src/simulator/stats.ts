import type { CoreLoad } from "./core/step.ts";
import { emptyHandoverCounts, type HandoverCounts } from "./handover/handover.ts";
import type { KvPorts } from "./kv/zmq-publisher.ts";
import type { Sampling } from "./sampling.ts";

/** What happened so far. Counts are generation requests unless named otherwise. */
export interface SimulatorCounts {
  received: number;
  /** Refused before they ran. */
  refused: number;
  finished: number;
  /** Ended by the Abort call. */
  abortedByRpc: number;
  /** Ended by a reset stream or a lost connection. */
  abortedByCancel: number;
  /** Ended by a scripted fault. */
  faulted: number;
  /** Ended because the other engine of a pair, or the way to it, failed. */
  failed: number;
  /** Ids named in Abort calls that nobody had open. */
  unknownAborts: number;
  tokensSent: number;
  messagesSent: number;
  promptTokens: number;
  cachedTokens: number;
  /** KV blocks that aborted requests gave back. */
  blocksFreedByAborts: number;
  /** Requests that named a rank, by rank. */
  pinnedByRank: Record<string, number>;
  /** What went from or to other engines of a pair. */
  handover: HandoverCounts;
  /** Calls by method name. */
  calls: Record<string, number>;
}

export function emptyCounts(): SimulatorCounts {
  return {
    received: 0,
    refused: 0,
    finished: 0,
    abortedByRpc: 0,
    abortedByCancel: 0,
    faulted: 0,
    failed: 0,
    unknownAborts: 0,
    tokensSent: 0,
    messagesSent: 0,
    promptTokens: 0,
    cachedTokens: 0,
    blocksFreedByAborts: 0,
    pinnedByRank: {},
    handover: emptyHandoverCounts(),
    calls: {},
  };
}

export type RequestOutcome = "running" | "finished" | "refused" | "aborted" | "cancelled" | "faulted" | "failed";

/** One generation request as the engine saw it. */
export interface RequestRecord {
  readonly requestId: string;
  readonly promptTokens: number;
  readonly promptIds: Uint32Array;
  readonly sampling: Sampling;
  readonly stream: boolean;
  /** Call metadata, without HTTP/2 pseudo headers. */
  readonly metadata: Readonly<Record<string, string>>;
  /** Whatever else the dialect's request carried, by wire name. */
  readonly extra: Readonly<Record<string, unknown>>;
  outcome: RequestOutcome;
  /** Status details of a refusal or fault. */
  details?: string;
  /** Where it ran; absent when it was refused. */
  rank?: number;
  cachedTokens: number;
  tokensSent: number;
}

/** The last requests, oldest first; a bounded list. */
export class RequestLog {
  private readonly records: RequestRecord[] = [];

  constructor(private readonly capacity: number) {}

  add(record: RequestRecord): void {
    this.records.push(record);
    if (this.records.length > this.capacity) this.records.shift();
  }

  list(): readonly RequestRecord[] {
    return this.records;
  }
}

/** Body of `/stats`. */
export interface StatsReport extends SimulatorCounts {
  readonly dialect: string;
  readonly alive: boolean;
  readonly uptimeSeconds: number;
  readonly connections: number;
  /** Open generation calls, whether they wait, run or are held back by a script. */
  readonly open: number;
  /** What it is in a pair, where others fetch from it, and what it offers them now. */
  readonly pairing?: {
    readonly role: string;
    readonly engineId: string;
    readonly bootstrapPort: number | undefined;
    readonly offers: number;
  };
  /** Where KV events are published over ZeroMQ. */
  readonly kvPorts?: KvPorts | undefined;
  /** All ranks together. */
  readonly engine: CoreLoad;
  readonly ranks: readonly CoreLoad[];
}
