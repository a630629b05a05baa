import type { GatewayError } from "../../errors.ts";
import type { GenerationEvent, GenerationSink } from "../events.ts";
import { type Generation, type RunningGeneration, runGeneration } from "../run.ts";

/**
 * Runs a generation; where the engine refuses the request before anything has come, `otherwise` in its place: the same prompt under
 * another constraint, or none. `onRefused` is told the engine's reason. A refusal that has another cause meets the second one as well.
 */
export function runWithFallback(
  generation: Generation,
  otherwise: Generation,
  sink: GenerationSink,
  signal: AbortSignal,
  onRefused: (error: GatewayError) => void,
): RunningGeneration {
  let isFresh = true;
  let isPaused = false;
  let refusal: GatewayError | undefined;
  const watched: GenerationSink = {
    begun(counts) {
      isFresh = false;
      sink.begun?.(counts);
    },
    promptLogprobs: (logprobs) => sink.promptLogprobs?.(logprobs),
    emit(event: GenerationEvent) {
      if (isFresh && event.type === "error" && event.error.status === 400) refusal = event.error;
      else sink.emit(event);
      isFresh = false;
    },
    flush() {
      if (refusal === undefined) sink.flush();
    },
  };
  let running = runGeneration(generation, watched, signal);
  const second = async (): Promise<void> => {
    await running.done;
    if (refusal === undefined) return;
    onRefused(refusal);
    running = runGeneration(otherwise, sink, signal);
    if (isPaused) running.pause();
    await running.done;
  };
  return {
    pause() {
      isPaused = true;
      running.pause();
    },
    resume() {
      isPaused = false;
      running.resume();
    },
    done: second(),
  };
}
