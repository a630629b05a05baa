import { expect, test } from "bun:test";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { cardAliases, cardProblem, doubleCard, parseCard } from "../../../src/config/model-cards.ts";
import { ConfigError, resolveOptions } from "../../../src/config/resolve.ts";
import { serveOptions } from "../../../src/config/serve-options.ts";

const NOTHING = { reasoningParser: undefined, toolCallParser: undefined, chatTemplate: undefined, aliases: [] };

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
    id: "a:b:v1",
    reasoningParser: "qwen3",
    toolCallParser: "qwen",
    chatTemplate: "/t=1/x.jinja",
    aliases: [],
  });
});

test("what is wrong with one", () => {
  for (const [text, problem] of [
    ["a", "must be ID:key=value"],
    [":tool_parser=x", "must be ID:key=value"],
    ["a:toolparser=x", "has a key"],
    ["a:tool_parser=", "has no value for tool_parser"],
    ["a:tool_parser=x:tool_call_parser=y", "has tool_call_parser twice"],
  ])
    expect(cardProblem(text!)).toStartWith(problem!);
});

test("two cards for one model, and aliases", () => {
  const cards = ["a:alias=x", "b:alias=y", "a:alias=z"].map(parseCard);
  expect([doubleCard(cards), doubleCard(cards.slice(1))]).toEqual(["a", undefined]);
  expect(cardAliases(cards)).toEqual(["x=a", "y=b", "z=a"]);
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
    expect(() => read("model-card:\n  - tool_parser: hermes\n")).toThrow(ConfigError);
    expect(() => read("model-card:\n  - id: a\n    context_length: 5\n")).toThrow('has a key "context_length"');
  } finally {
    rmSync(folder, { recursive: true });
  }
});
