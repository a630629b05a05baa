import { expect, test } from "bun:test";
import type { Conversation } from "../../../src/generation/conversation.ts";
import { isLong } from "../../../src/generation/prompt.ts";
import { templateMessages, templateMessagesSteps } from "../../../src/generation/template-messages.ts";
import { templateTraits } from "../../../src/generation/template-traits.ts";
import type { Steps } from "../../../src/steps.ts";
import { compileChatTemplate } from "../../../src/template/chat-template.ts";
import { prepareMessages, prepareMessagesSteps } from "../../../src/template/prepare-messages.ts";

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
    "long arguments of a call",
    {
      messages: [
        { role: "assistant", content: "", toolCalls: [{ id: "", name: "f", arguments: " ".repeat(200_000) }] },
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

test("long arguments of a call are read and looked through in steps, as in one go", () => {
  const source =
    "{% for m in messages %}{{ m.content }}{% for c in m.tool_calls or [] %}{{ c.function.name }}{{ c.function.arguments | tojson }}{% endfor %}{% endfor %}";
  const traits = templateTraits(compileChatTemplate(source, {}), undefined, false);
  const text = `{"list":[${Array.from({ length: 30_000 }, (_, i) => `{"b":${i}.0,"a":"text"}`).join(",")}]}`;
  const messages = [{ role: "assistant", content: "", toolCalls: [{ id: "a", name: "f", arguments: text }] }] as const;
  const [reading, shown] = pausesOf(templateMessagesSteps(messages, traits, {}));
  expect(shown).toEqual(templateMessages(messages, traits));
  expect(reading).toBeGreaterThan(8);
  const [preparing, prepared] = pausesOf(prepareMessagesSteps(shown, {}));
  expect(prepared).toEqual(prepareMessages(shown));
  expect(preparing).toBeGreaterThan(8);
});

function pausesOf<T>(steps: Steps<T>): [pauses: number, value: T] {
  for (let pauses = 0; ; pauses++) {
    const { done, value } = steps.next();
    if (done === true) return [pauses, value];
  }
}
