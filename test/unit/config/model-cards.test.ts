import { describe, expect, test } from "bun:test";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import {
  cardAliases,
  cardProblem,
  doubleCard,
  fallbackChain,
  fallbackLoop,
  namedCards,
  parseCard,
} from "../../../src/config/model-cards.ts";
import { ConfigError, resolveOptions } from "../../../src/config/resolve.ts";
import { serveOptions } from "../../../src/config/serve-options.ts";

const NOTHING = {
  reasoningParser: undefined,
  toolCallParser: undefined,
  chatTemplate: undefined,
  aliases: [],
  fallbacks: [],
  firstTokenTimeoutSecs: undefined,
  interTokenTimeoutSecs: undefined,
  requestTimeoutSecs: undefined,
  hedgeAfterMs: undefined,
};

test("a card as text", () => {
  expect(parseCard("org/a:tool_call_parser=hermes:alias=x:alias=y")).toEqual({
    ...NOTHING,
    id: "org/a",
    toolCallParser: "hermes",
    aliases: ["x", "y"],
  });
  const all = "a:b:v1:reasoning_parser=qwen3:tool_parser=qwen:chat_template=/t=1/x.jinja";
  expect(cardProblem(all)).toBeUndefined();
  expect(parseCard(all)).toEqual({
    ...NOTHING,
    id: "a:b:v1",
    reasoningParser: "qwen3",
    toolCallParser: "qwen",
    chatTemplate: "/t=1/x.jinja",
  });
  const limits =
    "a:fallback=llama3:8b:fallback=c:first_token_timeout_secs=5:inter_token_timeout_secs=0:request_timeout_secs=9:hedge_after_ms=100";
  expect(cardProblem(limits)).toBeUndefined();
  expect(parseCard(limits)).toEqual({
    ...NOTHING,
    id: "a",
    fallbacks: ["llama3:8b", "c"],
    firstTokenTimeoutSecs: 5,
    interTokenTimeoutSecs: 0,
    requestTimeoutSecs: 9,
    hedgeAfterMs: 100,
  });
});

test("what is wrong with one", () => {
  for (const [text, problem] of [
    ["a", "must be ID:key=value"],
    [":tool_parser=x", "must be ID:key=value"],
    ["a:toolparser=x", "has a key"],
    ["a:tool_parser=", "has no value for tool_parser"],
    ["a:tool_parser=x:tool_call_parser=y", "has tool_call_parser twice"],
    ["a:hedge_after_ms=soon", 'has "soon" for hedge_after_ms'],
    ["a:request_timeout_secs=-1", 'has "-1" for request_timeout_secs'],
  ])
    expect(cardProblem(text!)).toStartWith(problem!);
});

test("two cards for one model, and aliases", () => {
  const cards = ["a:alias=x", "b:alias=y", "a:alias=z"].map(parseCard);
  expect([doubleCard(cards), doubleCard(cards.slice(1))]).toEqual(["a", undefined]);
  expect(cardAliases(cards)).toEqual(["x=a", "y=b", "z=a"]);
});

describe("models that stand in for others", () => {
  const named = (texts: string[], pairs: string[] = []) => namedCards(texts.map(parseCard), pairs);

  test("are asked in their order, each followed by its own, once", () => {
    const cards = named(["a:alias=x:fallback=b:fallback=c", "b:fallback=d", "c:fallback=d:fallback=e"], ["y=a"]);
    const chain = ["b", "d", "c", "e"];
    expect(["a", "x", "y", "d", "nobody"].map((name) => fallbackChain(name, cards))).toEqual([
      chain,
      chain,
      chain,
      [],
      [],
    ]);
    expect(fallbackLoop(cards)).toBeUndefined();
  });

  test("never stand in for themselves, by whatever name", () => {
    expect(fallbackLoop(named(["a:fallback=a"]))).toEqual(["a", "a"]);
    expect(fallbackLoop(named(["z:fallback=a", "a:fallback=b", "b:fallback=x"], ["x=a"]))).toEqual(["a", "b", "a"]);
  });
});

test("cards of a file are groups of keys, or text", () => {
  const folder = mkdtempSync(join(tmpdir(), "cards-"));
  const file = join(folder, "collie.yaml");
  const read = (text: string) => {
    writeFileSync(file, text);
    return resolveOptions(serveOptions, { args: ["--config", file], env: {} }).values.modelCard;
  };
  try {
    const group =
      "model-card:\n  - id: org/a\n    tool_parser: hermes\n    aliases: [x, y]\n  - b:reasoning_parser=base\n";
    expect(read(group)).toEqual(["org/a:tool_parser=hermes:alias=x:alias=y", "b:reasoning_parser=base"]);
    expect(read("models:\n  - id: a\n    fallbacks: [b, c]\n    hedge_after_ms: 5\n")).toEqual([
      "a:hedge_after_ms=5:fallback=b:fallback=c",
    ]);
    expect(() => read("models:\n  - a:alias=x\nmodel-card:\n  - b:alias=y\n")).toThrow("also as models");
    expect(() => read("model-card:\n  - tool_parser: hermes\n")).toThrow(ConfigError);
    expect(() => read("model-card:\n  - id: a\n    context_length: 5\n")).toThrow('has a key "context_length"');
  } finally {
    rmSync(folder, { recursive: true });
  }
});
