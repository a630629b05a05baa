/** A worker in the registry, and what a registry works with. */
import type { RankLoad } from "../engines/admin.ts";
import { WorkerState } from "../threads/fleet-board.ts";
import type { PrefixWriter } from "../threads/prefix-types.ts";
import type { Found } from "./door.ts";
import type { HealthStatus } from "./health.ts";
import type { LifeSettings } from "./life-settings.ts";
import type { Life } from "./lifecycle.ts";
import type { WorkerSpec } from "./worker-spec.ts";

export type WorkerStatus = HealthStatus | "draining";

/** How the board spells it. */
export const BOARD_STATE = {
  pending: WorkerState.starting,
  ready: WorkerState.ready,
  not_ready: WorkerState.unhealthy,
  failed: WorkerState.failed,
  draining: WorkerState.draining,
} as const satisfies Record<WorkerStatus, number>;

/** The rows of the fleet board, as far as control writes them. */
export interface Rows {
  /** Throws RangeError if there is none left. */
  claim(): number;
  free(slot: number): void;
  setState(slot: number, state: (typeof BOARD_STATE)[WorkerStatus]): void;
  /** Requests in flight. */
  running(slot: number): number;
}

/** Models that are loaded; those that nobody serves any more are dropped. */
export interface LoadedModels {
  holds(id: string): boolean;
  drop(id: string): void;
}

/** Numbers of workers and ranks in the prefix index. */
export type Members = Pick<PrefixWriter, "claim" | "release" | "clear">;

/** What a registry tells the rest of the process. */
export interface Outside {
  /** Resolves when every thread knows who is in the fleet. */
  publish(): Promise<void>;
  /** A worker is out: what it has not begun goes elsewhere. */
  lost(slot: number): void;
  /** A worker is ready. */
  ready(found: Found): void;
  /** A worker gets nothing new any more, and its life is over. */
  leaving?(record: WorkerRecord): void;
  /** A worker was removed since it had failed: who told of it may tell of it anew. */
  forgotten(owners: Iterable<string>): void;
}

export interface RegistrySettings {
  readonly drainMs: number;
  /** Workers that have failed are removed. */
  readonly removesFailed: boolean;
  life(spec: WorkerSpec): LifeSettings;
  /** Where workers have numbers in the prefix index. */
  readonly members?: Members | undefined;
  /** Ranks are chosen by themselves. */
  readonly dpAware?: boolean;
  /** Tokens of a block of a worker that does not tell. */
  readonly blockSize?: number;
}

export interface WorkerRecord {
  /** A UUID; a replacement keeps it. */
  readonly id: string;
  /** Row on the board. */
  readonly slot: number;
  /** Where it listens: `host:port`. */
  readonly place: string;
  spec: WorkerSpec;
  /** Sources that tell of it; it leaves with the last of them. */
  readonly owners: Set<string>;
  readonly life: Life;
  found: Found | undefined;
  /** Its numbers in the prefix index, one for each rank that is chosen by itself; set when it registers. */
  members?: readonly number[];
  /** Rows on the board of ranks behind the first, where ranks are chosen by themselves. */
  rankSlots?: readonly number[];
  /** Tokens of a block of its KV cache, as the index cuts them: told by its facts, corrected by its events. */
  blockSize?: number;
  /** Its KV events are received. */
  sendsEvents?: boolean;
  /** What its ranks told of their load last. */
  loads?: readonly RankLoad[];
  /** When it last told of its load without being asked, in milliseconds since 1970. */
  loadToldAt?: number;
  status: WorkerStatus;
}

/** Rows of a worker on the board: its own, and those of the ranks behind the first. */
export const slotsOf = ({ slot, rankSlots = [] }: Pick<WorkerRecord, "slot" | "rankSlots">): readonly number[] => [
  slot,
  ...rankSlots,
];

/** One that has registered. */
export type Answering = WorkerRecord & { readonly found: Found };
