import { describe, expect, test } from "bun:test";
import { type TurnListener, turnSink } from "../../../../src/apis/shared/turn.ts";
import { ClientClosedError } from "../../../../src/errors.ts";
import type { GenerationEvent, OutputPart } from "../../../../src/generation/events.ts";

/** Tells what it hears as short texts: `>0 text`, `0 "a"`, `<0`, `x0` for one that was cut. */
function recorder() {
  const heard: string[] = [];
  const texts: string[] = [];
  const listener: TurnListener = {
    begun: ({ promptTokens, cachedTokens }) => heard.push(`begun ${promptTokens} ${cachedTokens}`),
    opened: (item) => heard.push(`>${item.at} ${item.kind === "call" ? `${item.callKind} ${item.name}` : item.kind}`),
    delta: ({ at }, text, logprobs) =>
      heard.push(`${at} ${text}${logprobs === undefined ? "" : ` +${logprobs.length}`}`),
    closed(item, complete) {
      heard.push(`${complete ? "<" : "x"}${item.at}`);
      texts[item.at] = item.text;
    },
    ended: ({ reason, isClamped, reasoningTokens }) => heard.push(`end ${reason} ${isClamped} ${reasoningTokens}`),
    failed: ({ code }) => heard.push(`failed ${code}`),
    flush: () => heard.push("flush"),
  };
  return { heard, texts, listener };
}

const output = (...parts: OutputPart[]): GenerationEvent => ({
  type: "output",
  index: 0,
  parts,
  tokenIds: undefined,
  logprobs: undefined,
});
const text = (said: string): OutputPart => ({ type: "text", text: said });
const thought = (said: string): OutputPart => ({ type: "reasoning", text: said });
const begin = (call: number, kind: "function" | "custom" = "function"): OutputPart => ({
  type: "tool_start",
  call,
  id: `c${call}`,
  name: `f${call}`,
  kind,
});
const args = (call: number, said: string): OutputPart => ({ type: "tool_arguments", call, text: said });
const over = (call: number): OutputPart => ({ type: "tool_end", call });
const finish = (reason: "stop" | "length" | "tool_calls"): readonly GenerationEvent[] => [
  { type: "finish", index: 0, reason, matchedStop: undefined },
  { type: "usage", promptTokens: 1, cachedTokens: 0, completionTokens: 2, reasoningTokens: 3 },
];

function heardOf(events: readonly GenerationEvent[], options: Parameters<typeof turnSink>[1] = { isClamped: false }) {
  const { heard, texts, listener } = recorder();
  const sink = turnSink(listener, options);
  sink.begun?.({ promptTokens: 7, cachedTokens: 4 });
  for (const event of events) sink.emit(event);
  sink.flush();
  return { heard: heard.slice(1, -1), texts, sink, all: heard };
}

describe("items of an answer", () => {
  test("come one after the other, numbered without gaps", () => {
    const { heard, texts, all } = heardOf([
      output(thought("a"), thought("b")),
      output(text("c")),
      output(text("d"), begin(0), args(0, "{")),
      output(args(0, "}"), over(0), begin(1, "custom"), args(1, "x"), over(1)),
      ...finish("tool_calls"),
    ]);
    expect(heard).toEqual([
      ...[">0 reasoning", "0 a", "0 b", "<0"],
      ...[">1 text", "1 c", "1 d", "<1"],
      ...[">2 function f0", "2 {", "2 }", "<2"],
      ...[">3 custom f1", "3 x", "<3"],
      "end tool_calls false 3",
    ]);
    expect(texts).toEqual(["ab", "cd", "{}", "x"]);
    expect([all[0], all.at(-1)]).toEqual(["begun 7 4", "flush"]);
  });

  test("what was cut is not complete; what came before it is", () => {
    expect(heardOf([output(text("a"), begin(0), args(0, "{")), ...finish("length")]).heard.slice(2)).toEqual([
      ...["<0", ">1 function f0", "1 {", "x1"],
      "end length false 3",
    ]);
    expect(heardOf([output(text("a")), ...finish("length")], { isClamped: true }).heard.slice(2)).toEqual([
      "x0",
      "end length true 3",
    ]);
    expect(heardOf([output(begin(0), args(0, "{"), text("b")), ...finish("stop")]).heard).toEqual([
      ...[">0 function f0", "0 {", "x0", ">1 text", "1 b", "<1"],
      "end stop false 3",
    ]);
  });

  test("an error closes the open item before it is told", () => {
    const error = new ClientClosedError();
    const { heard, sink } = heardOf([output(thought("a")), { type: "error", error }]);
    expect(heard.slice(2)).toEqual(["x0", "failed client_closed_request"]);
    expect(sink.error).toBe(error);
    expect(heardOf([output(text("a")), ...finish("stop")]).sink.error).toBeUndefined();
  });

  test("dropped reasoning leaves no gap", () => {
    const { heard } = heardOf([output(thought("a")), output(text("b")), ...finish("stop")], {
      isClamped: false,
      dropsReasoning: true,
    });
    expect(heard).toEqual([">0 text", "0 b", "<0", "end stop false 3"]);
  });

  test("an empty answer has no item", () => {
    expect(heardOf(finish("stop")).heard).toEqual(["end stop false 3"]);
  });

  test("logprobs go with the first text of an event", () => {
    const entry = { id: 1, logprob: -1, top: [] };
    const event = { ...output(thought("a"), text("b"), text("c")), logprobs: [entry, entry] } as GenerationEvent;
    const { listener, heard } = recorder();
    const items: number[] = [];
    const sink = turnSink(
      { ...listener, closed: (item) => items.push(item.kind === "text" ? item.logprobs.length : 0) },
      { isClamped: false },
    );
    for (const each of [event, ...finish("stop")]) sink.emit(each);
    expect(heard.filter((told) => told.includes("+"))).toEqual(["1 b +2"]);
    expect(items).toEqual([0, 2]);
  });
});
