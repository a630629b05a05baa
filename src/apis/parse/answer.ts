/** Answers taken apart without an engine: the parsers and all that is around them in Chat Completions. */
import { Choice, finishReason, NO_CALLS, type OutputOptions, type ParsingOptions } from "../../generation/choice.ts";
import type { FinishReason, GenerationSink, OutputPart } from "../../generation/events.ts";
import { OutputParts } from "../../generation/output-parts.ts";
import type { Tokenizer } from "../../tokenizer/tokenizer.ts";

/** A piece of the answer, and the chunk that it came with; their number for what came out at the end. */
export type AnswerEvent = OutputPart & { readonly chunk: number };

/** How the engine says that the answer ended. */
export type EngineFinish = "stop" | "length";

export interface TakenApart {
  readonly finish: FinishReason;
  readonly events: readonly AnswerEvent[];
}

/** Text by chunks: markers are found in the text. `parsing` undefined: all is content. */
export function readText(
  chunks: readonly string[],
  parsing: ParsingOptions | undefined,
  ended: EngineFinish,
): TakenApart {
  const steps = textSteps(chunks, parsing, ended);
  for (;;) {
    const step = steps.next();
    if (step.done === true) return step.value;
  }
}

/** As `readText`, but yields after each chunk, for whoever has other things to do in between. */
export function* textSteps(
  chunks: Iterable<string>,
  parsing: ParsingOptions | undefined,
  ended: EngineFinish,
): Generator<void, TakenApart, void> {
  const parser = parsing?.parser(undefined);
  const parts = new OutputParts(parsing ?? NO_CALLS);
  const events: AnswerEvent[] = [];
  let chunk = 0;
  const take = () => {
    for (const part of parts.take()) events.push({ ...part, chunk });
  };
  let reason = ended;
  for (const text of chunks) {
    if (parser !== undefined) parser.push(text, parts);
    else if (text !== "") parts.text(text);
    take();
    chunk++;
    if (parts.satisfied) {
      reason = "stop";
      break;
    }
    yield;
  }
  parser?.finish(parts);
  parts.finish();
  take();
  return { finish: finishReason(reason, parts.complete, parsing), events };
}

/** Token ids by chunks, up to the first of `eosTokenIds`: markers are found as tokens, as in an engine's stream. */
export function readIds(
  chunks: readonly (readonly number[])[],
  tokenizer: Tokenizer,
  eosTokenIds: ReadonlySet<number>,
  parsing: ParsingOptions | undefined,
  ended: EngineFinish,
): TakenApart {
  const choice = new Choice(0, tokenizer, { ...PLAIN_OUTPUT, eosTokenIds, quietEosTokenIds: eosTokenIds, parsing });
  const events: AnswerEvent[] = [];
  let finish: FinishReason = ended;
  let chunk = 0;
  const sink: GenerationSink = {
    emit(event) {
      if (event.type === "output") for (const part of event.parts) events.push({ ...part, chunk });
      if (event.type === "finish") finish = event.reason;
    },
    flush: () => {},
  };
  for (const ids of chunks) {
    choice.push(Uint32Array.from(ids), ids.length, undefined);
    choice.emit(sink);
    chunk++;
    if (choice.stopped !== undefined) break;
  }
  choice.finish(sink, { reason: ended });
  return { finish, events };
}

const PLAIN_OUTPUT: Omit<OutputOptions, "eosTokenIds" | "quietEosTokenIds" | "parsing"> = {
  skipSpecialTokens: true,
  stop: [],
  stopInReasoning: false,
  stopTokenIds: new Set(),
  includeStop: false,
  maxTokens: Number.POSITIVE_INFINITY,
  minTokens: 0,
  logprobs: false,
  tokenIds: false,
};

/** One call of an answer. */
export interface AnswerCall {
  readonly id: string;
  readonly name: string;
  /** The deltas, joined. */
  readonly arguments: string;
  readonly isComplete: boolean;
}

/** The answer that events make up. */
export function foldAnswer(events: readonly OutputPart[]): {
  readonly content: string;
  readonly reasoning: string;
  readonly calls: readonly AnswerCall[];
} {
  let content = "";
  let reasoning = "";
  const calls: { id: string; name: string; arguments: string; isComplete: boolean }[] = [];
  for (const part of events) {
    if (part.type === "text") content += part.text;
    else if (part.type === "reasoning") reasoning += part.text;
    else if (part.type === "tool_start")
      calls[part.call] = { id: part.id, name: part.name, arguments: "", isComplete: false };
    else if (part.type === "tool_arguments") calls[part.call]!.arguments += part.text;
    else calls[part.call]!.isComplete = true;
  }
  return { content, reasoning, calls };
}
