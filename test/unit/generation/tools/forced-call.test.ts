import { describe, expect, test } from "bun:test";
import { plannedParsing } from "../../../../src/apis/shared/planning.ts";
import { TEXT_ONLY } from "../../../../src/generation/parsing.ts";
import { createForcedCallParser } from "../../../../src/generation/tools/forced-call.ts";
import { foldEvents, type ParsedAnswer } from "../../../../src/parsers/events.ts";

type Output = Parameters<typeof createForcedCallParser>[0];
const TOOLS = [{ name: "f" }, { name: "g" }];

function read(
  output: Output,
  pieces: readonly string[],
  reasoning?: string,
  startsInReasoning = false,
  tool?: string,
): ParsedAnswer {
  const { sink, answer } = foldEvents();
  const options = { tools: TOOLS, startsInReasoning, singleTokenMarkers: new Set<string>(), parseTools: true };
  const parser = createForcedCallParser(output, { reasoning, tool }, options);
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
  const parser = createForcedCallParser({ named: "f" }, { reasoning: undefined, tool: undefined }, options);
  for (const piece of ["{", '"a"', ": 1", "}"]) parser.push(piece, sink);
  expect(events).toEqual(["0 f", "{", '"a"', ": 1", "}", "end"]);
});

/** The format of a model's own, by its tool parser. */
const NATIVE: readonly [string, string, string][] = [
  ["pythonic", '[f(a="x")]', '{"a": "x"}'],
  ["olmo3", '<function_calls>\nf(a="x")\n</function_calls>', '{"a": "x"}'],
  ["gemma4", '<|tool_call>call:f{a:<|"|>x<|"|>}<tool_call|>', '{"a":"x"}'],
  ["mistral", '[TOOL_CALLS] [{"name": "f", "arguments": {"a": "x"}}]', '{"a": "x"}'],
  ["hermes", '<tool_call>\n{"name": "f", "arguments": {"a": "x"}}\n</tool_call>', '{"a": "x"}'],
  [
    "kimik2",
    '<|tool_calls_section_begin|><|tool_call_begin|>functions.f:0<|tool_call_argument_begin|>{"a": "x"}<|tool_call_end|><|tool_calls_section_end|>',
    '{"a": "x"}',
  ],
  ["harmony", '<|channel|>commentary to=functions.f <|constrain|>json<|message|>{"a": "x"}<|call|>', '{"a": "x"}'],
];

describe.each(NATIVE)("%s: P15, smg#1110", (tool, text, args) => {
  const reasoning = tool === "harmony" ? "harmony" : "qwen3";
  const told = (output: Output, answer: string, size: number) => {
    const pieces = answer.match(new RegExp(`.{1,${size}}`, "gsu"))!;
    const { content, toolCalls } = read(output, pieces, reasoning, false, tool);
    return { content, calls: toolCalls.map((found) => [found.name, found.arguments, found.complete]) };
  };

  test("the own format under a forced choice", () => {
    for (const output of ["json", { named: "f" }] as const)
      for (const size of [1, 7, 1000])
        expect(told(output, text, size)).toEqual({ content: "", calls: [["f", args, true]] });
  });

  test("and the JSON that was forced", () => {
    for (const size of [1, 7, 1000]) {
      expect(told({ named: "f" }, '{"a": 1.0}', size)).toEqual({ content: "", calls: [["f", '{"a": 1.0}', true]] });
      const list = '[{"name": "f", "parameters": {"a": "}"}}, {"name": "g", "parameters": {}}]';
      const calls = [
        ["f", '{"a": "}"}', true],
        ["g", "{}", true],
      ];
      expect(told("json", list, size)).toEqual({ content: "", calls });
    }
  });
});

test("the plan of a required call reads the own format of the model as well", () => {
  for (const [tool, text, args] of NATIVE) {
    const names = { reasoning: tool === "harmony" ? "harmony" : undefined, tool };
    const tools = [{ type: "function", name: "f", strict: false }] as const;
    const plan = {
      parse: true,
      mustCall: true,
      jsonAnswer: false,
      output: "json",
      constraint: undefined,
      single: false,
      tools,
    } as const;
    const options = { constrained: true, isForced: false };
    const parsing = plannedParsing(TEXT_ONLY, names, { plan, startsInReasoning: false }, options)!;
    const { sink, answer } = foldEvents();
    const parser = parsing.parser(undefined);
    parser.push(text, sink);
    parser.finish(sink);
    expect(answer().toolCalls.map((found) => [found.name, found.arguments])).toEqual([["f", args]]);
  }
});

describe("the bare text of a custom tool", () => {
  const TEXT = 'say "hi" \\ 👩‍👩‍👧\n<tool_call>\n{"input": 1}';
  const input = (answer: ParsedAnswer) =>
    answer.toolCalls.map((found) => [found.name, JSON.parse(found.arguments), found.complete]);

  test("is its input to the letter, however it is cut, behind the reasoning", () => {
    for (const pieces of [
      [TEXT],
      [...TEXT],
      TEXT.split(""),
      Array.from(TEXT, (_, i) => [TEXT.slice(0, i), TEXT.slice(i)]).flat(),
    ]) {
      const whole = pieces.join("");
      expect(input(read({ text: "c" }, pieces))).toEqual([["c", { input: whole }, true]]);
    }
    const thought = read({ text: "c" }, ["<think>\nHm\n</think>", TEXT], "qwen3");
    expect([thought.reasoning, thought.content, input(thought)]).toEqual([
      "\nHm\n",
      "",
      [["c", { input: TEXT }, true]],
    ]);
  });

  test("may be empty", () => {
    expect(input(read({ text: "c" }, []))).toEqual([["c", { input: "" }, true]]);
  });
});
