/** Stop strings of which one can go on where another is complete, and all that may end an answer meanwhile. */
import { describe, expect, test } from "bun:test";
import type { ChoiceFinish } from "../../../src/engines/engine.ts";
import { Choice, type OutputOptions } from "../../../src/generation/choice.ts";
import { parsingOptions } from "../../../src/generation/parsing.ts";
import { Recorder } from "./collect-events.ts";
import { demoTokenizer, encode, IM_END } from "./demo-tokenizer.ts";

const parsing = parsingOptions(
  demoTokenizer,
  { reasoning: "qwen3", tool: "qwen" },
  {
    tools: [{ name: "get_time", parameters: { type: "object" } }],
    parseTools: true,
    startsInReasoning: false,
    constrained: false,
    single: false,
    isForced: false,
  },
);
const STOP_TOKEN = encode("!")[0]!;
const CALL = '<tool_call>\n{"name": "get_time", "arguments": {}}\n</tool_call>';

const WAYS: Readonly<Record<string, Pick<OutputOptions, "parsing" | "stopInReasoning">>> = {
  "without a parser": { parsing: undefined, stopInReasoning: false },
  "before the parser": { parsing, stopInReasoning: true },
  "in the content that the parser finds": { parsing, stopInReasoning: false },
};

interface Outcome {
  readonly text: string;
  readonly reason: string | undefined;
  readonly matchedStop: string | number | undefined;
  /** Tokens until the gateway ended it; undefined: it did not. */
  readonly stoppedAfter: number | undefined;
  readonly calls: number;
}

/** Reads an answer token by token, or so many at a time. */
function read(
  ids: readonly number[],
  more: Partial<OutputOptions>,
  engine: Pick<ChoiceFinish, "reason"> = { reason: "stop" },
  size = 1,
): Outcome {
  const choice = new Choice(0, demoTokenizer, {
    skipSpecialTokens: true,
    stop: ["STOP here", "STOP"],
    stopInReasoning: false,
    stopTokenIds: new Set(),
    eosTokenIds: new Set([IM_END]),
    quietEosTokenIds: new Set([IM_END]),
    includeStop: false,
    maxTokens: Number.POSITIVE_INFINITY,
    minTokens: 0,
    logprobs: false,
    tokenIds: false,
    parsing: undefined,
    ...more,
  });
  const sink = new Recorder();
  let stoppedAfter: number | undefined;
  for (let at = 0; at < ids.length && stoppedAfter === undefined; at += size) {
    const chunk = Uint32Array.from(ids.slice(at, at + size));
    if (choice.push(chunk, chunk.length, undefined)) stoppedAfter = choice.tokens;
    choice.emit(sink);
  }
  choice.finish(sink, engine);
  const finish = sink.of("finish")[0];
  const calls = sink.of("output").flatMap(({ parts }) => parts.filter(({ type }) => type === "tool_start")).length;
  return { text: sink.text(), reason: finish?.reason, matchedStop: finish?.matchedStop, stoppedAfter, calls };
}

describe.each(Object.entries(WAYS))("%s", (_, way) => {
  const found = (text: string, matchedStop: string) => ({ text, reason: "stop", matchedStop, calls: 0 });

  test("the longer one wins, at any cut into chunks", () => {
    const ids = encode("Now STOP here, and so on");
    for (const size of [1, 2, 3, ids.length])
      for (const stop of [
        ["STOP", "STOP here"],
        ["STOP here", "STOP"],
        ["TOP here", "here", "STOP here"],
      ]) {
        expect(read(ids, { ...way, stop }, undefined, size)).toMatchObject(found("Now ", "STOP here"));
        expect(read(ids, { ...way, stop, includeStop: true }, undefined, size)).toMatchObject(
          found("Now STOP here", "STOP here"),
        );
      }
  });

  test("it ends as soon as nothing better can come", () => {
    const until = (text: string) => encode(text).length;
    const now = read(encode("Now STOP and so on"), way);
    expect(now).toMatchObject(found("Now ", "STOP"));
    expect(now.stoppedAfter).toBe(until("Now STOP and"));
    const atOnce = read(encode("Now STOP and so on"), { ...way, stop: ["TOP", "STOP"] });
    expect(atOnce).toMatchObject({ ...found("Now ", "STOP"), stoppedAfter: until("Now STOP") });
  });

  test("an answer that ends while a match waits ends with it", () => {
    const ids = encode("Now STOP");
    expect(read(ids, way)).toMatchObject(found("Now ", "STOP"));
    expect(read(ids, way, { reason: "length" })).toMatchObject(found("Now ", "STOP"));
    expect(read(ids, { ...way, includeStop: true })).toMatchObject(found("Now STOP", "STOP"));
    expect(read([...ids, IM_END], way)).toMatchObject(found("Now ", "STOP"));
    expect(read([...ids, STOP_TOKEN], { ...way, stopTokenIds: new Set([STOP_TOKEN]) })).toMatchObject(
      found("Now ", "STOP"),
    );
    const shown = { ...way, stopTokenIds: new Set([STOP_TOKEN]), includeStop: true };
    expect(read([...ids, STOP_TOKEN], shown)).toMatchObject(found("Now STOP", "STOP"));
    const cut = read([...ids, ...encode(" here")], { ...way, maxTokens: ids.length });
    expect(cut).toMatchObject(found("Now ", "STOP"));
  });

  test("what only begins one passes on, and the end is what it was", () => {
    expect(read(encode("Now STO"), way, { reason: "length" })).toMatchObject({
      text: "Now STO",
      reason: "length",
      matchedStop: undefined,
    });
    expect(read([...encode("Now STO"), STOP_TOKEN], { ...way, stopTokenIds: new Set([STOP_TOKEN]) })).toMatchObject({
      text: "Now STO",
      reason: "stop",
      matchedStop: STOP_TOKEN,
    });
  });

  test("one that ends within min_tokens is text", () => {
    const ids = encode("Now STOP and STOP");
    const first = encode("Now STOP").length;
    expect(read(ids, { ...way, minTokens: first })).toMatchObject(found("Now STOP and ", "STOP"));
    expect(read(encode("Now STOP here"), { ...way, minTokens: first })).toMatchObject(found("Now ", "STOP here"));
  });
});

test("a marker settles what waits, and nothing of the call behind it comes out", () => {
  for (const name of ["before the parser", "in the content that the parser finds"] as const)
    for (const size of [1, 2, 100])
      expect(read([...encode(`Now STOP${CALL}`), IM_END], WAYS[name]!, undefined, size)).toMatchObject({
        text: "Now ",
        reason: "stop",
        matchedStop: "STOP",
        calls: 0,
      });
});

test("empty stop strings are ignored", () => {
  expect(read(encode("Now"), { stop: [""] })).toMatchObject({ text: "Now", matchedStop: undefined });
});
