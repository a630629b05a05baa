/** What a serving thread's view of the fleet is made with, and what stands where it is not told. */
import { type Engine, EngineError } from "../engines/engine.ts";
import type { HttpEngine } from "../engines/http/engine.ts";
import type { RetryBudget } from "../threads/limit-board.ts";
import type { Clock } from "./clock.ts";
import type { DispatchObserver } from "./dispatch/observer.ts";
import type { DispatchPolicy } from "./dispatch/policy.ts";
import type { Routing } from "./routing.ts";
import type { WorkerEntry } from "./snapshot.ts";
import type { CacheChecks } from "./view-tokenizers.ts";

export type EngineFactory = (worker: WorkerEntry) => Engine;
export type HttpEngineFactory = (worker: WorkerEntry) => HttpEngine;

export interface ViewOptions {
  readonly createHttpEngine?: HttpEngineFactory | undefined;
  readonly cacheChecks?: CacheChecks | undefined;
  /** What is done when workers fail, and how long anybody waits for them. */
  readonly policy?: DispatchPolicy | undefined;
  /** Told of what becomes of this thread's requests. */
  readonly observer?: DispatchObserver | undefined;
  readonly clock?: Clock | undefined;
  /** By what workers are chosen; absent: as without settings, and by what this thread alone knows. */
  readonly routing?: Routing | undefined;
  /** Absent: as many retries as anybody likes. */
  readonly retryBudget?: RetryBudget | undefined;
  /** A template of a model does not compile: chats that need it are refused. */
  readonly onBrokenTemplate?: ((model: string, problem: string) => void) | undefined;
}

/** Stands where no HTTP workers can be served. */
export const noHttpEngines: HttpEngineFactory = () => {
  throw new EngineError("unimplemented", "HTTP engines are not supported");
};

export const UNLIMITED_RETRIES: RetryBudget = { deposit() {}, retryToken: () => true };
