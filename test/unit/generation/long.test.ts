import { expect, test } from "bun:test";
import type { Conversation } from "../../../src/generation/conversation.ts";
import { isLong } from "../../../src/generation/prompt.ts";

const of = (more: Partial<Conversation>): Conversation => ({
  messages: [{ role: "user", content: "x".repeat(1_000_000) }],
  tools: [],
  toolChoice: { mode: "auto" },
  parallelToolCalls: true,
  addGenerationPrompt: true,
  continueFinalMessage: false,
  templateVariables: {},
  ...more,
});
const tool = (declaration: unknown) => ({ type: "function", name: "f", strict: false, declaration }) as const;
const values = (count: number) => new Map(Array.from({ length: count }, (_, i) => [`k${i}`, [i]]));

test.each<[string, Partial<Conversation>, boolean]>([
  ["a long text", {}, false],
  ["messages", { messages: Array(1001).fill({ role: "user", content: "" }) }, true],
  [
    "calls of a message",
    {
      messages: [
        { role: "assistant", content: "", toolCalls: Array(1000).fill({ id: "", name: "f", arguments: "{}" }) },
      ],
    },
    true,
  ],
  [
    "parts of a message",
    { messages: [{ role: "user", content: Array(1000).fill({ type: "text", text: "a" }) }] },
    true,
  ],
  ["ordinary tools", { tools: Array(30).fill(tool(values(20))) }, false],
  ["a tool of many values", { tools: [tool(values(10_000))] }, true],
  ["a tool of much text", { tools: [tool({ description: "x".repeat(1_000_000) })] }, true],
  ["many tools", { tools: Array(500).fill(tool(values(10))) }, true],
  ["a format of many values", { responseFormat: { schema: Object.fromEntries(values(10_000)) } }, true],
  ["documents", { documents: Array(300).fill({ text: "x".repeat(1000) }) }, true],
  ["variables", { templateVariables: new Map([["list", Array(10_000).fill(null)]]) }, true],
])("rendering takes long, or not: %s", (_, more, long) => expect(isLong(of(more))).toBe(long));
