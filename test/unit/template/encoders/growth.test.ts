/** What encoders read of a conversation grows as it does: anybody may send one of 100,000 messages. */
import { describe, expect, test } from "bun:test";
import type { ChatTemplate, TemplateInput } from "../../../../src/template/chat-template.ts";
import { ENCODER_NAMES, nativeEncoder } from "../../../../src/template/encoders/native-encoder.ts";

let reads = 0;

/** A dict, the reading of whose entries is counted. */
class Counted extends Map<string, unknown> {
  override get(key: string): unknown {
    reads++;
    return super.get(key);
  }
}
const dict = (entries: Readonly<Record<string, unknown>>) => new Counted(Object.entries(entries));

/** A list, the reading of whose items is counted. */
const list = (length: number, of: (i: number) => unknown): readonly unknown[] =>
  new Proxy(
    Array.from({ length }, (_, i) => of(i)),
    {
      get(target, key, receiver) {
        reads++;
        return Reflect.get(target, key, receiver) as unknown;
      },
    },
  );

const call = (i: number) => dict({ id: `c${i}`, type: "function", function: dict({ name: "f", arguments: "{}" }) });
const result = (i: number) => dict({ role: "tool", tool_call_id: `c${i}`, content: "x" });
const user = dict({ role: "user", content: "a" });
const declared = (count: number) => {
  const properties = dict(
    Object.fromEntries(Array.from({ length: count }, (_, i) => [`p${i}`, dict({ type: "string" })])),
  );
  const parameters = dict({ type: "object", properties, required: list(count, (i) => `p${i}`) });
  return [dict({ type: "function", function: dict({ name: "f", parameters }) })];
};

const SHAPES: Readonly<Record<string, (count: number) => Partial<TemplateInput>>> = {
  "a turn of many calls": (count) => ({
    messages: [
      user,
      dict({ role: "assistant", content: "", tool_calls: list(count, call) }),
      ...Array.from({ length: count }, (_, i) => result(i)),
    ],
  }),
  "many turns with calls": (count) => ({
    messages: [
      user,
      ...Array.from({ length: count }, (_, i) => [
        dict({ role: "assistant", content: "", tool_calls: list(1, () => call(i)) }),
        result(i),
      ]).flat(),
    ],
  }),
  "many turns": (count) => ({
    messages: Array.from({ length: count }, (_, i) => dict({ role: i % 2 === 0 ? "user" : "assistant", content: "a" })),
  }),
  "a tool of many parameters": (count) => ({ messages: [user], tools: declared(count) }),
};

const FEW = 100;
const TIMES = 8;

const readsOf = (run: () => unknown): number => {
  reads = 0;
  run();
  return reads;
};

const render = (template: ChatTemplate, more: Partial<TemplateInput>): string =>
  template.render({ messages: [], addGenerationPrompt: true, ...more });

describe.each(ENCODER_NAMES)("%s", (name) => {
  test.each(Object.keys(SHAPES))("%s", (shape) => {
    const [few, many] = [FEW, FEW * TIMES].map((count) => {
      const input = SHAPES[shape]!(count);
      return readsOf(() => render(nativeEncoder(name), input));
    }) as [number, number];
    expect(few).toBeGreaterThan(FEW);
    expect(many / few).toBeLessThan(TIMES * 1.5);
  });
});
