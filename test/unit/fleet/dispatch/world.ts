/** A fleet of scripted engines for tests of what becomes of a request among them. */
import type { EmbedReply, EngineError, GenerateRequest } from "../../../../src/engines/engine.ts";
import { type Dispatcher, dispatcher } from "../../../../src/fleet/dispatch/dispatcher.ts";
import { type DispatchObserver, UNOBSERVED } from "../../../../src/fleet/dispatch/observer.ts";
import { DEFAULT_POLICY, type DispatchPolicy, type ModelLimits } from "../../../../src/fleet/dispatch/policy.ts";
import type { WorkerEntry } from "../../../../src/fleet/snapshot.ts";
import { FleetView } from "../../../../src/fleet/view.ts";
import { type BreakerRules, FleetBoard, WorkerState } from "../../../../src/threads/fleet-board.ts";
import type { RetryBudget } from "../../../../src/threads/limit-board.ts";
import { FakeClock } from "../../../support/fake-clock.ts";
import { type ScriptedCall, ScriptedEngine } from "../../generation/scripted-engine.ts";
import { MODEL, modelEntry } from "../../server/gateway.ts";

export interface WorldOptions {
  readonly limits?: Partial<ModelLimits>;
  readonly rules?: Partial<DispatchPolicy["rules"]>;
  readonly budget?: RetryBudget;
  readonly breaker?: BreakerRules;
  /** What is special of a worker. */
  readonly workers?: readonly Partial<WorkerEntry>[];
}

interface AskedVector {
  readonly worker: number;
  readonly id: string;
  readonly signal: AbortSignal;
  resolve(): void;
  reject(error: unknown): void;
}

export const REPLY: EmbedReply = { embedding: Float32Array.of(1), promptTokens: 1 };

export function world(count: number, { limits, rules, budget, breaker, workers: special }: WorldOptions = {}) {
  const board = FleetBoard.create(1, breaker);
  const clock = new FakeClock();
  const vectors: AskedVector[] = [];
  const asked: ScriptedCall[] = [];
  const engines = Array.from(
    { length: count },
    (_, worker) =>
      new ScriptedEngine(
        (call) => asked.push(call),
        ({ requestId: id }, signal) => {
          const { promise, resolve, reject } = Promise.withResolvers<EmbedReply>();
          vectors.push({ worker, id, signal, resolve: () => resolve(REPLY), reject });
          return promise;
        },
      ),
  );
  const workers = engines.map((_, i) => {
    const slot = board.claim();
    board.setState(slot, WorkerState.ready);
    return { id: String(i), slot, url: `grpc://engine:${i}`, dialect: "scripted", model: MODEL, ...special?.[i] };
  });
  const told: string[] = [];
  /** Of pairs. */
  const timed: string[] = [];
  const observer: DispatchObserver = {
    ...UNOBSERVED,
    retried: (kind) => told.push(`retried ${kind}`),
    paused: (made, ms) => told.push(`paused ${made} ${Math.round(ms)}`),
    exhausted: (kind) => told.push(`exhausted ${kind}`),
    budgetDenied: () => told.push("denied"),
    hedged: (result) => told.push(`hedge ${result}`),
    pairTook: (part, { id }, seconds) => timed.push(`${id}: ${part} ${seconds}`),
    paired: (mode) => timed.push(mode),
    pairFailed: (how) => timed.push(`${how} failed`),
  };
  const base = DEFAULT_POLICY.limitsOf(MODEL);
  const fleet = new FleetView(board, 0, ({ id }) => engines[Number(id)]!, {
    policy: {
      ...DEFAULT_POLICY,
      rules: { ...DEFAULT_POLICY.rules, jitter: 0, ...rules },
      limitsOf: () => ({ ...base, ...limits }),
    },
    observer,
    clock,
    retryBudget: budget,
  });
  fleet.apply({ workers, expected: count, models: [modelEntry()], tokenizers: [] });
  const dispatch: Dispatcher = dispatcher(fleet, fleet.model(MODEL), "generate");
  const running = () => workers.map(({ slot }) => board.running(slot));

  /** Asks for a generation, and notes what comes of it. */
  function generate(request: Partial<GenerateRequest> = {}) {
    const seen: { chunks: number; finishes: number; ends: (EngineError | undefined)[] } = {
      chunks: 0,
      finishes: 0,
      ends: [],
    };
    const call = dispatch.generate(
      { requestId: "r", tokenIds: new Uint32Array([1]), sampling: {}, stream: true, ...request },
      {
        onChunk: () => seen.chunks++,
        onFinish: () => seen.finishes++,
        onIdle() {},
        onEnd: (error) => seen.ends.push(error),
      },
    );
    return { call, seen };
  }
  /** The worker that a call went to, by its number. */
  const workerOf = (call: ScriptedCall): number => engines.findIndex((engine) => engine.calls.includes(call));
  return { board, clock, workers, engines, fleet, told, timed, asked, vectors, running, generate, dispatch, workerOf };
}
