/** Several prompts of one request, each a generation of its own. */
import type { TokenLogprobs } from "../../engines/engine.ts";
import { type GatewayError, InternalError } from "../../errors.ts";
import type { GenerationEvent, GenerationSink } from "../../generation/events.ts";
import type { RunningGeneration } from "../../generation/run.ts";
import type { PreparedCall } from "../shared/call.ts";

/** Prompts of one request that are with engines at a time. */
const PARALLEL = 32;

/** What came of one prompt before its output. */
export interface PromptCounts {
  readonly promptTokens: number;
  readonly cachedTokens: number;
}

/** Takes what all prompts give. */
export interface BatchSink {
  /** The engine has begun with a prompt. */
  begunWith?(prompt: number, counts: PromptCounts): void;
  /** Logprobs of a prompt's tokens, before its first output. */
  logprobsOf?(prompt: number, logprobs: TokenLogprobs): void;
  /** Choices are numbered through, prompt by prompt. `usage` comes once, of all prompts, or `error` once, of the first that failed. */
  emit(event: GenerationEvent): void;
  flush(): void;
}

/** A request's prompts, ready to run. */
export interface Batch {
  run(sink: BatchSink, signal: AbortSignal): RunningGeneration;
}

/**
 * Runs calls of `choices` choices each, several at a time. The first failure ends the others at their engines, as does a client that
 * leaves; what has not begun is not begun then.
 */
export function batchOf(calls: readonly Pick<PreparedCall, "run">[], choices: number): Batch {
  const [only] = calls;
  if (calls.length === 1 && only !== undefined) return { run: (sink, signal) => only.run(singleSink(sink), signal) };
  return { run: (sink, signal) => runAll(calls, choices, sink, signal) };
}

function singleSink(sink: BatchSink): GenerationSink {
  return {
    begun: (counts) => sink.begunWith?.(0, counts),
    promptLogprobs: (logprobs) => sink.logprobsOf?.(0, logprobs),
    emit: (event) => sink.emit(event),
    flush: () => sink.flush(),
  };
}

function runAll(
  calls: readonly Pick<PreparedCall, "run">[],
  choices: number,
  sink: BatchSink,
  signal: AbortSignal,
): RunningGeneration {
  const stop = new AbortController();
  const onAbort = () => stop.abort(signal.reason);
  const running = new Set<RunningGeneration>();
  const total = { promptTokens: 0, cachedTokens: 0, completionTokens: 0, reasoningTokens: 0 };
  let next = 0;
  let isPaused = false;
  let failure: GatewayError | undefined;

  function fail(error: GatewayError): void {
    if (failure !== undefined) return;
    failure = error;
    stop.abort(error);
    sink.emit({ type: "error", error });
    sink.flush();
  }

  function sinkOf(prompt: number): GenerationSink {
    const offset = prompt * choices;
    return {
      begun: (counts) => sink.begunWith?.(prompt, counts),
      promptLogprobs: (logprobs) => sink.logprobsOf?.(prompt, logprobs),
      emit(event) {
        if (failure !== undefined) return;
        if (event.type === "error") fail(event.error);
        else if (event.type === "usage") add(total, event);
        else sink.emit(offset === 0 ? event : { ...event, index: event.index + offset });
      },
      flush() {
        if (failure === undefined) sink.flush();
      },
    };
  }

  async function work(): Promise<void> {
    while (next < calls.length && failure === undefined) {
      const prompt = next++;
      const generation = calls[prompt]!.run(sinkOf(prompt), stop.signal);
      running.add(generation);
      if (isPaused) generation.pause();
      await generation.done;
      running.delete(generation);
    }
  }

  async function all(): Promise<void> {
    if (signal.aborted) onAbort();
    else signal.addEventListener("abort", onAbort, { once: true });
    await Promise.all(Array.from({ length: Math.min(PARALLEL, calls.length) }, work));
    signal.removeEventListener("abort", onAbort);
    if (failure !== undefined) return;
    try {
      sink.emit({ type: "usage", ...total });
      sink.flush();
    } catch (cause) {
      fail(new InternalError(cause));
    }
  }

  return {
    pause() {
      isPaused = true;
      for (const generation of running) generation.pause();
    },
    resume() {
      isPaused = false;
      for (const generation of running) generation.resume();
    },
    done: all(),
  };
}

function add(
  total: Record<"promptTokens" | "cachedTokens" | "completionTokens" | "reasoningTokens", number>,
  event: typeof total,
): void {
  total.promptTokens += event.promptTokens;
  total.cachedTokens += event.cachedTokens;
  total.completionTokens += event.completionTokens;
  total.reasoningTokens += event.reasoningTokens;
}
