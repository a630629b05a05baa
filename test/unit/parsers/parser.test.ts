import { describe, expect, test } from "bun:test";
import { UnsupportedError } from "../../../src/errors.ts";
import { StopMatcher } from "../../../src/generation/stops.ts";
import { foldEvents, type ParsedAnswer } from "../../../src/parsers/events.ts";
import { parserNames, UnknownParserError } from "../../../src/parsers/names.ts";
import { createOutputParser, type OutputParser, type ParserOptions } from "../../../src/parsers/parser.ts";
import { processorMs } from "../../support/processor-time.ts";

const TOOLS = [{ name: "run", parameters: { type: "object", properties: { cmd: { type: "string" } } } }];
const CALL = '<tool_call>\n{"name": "run", "arguments": {"cmd": "ls"}}\n</tool_call>';

function make(
  reasoning: string | undefined,
  tool: string | undefined,
  more: Partial<ParserOptions> = {},
): OutputParser {
  return createOutputParser(reasoning, tool, {
    tools: TOOLS,
    startsInReasoning: false,
    singleTokenMarkers: new Set(),
    parseTools: true,
    ...more,
  });
}

/** Feeds text; markers between bars, `|…|`, go through `special`. */
function feed(parser: OutputParser, pieces: readonly (string | { special: string })[]): ParsedAnswer {
  const { sink, answer } = foldEvents();
  for (const piece of pieces) {
    if (typeof piece === "string") parser.push(piece, sink);
    else parser.special(piece.special, sink);
  }
  parser.finish(sink);
  return answer();
}

/** Stop strings as the generation finds them. */
function stopAt(...stops: string[]) {
  const matcher = new StopMatcher(stops, false);
  return {
    push: (text: string) => matcher.push(text),
    end: () => matcher.end(),
    get stopped() {
      return matcher.matched !== undefined;
    },
  };
}

describe("names", () => {
  test("every name makes a parser", () => {
    const { reasoning, tool } = parserNames();
    for (const name of reasoning) expect(() => make(name, undefined)).not.toThrow();
    for (const name of tool) expect(() => make(undefined, name)).not.toThrow();
    expect(new Set(reasoning).size).toBe(reasoning.length);
    expect(new Set(tool).size).toBe(tool.length);
  });
  test("a name that does not exist is refused, with those that do", () => {
    expect(() => make(undefined, "nope")).toThrow(UnknownParserError);
    expect(() => make("nope", undefined)).toThrow(/reasoning parser 'nope'.*deepseek_r1/);
    expect(() => make(undefined, "toString")).toThrow(UnknownParserError);
  });
  test("a format that carries both does not go with another one's calls", () => {
    expect(() => make("harmony", "qwen")).toThrow(UnsupportedError);
    expect(() => make("base", "harmony")).not.toThrow();
  });
});

describe("markers as tokens", () => {
  const singles = { singleTokenMarkers: new Set(["<tool_call>", "</tool_call>", "<think>", "</think>"]) };
  test("text that looks like one is text", () => {
    const answer = feed(make("base", "hermes", singles), [`<think>a</think>${CALL}`]);
    expect(answer).toEqual({ content: `<think>a</think>${CALL}`, reasoning: "", toolCalls: [] });
  });
  test("a token counts", () => {
    const answer = feed(make("base", "hermes", singles), [
      ...[{ special: "<think>" }, "a </think> b", { special: "</think>" }],
      ...[
        { special: "<tool_call>" },
        '\n{"name": "run", "arguments": {"cmd": "</tool_call>',
        { special: "</tool_call>" },
      ],
      ...['"}}\n', { special: "</tool_call>" }],
    ]);
    expect(answer.reasoning).toBe("a </think> b");
    expect(answer.content).toBe("");
    expect(answer.toolCalls).toEqual([
      { name: "run", id: undefined, arguments: '{"cmd": "</tool_call></tool_call>"}', complete: true },
    ]);
  });
  test("one that is none at its place comes out as text", () => {
    const answer = feed(make(undefined, "hermes", singles), ["the ", { special: "<tool_call>" }, " tag"]);
    expect(answer.content).toBe("the <tool_call> tag");
  });
  test("a token that is no marker is text", () => {
    expect(feed(make(undefined, "hermes", singles), [{ special: "<|im_end|>" }]).content).toBe("<|im_end|>");
  });
  test("a marker of several tokens, one of which is special", () => {
    const parser = make(undefined, "deepseek32", { singleTokenMarkers: new Set(["｜DSML｜"]) });
    const bar = { special: "｜DSML｜" };
    const answer = feed(parser, [
      ...["<", bar, "function_calls>\n<", bar, 'invoke name="run">\n<', bar, 'parameter name="cmd" string="true">ls</'],
      ...[bar, "parameter>\n</", bar, "invoke>\n</", bar, "function_calls>"],
    ]);
    expect(answer.toolCalls.map((call) => call.arguments)).toEqual(['{"cmd": "ls"}']);
    expect(answer.content).toBe("");
  });
});

describe("tool_choice none", () => {
  test("markup of calls stays text, reasoning does not", () => {
    const answer = feed(make("qwen3", "hermes", { parseTools: false }), [`<think>a</think>${CALL}`]);
    expect(answer).toEqual({ content: CALL, reasoning: "a", toolCalls: [] });
    const body = '<|channel|>commentary to=functions.run<|message|>{"cmd":"ls"}<|call|>';
    expect(feed(make("harmony", "harmony", { parseTools: false }), [body]).content).toBe('{"cmd":"ls"}');
  });
});

describe("forced calls", () => {
  const named = { forcedCalls: { name: "run" } };
  test("bare arguments are the call that was named", () => {
    const answer = feed(make("qwen3", "hermes", named), ["<think>a</think>\n", '{"cmd": ', '"ls"}\n']);
    expect(answer.toolCalls).toEqual([{ name: "run", id: undefined, arguments: '{"cmd": "ls"}', complete: true }]);
    expect([answer.reasoning, answer.content]).toEqual(["a", ""]);
  });
  test("cut off, the call stays unfinished", () => {
    const [call] = feed(make(undefined, undefined, named), ['{"cmd": "l']).toolCalls;
    expect(call).toEqual({ name: "run", id: undefined, arguments: '{"cmd": "l', complete: false });
  });
  test("a list, or the family's own format", () => {
    const forced = { forcedCalls: { name: undefined } };
    const list = '[{"name": "run", "parameters": {"cmd": "a"}}, {"name": "run", "parameters": {"cmd": "b"}}]';
    expect(feed(make(undefined, "kimik2", forced), [list]).toolCalls.map((call) => call.arguments)).toEqual([
      '{"cmd": "a"}',
      '{"cmd": "b"}',
    ]);
    expect(feed(make(undefined, "hermes", forced), [CALL]).toolCalls).toHaveLength(1);
    expect(feed(make(undefined, "hermes", named), [CALL]).toolCalls).toHaveLength(1);
  });
});

describe("stop strings", () => {
  test("they end visible text, not reasoning", () => {
    const answer = feed(make("base", "hermes", { filter: stopAt("STOP") }), ["<think>STOP</think>a ST", `OP b${CALL}`]);
    expect(answer).toEqual({ content: "a ", reasoning: "STOP", toolCalls: [] });
  });
  test("what they hold back comes in the end", () => {
    expect(feed(make("base", "hermes", { filter: stopAt("STOP") }), ["a ST"]).content).toBe("a ST");
  });
  test("they count in the text of calls", () => {
    const answer = feed(make(undefined, "hermes", { filter: stopAt('"ls') }), [CALL]);
    expect(answer.toolCalls).toEqual([{ name: "run", id: undefined, arguments: '{"cmd": ', complete: false }]);
  });
  test("special tokens pass through in their place", () => {
    const singles = new Set(["<tool_call>", "</tool_call>"]);
    for (const stop of ["xyz", "<tool_callx", "a<", ">\n\n"]) {
      const parser = make(undefined, "hermes", { filter: stopAt(stop), singleTokenMarkers: singles });
      const body = CALL.slice("<tool_call>".length, -"</tool_call>".length);
      const answer = feed(parser, ["a", { special: "<tool_call>" }, body, { special: "</tool_call>" }, "b"]);
      if (stop === "a<") expect(answer.content).toBe("");
      else expect([answer.content, answer.toolCalls.length]).toEqual(["ab", 1]);
    }
  });
  test("in a format that carries both they end what is final text", () => {
    const text =
      "<|channel|>analysis<|message|>STOP<|end|><|start|>assistant<|channel|>final<|message|>a STOP b<|return|>";
    const answer = feed(make("harmony", "harmony", { filter: stopAt("STOP") }), [...text]);
    expect(answer).toEqual({ content: "a ", reasoning: "STOP", toolCalls: [] });
  });
  test("reasoning and calls end what waits in the text before them", () => {
    const say = (channel: string, text: string, end: string) =>
      `<|start|>assistant<|channel|>${channel}<|message|>${text}${end}`;
    const call = say("commentary to=functions.run", '{"cmd": "ls"}', "<|call|>");
    for (const pieces of [(text: string) => [text], (text: string) => [...text]]) {
      const harmony = (text: string, ...stops: string[]) =>
        feed(make("harmony", "harmony", { filter: stopAt(...stops) }), pieces(text));
      const final = say("final", "a STOP", "<|end|>");
      expect(harmony(final + call, "STOP", "STOP here")).toEqual({ content: "a ", reasoning: "", toolCalls: [] });
      expect(harmony(final + say("analysis", "b", "<|end|>"), "STOP", "STOP here").reasoning).toBe("");
      expect(harmony(final + call, "STOP here")).toMatchObject({ content: "a STOP", toolCalls: [{ name: "run" }] });
      const thoughts = feed(make("base", "hermes", { filter: stopAt("STOP", "STOP here") }), [
        ...pieces("<think>a</think>b STOP<think>c</think> here"),
      ]);
      expect(thoughts.content).toBe("b ");
      expect(thoughts.reasoning).not.toContain("c");
    }
  });
});

describe("halves of characters", () => {
  test("a pair that comes in two pieces is one character", () => {
    const parser = make(undefined, "qwen_xml");
    const text = "<tool_call>\n<function=run>\n<parameter=cmd>\n😀\n</parameter>\n</function>\n</tool_call>";
    const { sink, answer } = foldEvents();
    for (const unit of text.split("")) parser.push(unit, sink);
    parser.finish(sink);
    expect(answer().toolCalls.map((call) => call.arguments)).toEqual(['{"cmd": "😀"}']);
  });
  test("half a pair at the end is given out", () => {
    expect(feed(make(undefined, "hermes"), ["a\ud83d"]).content).toBe("a\ud83d");
  });
});

describe("hostile answers take linear time", () => {
  const LENGTH = 200_000;
  const inputs: readonly [string, string | undefined, string][] = [
    ["json", undefined, "[".repeat(LENGTH)],
    ["json", undefined, "{".repeat(LENGTH)],
    ["json", undefined, '{"a":'.repeat(LENGTH / 5)],
    ["json", undefined, `{"arguments": "${"x".repeat(LENGTH)}`],
    ["pythonic", undefined, "[".repeat(LENGTH)],
    ["pythonic", undefined, `[f(a=${"[".repeat(LENGTH)}`],
    ["pythonic", undefined, "[f(".repeat(LENGTH / 3)],
    ["hermes", undefined, "<tool_call>".repeat(LENGTH / 11)],
    ["hermes", undefined, `<tool_call>${" ".repeat(LENGTH)}`],
    ["qwen_xml", undefined, `<function=f>\n<parameter=a>\n${"</parameter>\n ".repeat(LENGTH / 14)}`],
    ["qwen_xml", undefined, `<function=f>\n<parameter=a>\n${"1".repeat(LENGTH)}`],
    ["kimik2", undefined, "<|tool_call_begin|>".repeat(LENGTH / 19)],
    ["harmony", undefined, "<|channel|>x".repeat(LENGTH / 12)],
    [
      "minimax_m3",
      undefined,
      `]<]minimax[>[<tool_call>]<]minimax[>[<invoke name="f">${"]<]minimax[>[<a>".repeat(LENGTH / 16)}`,
    ],
    ["hy_v4", undefined, "<tool_calls><tool_call>f".repeat(LENGTH / 24)],
    ["apertus", undefined, '<|tools_prefix|>[{"f": '.repeat(LENGTH / 23)],
    ["plamo3", undefined, "<|plamo:begin_tool_requests:plamo|>".repeat(LENGTH / 35)],
    ["harmony", undefined, `<|channel|>${"a ".repeat(LENGTH / 2)}`],
    ["kimi_k3", "kimi_k3", "<|open|>".repeat(LENGTH / 8)],
    ["gemma4", undefined, `<|tool_call>call:f{${"a:{".repeat(LENGTH / 3)}`],
    ["hermes", "qwen3", "<think><tool_call>".repeat(LENGTH / 18)],
    ["hermes", "hunyuan_a13b", "\n</think".repeat(LENGTH / 8)],
  ];
  for (const [tool, reasoning, input] of inputs) {
    test(`${tool}: ${JSON.stringify(input.slice(0, 40))}`, () => {
      const start = processorMs();
      const parser = make(reasoning, tool);
      const { sink, answer } = foldEvents();
      for (let at = 0; at < input.length; at += 4) parser.push(input.slice(at, at + 4), sink);
      parser.finish(sink);
      const { content, toolCalls } = answer();
      expect(content.length + toolCalls.length).toBeGreaterThan(0);
      expect(processorMs() - start).toBeLessThan(3000);
    });
  }
});

describe("what is certain goes out at once", () => {
  const { reasoning, tool } = parserNames();
  const TEXT = "A long answer, 5 > 3.";
  const pushAll = (parser: OutputParser, said: (answer: ParsedAnswer) => string) => {
    const { sink, answer } = foldEvents();
    for (let at = 0; at < TEXT.length; at++) {
      parser.push(TEXT[at]!, sink);
      expect(said(answer())).toBe(TEXT.slice(0, at + 1));
    }
  };
  test("text, in every format", () => {
    for (const name of tool) pushAll(make(undefined, name), (answer) => answer.content);
    for (const name of reasoning) pushAll(make(name, undefined), (answer) => answer.content);
  });
  test("reasoning, in every format that need not wait", () => {
    for (const name of reasoning) {
      if (name === "kimi_k3" || /^(?:passthrough|none|identity)$|append/.test(name)) continue;
      pushAll(make(name, undefined, { startsInReasoning: true }), (answer) => answer.reasoning);
    }
  });
  test("arguments and strings of tagged formats", () => {
    const heads: readonly [string, string, string][] = [
      ["hermes", '<tool_call>\n{"name": "run", "arguments": ', '{"cmd": "l, s'],
      ["deepseek31", "<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>run<｜tool▁sep｜>", '{"cmd": "l, s'],
      ["harmony", "<|channel|>commentary to=functions.run<|message|>", '{"cmd": "l, s'],
      ["qwen_xml", "<tool_call>\n<function=run>\n<parameter=cmd>\n", "ls -l /"],
      ["glm45_moe", "<tool_call>run\n<arg_key>cmd</arg_key>\n<arg_value>", "ls -l /"],
      ["minimax_m2", '<minimax:tool_call>\n<invoke name="run">\n<parameter name="cmd">', "ls -l /"],
    ];
    for (const [name, head, body] of heads) {
      const parser = make(undefined, name);
      const { sink, answer } = foldEvents();
      parser.push(head, sink);
      for (let at = 0; at < body.length; at++) {
        parser.push(body[at]!, sink);
        expect(answer().toolCalls[0]?.name).toBe("run");
        expect(answer().toolCalls[0]?.arguments.endsWith(body.slice(0, at + 1))).toBe(true);
      }
    }
  });
  test("the name of a call, before its arguments", () => {
    const parser = make(undefined, "hermes");
    const { sink, answer } = foldEvents();
    parser.push('<tool_call>\n{"name": "run", "arguments": {', sink);
    expect(answer().toolCalls).toEqual([{ name: "run", id: undefined, arguments: "{", complete: false }]);
  });
});
