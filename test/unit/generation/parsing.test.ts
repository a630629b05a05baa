/** Reasoning and tool calls on their way from token ids to events, with Qwen 3's tokenizer. */
import { describe, expect, test } from "bun:test";
import { Choice, type OutputOptions } from "../../../src/generation/choice.ts";
import type { GenerationEvent, OutputPart } from "../../../src/generation/events.ts";
import { type AnswerShape, parsingOptions } from "../../../src/generation/parsing.ts";
import { demoTokenizer, encode, IM_END } from "./demo-tokenizer.ts";

const TOOLS = [{ name: "get_weather", parameters: { type: "object", properties: { city: { type: "string" } } } }];
const SHAPE: AnswerShape = {
  tools: TOOLS,
  parseTools: true,
  startsInReasoning: false,
  constrained: false,
  single: false,
  isForced: false,
};
const NAMES = { reasoning: "qwen3", tool: "qwen" };
const call = (city: string) => `<tool_call>\n{"name": "get_weather", "arguments": {"city": "${city}"}}\n</tool_call>`;
const ANSWER = `<think>\nLet me see.\n</think>\n\nI look.\n${call("Oslo")}\n${call("東京 👩‍👩‍👧")}`;

function options(shape: Partial<AnswerShape> = {}, more: Partial<OutputOptions> = {}): OutputOptions {
  return {
    skipSpecialTokens: true,
    stop: [],
    stopInReasoning: false,
    stopTokenIds: new Set(),
    eosTokenIds: new Set([IM_END]),
    quietEosTokenIds: new Set([IM_END]),
    includeStop: false,
    maxTokens: Number.POSITIVE_INFINITY,
    minTokens: 0,
    logprobs: false,
    tokenIds: false,
    parsing: parsingOptions(demoTokenizer, NAMES, { ...SHAPE, ...shape }),
    ...more,
  };
}

interface Read {
  readonly text: string;
  readonly reasoning: string;
  readonly calls: { readonly id: string; readonly name: string; arguments: string; complete: boolean }[];
  readonly reason: string | undefined;
  readonly stopped: boolean;
  readonly reasoningTokens: number;
  readonly parts: readonly OutputPart[];
}

/** Reads an answer in chunks of so many tokens. */
function read(answer: string, size: number, given: OutputOptions = options()): Read {
  const ids = [...encode(answer), IM_END];
  const choice = new Choice(0, demoTokenizer, given);
  const events: GenerationEvent[] = [];
  const sink = { emit: (event: GenerationEvent) => void events.push(event), flush() {} };
  let stopped = false;
  for (let at = 0; at < ids.length && !stopped; at += size) {
    const chunk = Uint32Array.from(ids.slice(at, at + size));
    stopped = choice.push(chunk, chunk.length, undefined);
    choice.emit(sink);
  }
  choice.finish(sink);
  const parts = events.flatMap((event) => (event.type === "output" ? event.parts : []));
  const calls: Read["calls"] = [];
  for (const part of parts) {
    if (part.type === "tool_start") calls[part.call] = { id: part.id, name: part.name, arguments: "", complete: false };
    else if (part.type === "tool_arguments") calls[part.call]!.arguments += part.text;
    else if (part.type === "tool_end") calls[part.call]!.complete = true;
  }
  const all = (type: "text" | "reasoning") =>
    parts.map((part) => (part.type === type && "text" in part ? part.text : "")).join("");
  const finish = events.find((event) => event.type === "finish");
  const { reasoningTokens } = choice;
  return {
    text: all("text"),
    reasoning: all("reasoning"),
    calls,
    reason: finish?.reason,
    stopped,
    reasoningTokens,
    parts,
  };
}

describe.each([1, 2, 3, 7, 1000])("in chunks of %d tokens", (size) => {
  test("reasoning, text and calls, with ids of their own", () => {
    const got = read(ANSWER, size);
    expect(got.reasoning.trim()).toBe("Let me see.");
    expect(got.text.trim()).toBe("I look.");
    expect(got.calls.map(({ name, arguments: args, complete }) => [name, JSON.parse(args), complete])).toEqual([
      ["get_weather", { city: "Oslo" }, true],
      ["get_weather", { city: "東京 👩‍👩‍👧" }, true],
    ]);
    for (const { id } of got.calls) expect(id).toMatch(/^call_[0-9a-f]{24}$/);
    expect(new Set(got.calls.map(({ id }) => id)).size).toBe(2);
    expect(got.reason).toBe("tool_calls");
    const thoughts = encode("<think>\nLet me see.\n</think>").length;
    expect(Math.abs(got.reasoningTokens - thoughts)).toBeLessThanOrEqual(Math.max(3, size));
  });

  test("the prompt has opened the reasoning", () => {
    const got = read("Hm.\n</think>\n\nYes.", size, options({ startsInReasoning: true }));
    expect([got.reasoning.trim(), got.text.trim(), got.reason]).toEqual(["Hm.", "Yes.", "stop"]);
  });

  test("a stop string counts in content, not in reasoning or calls, unless it shall", () => {
    const stop = ["see"];
    const got = read(ANSWER.replace("I look", "I see it and look"), size, options({}, { stop }));
    expect([got.reasoning.trim(), got.text.trim(), got.calls.length, got.stopped]).toEqual([
      "Let me see.",
      "I",
      0,
      true,
    ]);
    const everywhere = read(ANSWER, size, options({}, { stop, stopInReasoning: true }));
    expect([everywhere.reasoning.trim(), everywhere.text, everywhere.stopped]).toEqual(["Let me", "", true]);
  });

  test("only the first call where one is wanted; the engine is told", () => {
    const got = read(ANSWER, size, options({ single: true }));
    expect(got.calls.map(({ arguments: args }) => JSON.parse(args))).toEqual([{ city: "Oslo" }]);
    expect([got.stopped, got.reason]).toEqual([true, "tool_calls"]);
  });

  test("calls stay text where none are looked for", () => {
    const got = read(call("Oslo"), size, options({ parseTools: false }));
    expect(got.calls).toEqual([]);
    expect(got.text).toContain("get_weather");
  });
});

test("text that imitates a marker is text: only the token counts", () => {
  const ids = [..."<tool_call>"].flatMap((sign) => [...encode(sign)]);
  const choice = new Choice(0, demoTokenizer, options());
  const events: GenerationEvent[] = [];
  const sink = { emit: (event: GenerationEvent) => void events.push(event), flush() {} };
  choice.push(Uint32Array.from(ids), ids.length, undefined);
  choice.finish(sink);
  expect(events.flatMap((event) => (event.type === "output" ? event.parts : []))).toEqual([
    { type: "text", text: "<tool_call>" },
  ]);
});

test("without parsers all is text", () => {
  expect(parsingOptions(demoTokenizer, { reasoning: undefined, tool: undefined }, SHAPE)).toBeUndefined();
  const got = read("<think>a</think>b", 1, options({}, { parsing: undefined }));
  expect(got.text).toBe("<think>a</think>b");
});

describe.each([1, 3, 1000])("without tools, in chunks of %d tokens", (size) => {
  test.each([
    ["Just text.", "Just text.", ""],
    ["<think>\na\n</think>\n\nb", "b", "a"],
    ["Sure.<think>a</think>b", "Sure.b", "a"],
    ["a</think>b", "a</think>b", ""],
    ["a<think>b</think>c<think>d</think>e", "ace", "bd"],
    ["<think>never closed", "", "never closed"],
  ])("%j", (answer, text, reasoning) => {
    const got = read(answer, size, options({ parseTools: false }));
    expect([got.text.trim(), got.reasoning.trim()]).toEqual([text, reasoning]);
  });
});
