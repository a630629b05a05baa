import { describe, expect, test } from "bun:test";
import { createForcedCallParser } from "../../../../src/generation/tools/forced-call.ts";
import { foldEvents, type ParsedAnswer } from "../../../../src/parsers/events.ts";

type Output = Parameters<typeof createForcedCallParser>[0];
const TOOLS = [{ name: "f" }, { name: "g" }];

function read(output: Output, pieces: readonly string[], reasoning?: string, startsInReasoning = false): ParsedAnswer {
  const { sink, answer } = foldEvents();
  const options = { tools: TOOLS, startsInReasoning, singleTokenMarkers: new Set<string>(), parseTools: true };
  const parser = createForcedCallParser(output, reasoning, options);
  for (const piece of pieces) parser.push(piece, sink);
  parser.finish(sink);
  return answer();
}
const call = (name: string, args: string, complete = true) => ({ name, id: undefined, arguments: args, complete });

const CASES: readonly [Output, string, ParsedAnswer, (string | undefined)?, boolean?][] = [
  [
    { named: "f" },
    '{"a": 1.0, "b": "}\\""}',
    { content: "", reasoning: "", toolCalls: [call("f", '{"a": 1.0, "b": "}\\""}')] },
  ],
  [{ named: "f" }, ' \n{"a": [1]} \n', { content: "", reasoning: "", toolCalls: [call("f", '{"a": [1]}')] }],
  [{ named: "f" }, "{}", { content: "", reasoning: "", toolCalls: [call("f", "{}")] }],
  [{ named: "f" }, '{"a": "x', { content: "", reasoning: "", toolCalls: [call("f", '{"a": "x', false)] }],
  [{ named: "f" }, '{"a": 1}\nDone.', { content: "Done.", reasoning: "", toolCalls: [call("f", '{"a": 1}')] }],
  [{ named: "f" }, "Sorry, no.", { content: "Sorry, no.", reasoning: "", toolCalls: [] }],
  [{ named: "f" }, "", { content: "", reasoning: "", toolCalls: [] }],
  [
    { named: "f" },
    '<think>Hm {"a"}</think>\n\n{"a": 1}',
    { content: "", reasoning: 'Hm {"a"}', toolCalls: [call("f", '{"a": 1}')] },
    "qwen3",
  ],
  [
    { named: "f" },
    'Hm</think>{"a": 1}',
    { content: "", reasoning: "Hm", toolCalls: [call("f", '{"a": 1}')] },
    "qwen3",
    true,
  ],
  // the grammar left no room for a thought
  [{ named: "f" }, '{"a": 1}', { content: "", reasoning: "", toolCalls: [call("f", '{"a": 1}')] }, "harmony"],
  [
    "json",
    '[{"name": "f", "parameters": {"a": 1.0}}]',
    { content: "", reasoning: "", toolCalls: [call("f", '{"a": 1.0}')] },
  ],
  [
    "json",
    '[{"name": "f", "parameters": {"a": 1}}, {"name": "g", "parameters": {}}]',
    { content: "", reasoning: "", toolCalls: [call("f", '{"a": 1}'), call("g", "{}")] },
  ],
  [
    "json",
    '[{"name": "f", "parameters": {"a": "x',
    { content: "", reasoning: "", toolCalls: [call("f", '{"a": "x', false)] },
  ],
  [
    "json",
    'Hm</think>\n[{"name": "f", "parameters": {"a": 1}}]',
    { content: "", reasoning: "Hm", toolCalls: [call("f", '{"a": 1}')] },
    "qwen3",
    true,
  ],
];

describe.each(CASES)("%j: %s", (output, text, wanted, reasoning, starts) => {
  const trimmed = ({ content, ...rest }: ParsedAnswer) => ({ ...rest, content: content.trim() });

  test("whole, by character, and cut in two anywhere", () => {
    const ways = [[text], [...text], ...Array.from(text, (_, i) => [text.slice(0, i), text.slice(i)])];
    for (const pieces of ways)
      expect({ pieces, ...trimmed(read(output, pieces, reasoning, starts)) }).toEqual({ pieces, ...wanted });
  });

  test("cut off anywhere, nothing is invented", () => {
    for (let end = 0; end < text.length; end++) {
      const { toolCalls } = read(output, [text.slice(0, end)], reasoning, starts);
      toolCalls.forEach((found, i) => {
        const whole = wanted.toolCalls[i]!;
        expect(found.name).toBe(whole.name);
        expect(whole.arguments.startsWith(found.arguments)).toBe(true);
        if (found.complete) expect(found.arguments).toBe(whole.arguments);
      });
    }
  });
});

test("the name comes before the first byte of the arguments is whole", () => {
  const events: string[] = [];
  const sink = {
    text() {},
    reasoning() {},
    toolStart: (i: number, name: string) => void events.push(`${i} ${name}`),
    toolArguments: (_: number, delta: string) => void events.push(delta),
    toolEnd: () => void events.push("end"),
  };
  const options = { tools: TOOLS, startsInReasoning: false, singleTokenMarkers: new Set<string>(), parseTools: true };
  const parser = createForcedCallParser({ named: "f" }, undefined, options);
  for (const piece of ["{", '"a"', ": 1", "}"]) parser.push(piece, sink);
  expect(events).toEqual(["0 f", "{", '"a"', ": 1", "}", "end"]);
});
