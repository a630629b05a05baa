import type {
  ChoiceFinish,
  Engine,
  EngineError,
  GenerateCall,
  GenerateHandler,
  GenerateRequest,
  TokenChunk,
} from "../engines/engine.ts";
import { ClientClosedError, EngineFailureError, GatewayError, gatewayError, InternalError } from "../errors.ts";
import type { Tokenizer } from "../tokenizer/tokenizer.ts";
import { Choice, type OutputOptions } from "./choice.ts";
import { engineFailure } from "./engine-failure.ts";
import type { GenerationEvent, GenerationSink } from "./events.ts";

export interface Generation {
  /** Where it goes: an engine, or whoever chooses one. */
  readonly engine: Pick<Engine, "generate">;
  readonly tokenizer: Tokenizer;
  readonly request: GenerateRequest;
  readonly output: OutputOptions;
  /** Who counts it, asked when it begins. */
  readonly meter?: (() => Meter | undefined) | undefined;
}

/** Told of the beginning of a generation at the engine and of its good end. */
export interface Meter {
  begun(): void;
  ended(promptTokens: number, completionTokens: number): void;
}

/** A generation that runs. */
export interface RunningGeneration {
  /** Stops taking tokens from the engine until `resume`; only this stream is slowed. */
  pause(): void;
  resume(): void;
  /** Resolves when the last event has been emitted. Never rejects: failures are `error` events. */
  readonly done: Promise<void>;
}

const protocolError = (message: string) => new EngineFailureError(502, "engine_protocol_error", message);

/**
 * Sends a prompt to an engine and turns what comes back into events. When `signal` fires the engine is told at once, and an
 * `error` event ends the generation: the signal's reason if it is a GatewayError, else ClientClosedError.
 */
export function runGeneration(generation: Generation, sink: GenerationSink, signal: AbortSignal): RunningGeneration {
  const { engine, tokenizer, request, output } = generation;
  const choices = Array.from({ length: request.sampling.n ?? 1 }, (_, i) => new Choice(i, tokenizer, output));
  let open = choices.length;
  let promptTokens = request.tokenIds.length;
  let cachedTokens = 0;
  let completionTokens = 0;
  let reasoningTokens = 0;
  let begun = false;
  let promptTold = false;
  let over = false;
  let resolve!: () => void;
  const done = new Promise<void>((r) => {
    resolve = r;
  });
  let call: GenerateCall | undefined;
  const meter = generation.meter?.();

  function end(error?: GatewayError): void {
    if (over) return;
    over = true;
    signal.removeEventListener("abort", onAbort);
    if (error === undefined) meter?.ended(promptTokens, completionTokens);
    tellLast(
      error === undefined
        ? { type: "usage", promptTokens, cachedTokens, completionTokens, reasoningTokens }
        : { type: "error", error },
    );
    resolve();
  }

  /** Never throws: a sink that fails at an error as well has nobody left to tell. */
  function tellLast(event: GenerationEvent): void {
    try {
      sink.emit(event);
      sink.flush();
    } catch (cause) {
      if (event.type !== "error") tellLast({ type: "error", error: new InternalError(cause) });
    }
  }

  function onAbort(): void {
    const { reason } = signal;
    end(reason instanceof GatewayError ? reason : new ClientClosedError());
    call?.cancel();
  }

  /** A throw of ours must end this request, not the connection that carries its neighbours. */
  function failed(cause: unknown): void {
    end(gatewayError(cause));
    call?.cancel();
  }

  /** Takes over the engine's counts. It may count more than the ids it got (media), hardly less, and never nonsense. */
  function count(told: TokenChunk | ChoiceFinish): void {
    if (told.promptTokens > promptTokens && told.promptTokens < 2 ** 31) promptTokens = told.promptTokens;
    if (told.cachedTokens > cachedTokens) cachedTokens = told.cachedTokens;
    if (begun) return;
    begun = true;
    meter?.begun();
    sink.begun?.({ promptTokens, cachedTokens });
  }

  function closeChoice(choice: Choice, finish?: ChoiceFinish): void {
    if (choice.finished) return;
    completionTokens +=
      choice.stopped === undefined ? Math.max(choice.tokens, finish?.completionTokens ?? 0) : choice.tokens;
    choice.finish(sink, finish);
    reasoningTokens += choice.reasoningTokens;
    open--;
    if (open === 0) end();
  }

  /** Ends a choice that the engine has not ended; when it was the last one, the engine is told to stop. */
  function closeUnasked(choice: Choice): void {
    closeChoice(choice);
    if (over) call?.cancel(true);
  }

  function onChunk(chunk: TokenChunk): void {
    if (over) return;
    const choice = choices[chunk.index];
    if (choice === undefined) throw protocolError("The engine answered for a choice that was not asked for");
    count(chunk);
    if (chunk.promptLogprobs !== undefined && !promptTold) {
      promptTold = true;
      sink.promptLogprobs?.(chunk.promptLogprobs);
    }
    // At a stop token the engine ends by itself, and its last message is on its way; one that goes on did not know the token.
    if (choice.stopped !== undefined && chunk.count > 0) {
      closeUnasked(choice);
      return;
    }
    const stoppedHere = choice.push(chunk.tokenIds, chunk.count, chunk.outputLogprobs);
    choice.emit(sink);
    if (stoppedHere && request.stream) closeUnasked(choice);
  }

  function onFinish(finish: ChoiceFinish): void {
    if (over) return;
    const choice = choices[finish.index];
    if (choice === undefined) throw protocolError("The engine ended a choice that was not asked for");
    count(finish);
    if (choice.stopped === undefined && (finish.reason === "abort" || finish.reason === "error")) {
      throw new EngineFailureError(500, "engine_aborted", "The engine ended the request before it was finished");
    }
    closeChoice(choice, finish);
  }

  function onEnd(error?: EngineError): void {
    if (over) return;
    for (const choice of choices) if (choice.stopped !== undefined) closeChoice(choice); // complete, whatever the engine's end
    if (over) return;
    end(error === undefined ? protocolError("The engine ended the stream without finishing") : engineFailure(error));
  }

  if (signal.aborted) {
    onAbort();
    return { pause() {}, resume() {}, done };
  }
  signal.addEventListener("abort", onAbort);
  // as often as a token comes: so each has a `try` of its own, and none makes a function for it
  const handler: GenerateHandler = {
    onChunk(chunk) {
      try {
        onChunk(chunk);
      } catch (cause) {
        failed(cause);
      }
    },
    onFinish(finish) {
      try {
        onFinish(finish);
      } catch (cause) {
        failed(cause);
      }
    },
    onIdle() {
      try {
        if (!over) sink.flush();
      } catch (cause) {
        failed(cause);
      }
    },
    onEnd(error) {
      try {
        onEnd(error);
      } catch (cause) {
        failed(cause);
      }
    },
  };
  try {
    call = engine.generate(request, handler);
  } catch (cause) {
    failed(cause);
  }
  if (over) call?.cancel();
  return { pause: () => call?.pause(), resume: () => call?.resume(), done };
}
