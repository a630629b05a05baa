/** An encoder that gives way while it renders gives the same prompt, whatever others do meanwhile. */
import { describe, expect, test } from "bun:test";
import type { Steps } from "../../../../src/steps.ts";
import { renderedPrompt, renderedPromptSteps, type TemplateInput } from "../../../../src/template/chat-template.ts";
import { ENCODER_NAMES, nativeEncoder } from "../../../../src/template/encoders/native-encoder.ts";
import { budget, MAX_DEPTH } from "../../../../src/template/engine/limits.ts";

const properties = Object.fromEntries(
  Array.from({ length: 8000 }, (_, i) => [`p${i}`, { type: "string", description: `number ${i}` }]),
);
const user = { role: "user", content: "a" };
const call = (i: number, args: unknown) => ({
  id: `c${i}`,
  type: "function",
  function: { name: "f", arguments: args },
});
const numbers = Array.from({ length: 8000 }, (_, i) => i);

const LARGE: Readonly<Record<string, Partial<TemplateInput>>> = {
  "many messages": { messages: numbers.map((i) => ({ role: i % 2 === 0 ? "user" : "assistant", content: `${i}` })) },
  "many calls": {
    messages: [
      user,
      { role: "assistant", content: "", tool_calls: numbers.map((i) => call(i, "{}")) },
      ...numbers.map((i) => ({ role: "tool", tool_call_id: `c${i}`, content: "x" })),
    ],
  },
  "a large tool": {
    messages: [user],
    tools: [{ type: "function", function: { name: "f", parameters: { type: "object", properties } } }],
  },
  "many tools": {
    messages: [user],
    tools: numbers.slice(0, 300).map((i) => {
      const parameters = { type: "object", properties: Object.fromEntries(Object.entries(properties).slice(0, 60)) };
      return { type: "function", function: { name: `f${i}`, parameters } };
    }),
  },
  "large arguments": {
    messages: [
      user,
      { role: "assistant", content: "", tool_calls: [call(0, { list: numbers, properties })] },
      { role: "tool", tool_call_id: "c0", content: "x" },
    ],
  },
};

/** As another render leaves it that used up all it had, and one that fails deep inside. */
function disturb(): void {
  budget.left = 0;
  budget.depth = MAX_DEPTH;
}

function stepped<T>(steps: Steps<T>): { readonly pauses: number; readonly value: T } {
  for (let pauses = 0; ; pauses++) {
    const { done, value } = steps.next();
    if (done === true) return { pauses, value };
    disturb();
  }
}

describe.each(ENCODER_NAMES)("%s", (name) => {
  test.each(Object.keys(LARGE))("%s", (shape) => {
    const template = nativeEncoder(name);
    const input = { messages: [], addGenerationPrompt: true, now: new Date(2026, 10, 30), ...LARGE[shape] };
    const { pauses, value } = stepped(renderedPromptSteps(template, input));
    expect(value).toEqual(renderedPrompt(template, input));
    expect(value.text.length).toBeGreaterThan(20_000);
    expect(pauses).toBeGreaterThan(shape === "many tools" ? 250 : 12);
  });

  test("what is refused", () => {
    const input = { messages: [user, { role: "unknown", content: "a" }], addGenerationPrompt: true };
    expect(() => stepped(renderedPromptSteps(nativeEncoder(name), input))).toThrow("role 'unknown'");
  });
});
