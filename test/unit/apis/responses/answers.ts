/** Answers of Responses out of events of a generation, without a server. */

import { requestFields } from "../../../../src/apis/responses/object.ts";
import type { ResponsesRequest } from "../../../../src/apis/responses/schema.ts";
import { ResponseWriter, type WriterOptions } from "../../../../src/apis/responses/writer.ts";
import type { EventWriter } from "../../../../src/apis/shared/events.ts";
import { turnSink } from "../../../../src/apis/shared/turn.ts";
import type { FinishReason, GenerationEvent, OutputPart } from "../../../../src/generation/events.ts";

/** Keeps frames as a stream would send them. */
export class Frames implements EventWriter {
  text = "";
  readonly sequences: number[] = [];
  ends = 0;
  cuts = 0;
  event(type: string, json: string, sequence: number): void {
    if (this.ends + this.cuts > 0) throw new Error(`told after the end: ${json}`);
    this.sequences.push(sequence);
    this.text += `event: ${type}\ndata: ${json}\n\n`;
  }
  flush(): void {}
  end(): void {
    this.ends++;
    if (this.cuts === 0) this.text += "data: [DONE]\n\n";
  }
  cut(): void {
    this.cuts++;
  }
}

export const REQUEST: ResponsesRequest = { model: 'a "model"', input: "Hi" };

export function writerOptions(more: Partial<WriterOptions> = {}): WriterOptions {
  return {
    head: {
      id: `resp_${"0".repeat(50)}`,
      createdAt: 1_700_000_000,
      fields: requestFields(REQUEST, { sampling: {} }),
    },
    origin: (name) => ({ name }),
    asSummary: false,
    seal: undefined,
    logprobs: undefined,
    ...more,
  };
}

export const output = (...parts: OutputPart[]): GenerationEvent => ({
  type: "output",
  index: 0,
  parts,
  tokenIds: undefined,
  logprobs: undefined,
});
export const text = (value: string): GenerationEvent => output({ type: "text", text: value });
export const reasoning = (value: string): GenerationEvent => output({ type: "reasoning", text: value });
export function call(index: number, name: string, pieces: readonly string[], kind: "function" | "custom" = "function") {
  return output(
    { type: "tool_start", call: index, id: `call_${index}`, name, kind },
    ...pieces.map((piece): OutputPart => ({ type: "tool_arguments", call: index, text: piece })),
    { type: "tool_end", call: index },
  );
}
export const finish = (reason: FinishReason = "stop"): GenerationEvent => ({
  type: "finish",
  index: 0,
  reason,
  matchedStop: undefined,
});
export const USAGE: GenerationEvent = {
  type: "usage",
  promptTokens: 5,
  cachedTokens: 2,
  completionTokens: 3,
  reasoningTokens: 1,
};

export async function play(events: readonly GenerationEvent[], more: Partial<WriterOptions> = {}) {
  const out = new Frames();
  const writer = new ResponseWriter(writerOptions(more), out);
  const sink = turnSink(writer, { isClamped: false });
  for (const event of events) sink.emit(event);
  await writer.settled;
  return { out, writer };
}

/** The same without a stream: the object alone. */
export async function collect(events: readonly GenerationEvent[], more: Partial<WriterOptions> = {}) {
  const writer = new ResponseWriter(writerOptions(more), undefined);
  const sink = turnSink(writer, { isClamped: false });
  for (const event of events) sink.emit(event);
  await writer.settled;
  return writer;
}
