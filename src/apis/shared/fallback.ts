/** Models that answer in the place of others, which have no worker, or none that can (`fallbacks` of model cards). */
import { EngineFailureError, type GatewayError, ModelNotFoundError, NoWorkersError } from "../../errors.ts";
import type { GenerationSink } from "../../generation/events.ts";
import type { RunningGeneration } from "../../generation/run.ts";
import type { ServerContext } from "../../server/context.ts";
import type { Asked } from "../../server/request-metrics.ts";
import type { RequestScope } from "../../server/request-scope.ts";
import { trialScope } from "../../server/trial-scope.ts";
import type { PreparedCall } from "./call.ts";

/** Names the model that has answered, where another one might have. */
export const MODEL_HEADER = "x-collie-model";

/** Whether a request that failed so may be another model's: nobody serves this one, or all tries at its workers failed. */
export function isForOthers(error: unknown): boolean {
  if (error instanceof NoWorkersError || error instanceof ModelNotFoundError) return true;
  return error instanceof EngineFailureError && (error.status === 429 || (error.status >= 500 && error.status !== 501));
}

const othersOf = (name: string, { fleet }: ServerContext): readonly string[] =>
  fleet.policy.fallbacksOf(fleet.idOf(name));

/** The same gateway to whoever asks for `name`, but that `other` answers. */
const standIn = (context: ServerContext, name: string, other: string): ServerContext => ({
  ...context,
  fleet: context.fleet.standingIn(name, other),
});

/**
 * Answers a request, and counts it; as long as that fails before anything was sent, with the models that stand in for its own. `answer` goes by
 * the context and the scope that it is given, and by the model's name as the client gave it. Rejects with the first failure.
 */
export async function withFallback<T>(
  asked: Asked,
  context: ServerContext,
  scope: RequestScope,
  answer: (context: ServerContext, scope: RequestScope) => Promise<T>,
): Promise<T> {
  scope.meter = context.metrics?.begin(asked, context.fleet, scope.startedAt);
  try {
    return await firstToAnswer(asked.model, context, scope, answer);
  } catch (error) {
    scope.meter?.failed(scope.signal.aborted ? scope.signal.reason : error);
    throw error;
  }
}

async function firstToAnswer<T>(
  name: string,
  context: ServerContext,
  scope: RequestScope,
  answer: (context: ServerContext, scope: RequestScope) => Promise<T>,
): Promise<T> {
  const others = othersOf(name, context);
  if (others.length === 0) return answer(context, scope);
  let failure: unknown;
  for (const model of [name, ...others]) {
    const trial = trialScope(scope);
    try {
      const answered = await answer(model === name ? context : standIn(context, name, model), trial);
      trial.keep();
      if (model !== name) context.fleet.observer.fellBack(name, model);
      if (answered instanceof Response) answered.headers.set(MODEL_HEADER, encodeURI(context.fleet.idOf(model)));
      return answered;
    } catch (error) {
      trial.finish();
      failure ??= error;
      if (scope.signal.aborted || (model === name && !isForOthers(error))) break;
    }
  }
  throw failure;
}

/**
 * The same for a call whose answer is told as it comes to somebody who has been told of it before. `prepare` makes the call for another
 * model. What the call tells of itself is of the model that answers.
 */
export function callWithFallback(
  call: PreparedCall,
  name: string,
  context: ServerContext,
  prepare: (context: ServerContext) => Promise<PreparedCall>,
): PreparedCall {
  const others = [...othersOf(name, context)];
  if (others.length === 0) return call;
  let current = call;
  let named = name;

  /** The call for the next model that can be asked. */
  async function next(): Promise<PreparedCall | undefined> {
    for (let model = others.shift(); model !== undefined; model = others.shift()) {
      try {
        const prepared = await prepare(standIn(context, name, model));
        named = model;
        return prepared;
      } catch {
        // the failure that led here is the one to tell
      }
    }
    return undefined;
  }

  function run(sink: GenerationSink, signal: AbortSignal): RunningGeneration {
    let isPaused = false;
    let running: RunningGeneration | undefined;
    async function all(): Promise<void> {
      for (;;) {
        const early = earlyFailure(sink);
        running = current.run(early.sink, signal);
        if (isPaused) running.pause();
        await running.done;
        if (early.error === undefined) {
          if (early.hasBegun && named !== name) context.fleet.observer.fellBack(name, named);
          return;
        }
        const other = signal.aborted ? undefined : await next();
        if (other === undefined) {
          sink.emit({ type: "error", error: early.error });
          sink.flush();
          return;
        }
        current = other;
      }
    }
    return {
      pause() {
        isPaused = true;
        running?.pause();
      },
      resume() {
        isPaused = false;
        running?.resume();
      },
      done: all(),
    };
  }

  return {
    get model() {
      return current.model;
    },
    get prompt() {
      return current.prompt;
    },
    get request() {
      return current.request;
    },
    get parsed() {
      return current.parsed;
    },
    get isClamped() {
      return current.isClamped;
    },
    get startsInReasoning() {
      return current.startsInReasoning;
    },
    run,
  };
}

/** A sink in front of another that keeps to itself a failure that comes first, where another model may do better. */
function earlyFailure(sink: GenerationSink): {
  readonly sink: GenerationSink;
  readonly error: GatewayError | undefined;
  /** Something was answered. */
  readonly hasBegun: boolean;
} {
  let isFresh = true;
  let hasBegun = false;
  let error: GatewayError | undefined;
  return {
    get error() {
      return error;
    },
    get hasBegun() {
      return hasBegun;
    },
    sink: {
      begun(counts) {
        hasBegun = true;
        isFresh = false;
        sink.begun?.(counts);
      },
      promptLogprobs: (logprobs) => sink.promptLogprobs?.(logprobs),
      emit(event) {
        if (isFresh && event.type === "error" && isForOthers(event.error)) error = event.error;
        else sink.emit(event);
        isFresh = false;
      },
      flush() {
        if (error === undefined) sink.flush();
      },
    },
  };
}
