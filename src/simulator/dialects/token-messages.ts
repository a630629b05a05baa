import { WireWriter } from "../../protobuf/writer.ts";
import type { Choice, Generation, GenerationWriter } from "../generation.ts";
import { logprobRow, type TokenRow, tokenLogprob } from "../output/logprobs.ts";

/** Field numbers of the messages of a Generate stream, and what else is particular about them. */
export interface TokenLayout {
  /** Of GenerateResponse; without a `requestId` there is no echo of it. */
  readonly response: { readonly requestId?: number; readonly chunk: number; readonly complete: number };
  readonly chunk: CommonFields & { readonly inputLogprobs?: number; readonly weightVersion?: number };
  readonly complete: CommonFields & {
    readonly reason: number;
    readonly matchedId: number;
    readonly matchedString?: number;
    readonly inputLogprobs?: number;
    readonly weightVersion?: number;
  };
  /** Ids and logprobs that the last message of a stream has. */
  readonly completeRepeats: "last-chunk" | "all" | "nothing";
  /** The choices of an answer that is no stream all have index 0. */
  readonly indexOnlyInStreams: boolean;
  /** Lists of values and ids, or one message a token. */
  readonly logprobs: "lists" | "entries";
  /** Rows of the best tokens from high to low; else the token itself comes first. */
  readonly sortsRows: boolean;
}

interface CommonFields {
  readonly ids: number;
  readonly promptTokens: number;
  readonly completionTokens: number;
  readonly cachedTokens: number;
  readonly outputLogprobs: number;
  readonly index: number;
}

const WEIGHT_VERSION = "default";

/** One for all: a message is copied out before the next is written. */
const w = new WireWriter();

/** Writes the messages of the dialects whose counts run on over a stream: all but vLLM's. */
export function tokenMessages(layout: TokenLayout): GenerationWriter {
  const { response } = layout;

  function open(generation: Generation, field: number): number {
    w.reset();
    if (response.requestId !== undefined) w.text(response.requestId, generation.spec.requestId);
    return w.begin(field);
  }

  function common(fields: CommonFields, generation: Generation, choice: Choice, from: number, to: number): void {
    const { prompt, sampling, stream } = generation.spec;
    ids(w, fields.ids, choice, from, to);
    w.uint(fields.promptTokens, prompt.length);
    w.uint(fields.completionTokens, stream ? choice.sent : choice.generated);
    w.uint(fields.cachedTokens, choice.sequence?.cachedTokens ?? 0);
    if (sampling.logprobs !== undefined && to > from)
      outputLogprobs(fields.outputLogprobs, generation, choice, from, to);
    w.uint(fields.index, layout.indexOnlyInStreams && !stream ? 0 : choice.index);
  }

  function outputLogprobs(field: number, g: Generation, choice: Choice, from: number, to: number): void {
    const rows: TokenRow[] = [];
    for (let i = from; i < to; i++) rows.push(rowAt(g, choice, i, layout.sortsRows));
    if (layout.logprobs === "entries") {
      for (const [i, row] of rows.entries()) tokenEntry(field, choice.sequence!.plan!.idAt(from + i), row);
      return;
    }
    const mark = w.begin(field);
    w.packedFloats(
      1,
      rows.map((row) => row.logprob),
    );
    ids(w, 2, choice, from, to);
    if ((g.spec.sampling.logprobs ?? 0) > 0) for (const row of rows) topRow(3, row.topIds, row.topLogprobs);
    idRows(g, from, to);
    w.end(mark);
  }

  /** `token_ids_logprobs`: a row for each position with the ids that were asked for. */
  function idRows(g: Generation, from: number, to: number): void {
    const asked = g.spec.sampling.tokenIdsLogprob;
    if (asked.length === 0) return;
    for (let i = from; i < to; i++)
      topRow(
        4,
        asked,
        asked.map((id) => tokenLogprob(id, i)),
      );
  }

  return {
    chunk(generation, choice, from, to) {
      const fields = layout.chunk;
      const mark = open(generation, response.chunk);
      common(fields, generation, choice, from, to);
      if (fields.inputLogprobs !== undefined && from === 0) inputLogprobs(fields.inputLogprobs, generation);
      if (fields.weightVersion !== undefined) w.string(fields.weightVersion, WEIGHT_VERSION);
      w.end(mark);
      generation.call.send(w.bytes, w.length);
    },
    complete(generation, choice, reason) {
      const fields = layout.complete;
      const { stream, sampling } = generation.spec;
      const repeats = stream ? layout.completeRepeats : "all";
      const to = repeats === "all" ? generation.shown(choice, choice.generated) : choice.lastTo;
      const from = repeats === "all" ? 0 : repeats === "nothing" ? to : choice.lastFrom;
      const plan = choice.sequence?.plan;
      const mark = open(generation, response.complete);
      common(fields, generation, choice, from, to);
      w.text(fields.reason, reason);
      if (fields.inputLogprobs !== undefined && (!stream || layout.chunk.inputLogprobs === undefined)) {
        if (layout.logprobs === "lists") inputLogprobs(fields.inputLogprobs, generation);
        else if (sampling.promptLogprobs !== undefined) promptEntries(fields.inputLogprobs, generation);
      }
      if (plan?.matchedTokenId !== undefined) w.uint32(fields.matchedId, plan.matchedTokenId);
      else if (plan?.matchedStop !== undefined && fields.matchedString !== undefined)
        w.text(fields.matchedString, plan.matchedStop);
      if (fields.weightVersion !== undefined) w.string(fields.weightVersion, WEIGHT_VERSION);
      w.end(mark);
      generation.call.send(w.bytes, w.length);
    },
  };
}

function ids(writer: WireWriter, field: number, choice: Choice, from: number, to: number): void {
  if (to <= from) return;
  const plan = choice.sequence!.plan!;
  const mark = writer.begin(field);
  for (let i = from; i < to; i++) writer.varint(plan.idAt(i));
  writer.end(mark);
}

function rowAt(g: Generation, choice: Choice, position: number, sorts: boolean): TokenRow {
  const { sampling } = g.spec;
  const id = choice.sequence!.plan!.idAt(position);
  const row = logprobRow(id, position, sampling.logprobs ?? 0, sampling.temperature === 0, g.host.model.vocabSize);
  const scripted = g.rule?.logprobs?.[position];
  const own =
    scripted === undefined ? row : { ...row, logprob: scripted, topLogprobs: [scripted, ...row.topLogprobs.slice(1)] };
  if (!sorts) return own;
  const order = own.topLogprobs.map((_, i) => i).sort((a, b) => own.topLogprobs[b]! - own.topLogprobs[a]!);
  return { ...own, topIds: order.map((i) => own.topIds[i]!), topLogprobs: order.map((i) => own.topLogprobs[i]!) };
}

function topRow(field: number, topIds: readonly number[], values: readonly number[]): void {
  const mark = w.begin(field);
  w.packedFloats(1, values.slice(0, topIds.length));
  w.packedUint32(2, topIds);
  w.end(mark);
}

/** TokenLogprob of TensorRT-LLM: the token, and an entry for each of its row. */
function tokenEntry(field: number, id: number, row: TokenRow): void {
  const mark = w.begin(field);
  w.uint(1, id);
  w.float(2, row.logprob);
  for (const [i, topId] of row.topIds.entries()) {
    const entry = w.begin(3);
    w.uint(1, topId);
    w.float(2, row.topLogprobs[i]!);
    w.end(entry);
  }
  w.end(mark);
}

/** InputLogProbs: an entry for each prompt token from where the request says, the very first without a value. */
function inputLogprobs(field: number, g: Generation): void {
  const { prompt, sampling } = g.spec;
  const { promptLogprobs: count, promptLogprobsFrom: start } = sampling;
  if (count === undefined || start >= prompt.length) return;
  const mark = w.begin(field);
  for (let i = start; i < prompt.length; i++) {
    const entry = w.begin(1);
    if (i > 0) w.float(1, promptRow(g, i, count).logprob);
    w.end(entry);
  }
  w.packedUint32(2, prompt, start);
  if (count > 0)
    for (let i = start; i < prompt.length; i++) {
      const row = promptRow(g, i, count);
      topRow(3, i > 0 ? row.topIds : [], i > 0 ? row.topLogprobs : []);
    }
  w.end(mark);
}

function promptEntries(field: number, g: Generation): void {
  const { prompt, sampling } = g.spec;
  for (let i = 0; i < prompt.length; i++) tokenEntry(field, prompt[i]!, promptRow(g, i, sampling.promptLogprobs ?? 0));
}

function promptRow(g: Generation, position: number, count: number): TokenRow {
  return logprobRow(g.spec.prompt[position]!, position, count, false, g.host.model.vocabSize);
}
