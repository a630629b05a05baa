/** Flaws that other servers are known for: the number is that of our list, the link in each name where it was reported. */
import { describe, expect, test } from "bun:test";
import { opensReasoning } from "../../../src/parsers/detect.ts";
import { foldEvents, type ParsedAnswer } from "../../../src/parsers/events.ts";
import { createOutputParser, type ParserOptions } from "../../../src/parsers/parser.ts";
import type { ToolSchema } from "../../../src/parsers/tools.ts";

const string = { type: "string" };
const tool = (name: string, properties: Record<string, unknown> = {}): ToolSchema => ({
  name,
  parameters: { type: "object", properties },
});
const TOOLS: ToolSchema[] = [
  tool("f", { city: string, path: string, n: { type: "integer" }, opt: { type: ["string", "null"] } }),
  tool("write", { content: string }),
  tool("run", { cmd: string }),
  tool("exec"),
  tool("list"),
  tool("search", { q: string }),
];

function parse(
  names: { tool?: string; reasoning?: string },
  pieces: readonly string[],
  more: Partial<ParserOptions> = {},
): ParsedAnswer {
  const parser = createOutputParser(names.reasoning, names.tool, {
    tools: TOOLS,
    startsInReasoning: false,
    singleTokenMarkers: new Set(),
    parseTools: true,
    ...more,
  });
  const { sink, answer } = foldEvents();
  for (const piece of pieces) parser.push(piece, sink);
  parser.finish(sink);
  return answer();
}

/** Name and arguments of each whole call, read whole and by characters alike. */
function calls(parser: string, text: string, more?: Partial<ParserOptions>): [string, string][] {
  const whole = parse({ tool: parser }, [text], more);
  expect(parse({ tool: parser }, [...text], more)).toEqual(whole);
  return whole.toolCalls.filter((call) => call.complete).map((call) => [call.name, call.arguments]);
}

const hermes = (body: string): string => `<tool_call>\n${body}\n</tool_call>`;
const xml = (name: string, ...parameters: [string, string][]): string =>
  `<tool_call>\n<function=${name}>\n${parameters.map(([k, v]) => `<parameter=${k}>\n${v}\n</parameter>\n`).join("")}</function>\n</tool_call>`;

describe("tool calls", () => {
  test("P1, vllm#22885: closing braces behind a number", () => {
    expect(calls("hermes", hermes('{"name":"f","arguments":{"n":5}}'))).toEqual([["f", '{"n":5}']]);
  });
  test("P2, vllm#11392: an empty object", () => {
    expect(calls("hermes", hermes('{"name":"list","arguments":{}}'))).toEqual([["list", "{}"]]);
  });
  test("P3, vllm#10979: raw and escaped characters keep their bytes", () => {
    const raw = '{"city":"東京","x":"\\u6771\\ud83d\\ude00","y":1.0,"z":12345678901234567890}';
    expect(calls("hermes", hermes(`{"name":"f","arguments":${raw}}`))).toEqual([["f", raw]]);
  });
  test("P4, vllm#35266: the opening brace when head and parameter come together", () => {
    const { toolCalls } = parse({ tool: "qwen3_coder" }, [
      "<tool_call>\n<function=run>\n<parameter=cmd>\nls",
      "\n</parameter>\n</function>\n</tool_call>",
    ]);
    expect(toolCalls.map((call) => call.arguments)).toEqual(['{"cmd": "ls"}']);
  });
  test("P5, vllm#22975: prose that mentions the marker goes on", () => {
    const parser = createOutputParser(undefined, "hermes", {
      tools: TOOLS,
      startsInReasoning: false,
      singleTokenMarkers: new Set(),
      parseTools: true,
    });
    const { sink, answer } = foldEvents();
    parser.push("Use the `<tool_call>` tag, then", sink);
    expect(answer().content).toBe("Use the `<tool_call>` tag, then");
    parser.push(` ${hermes('{"name":"list"}')}`, sink);
    parser.finish(sink);
    expect(answer().toolCalls).toHaveLength(1);
    expect(answer().content).toBe("Use the `<tool_call>` tag, then ");
  });
  test("P6, vllm#33965: a closer inside a value, and names that come twice", () => {
    const text = `${xml("run", ["cmd", "a</parameter>b"])}\n${xml("run", ["cmd", "x"])}`;
    expect(calls("qwen3_coder", text)).toEqual([
      ["run", '{"cmd": "a</parameter>b"}'],
      ["run", '{"cmd": "x"}'],
    ]);
  });
  test("P7, smg#1841: strings that look like something else", () => {
    for (const value of ['{"key":"v"}', "4", '"4"', "true", "null", "[1]"]) {
      const args = `{"content": ${JSON.stringify(value)}}`;
      expect(calls("qwen_xml", xml("write", ["content", value]))).toEqual([["write", args]]);
      const step3 = `<｜tool_calls_begin｜><｜tool_call_begin｜>function<｜tool_sep｜><steptml:invoke name="write"><steptml:parameter name="content">${value}</steptml:parameter></steptml:invoke><｜tool_call_end｜><｜tool_calls_end｜>`;
      expect(calls("step3", step3)).toEqual([["write", args]]);
      const glm = `<tool_call>write\n<arg_key>content</arg_key>\n<arg_value>${value}</arg_value>\n</tool_call>`;
      expect(calls("glm45_moe", glm)).toEqual([["write", args]]);
    }
  });
  test("P8, sglang#39136: unions", () => {
    expect(calls("qwen_xml", xml("f", ["opt", "null"]))).toEqual([["f", '{"opt": null}']]);
    expect(calls("qwen_xml", xml("f", ["opt", "nullable"]))).toEqual([["f", '{"opt": "nullable"}']]);
  });
  test("P9, sglang#37634: two calls in one piece", () => {
    const text = `${hermes('{"name":"f","arguments":{"n":1}}')}\n${hermes('{"name":"run","arguments":{"cmd":"x"}}')}`;
    expect(calls("hermes", text)).toEqual([
      ["f", '{"n":1}'],
      ["run", '{"cmd":"x"}'],
    ]);
  });
  test("P10, vllm#55082: a call of step3 in two pieces", () => {
    const { toolCalls } = parse({ tool: "step3" }, [
      '<｜tool_calls_begin｜><｜tool_call_begin｜>function<｜tool_sep｜><steptml:invoke name="run"><steptml:parameter name="cmd">l',
      "s</steptml:parameter></steptml:invoke><｜tool_call_end｜><｜tool_calls_end｜>",
    ]);
    expect(toolCalls.map((call) => call.arguments)).toEqual(['{"cmd": "ls"}']);
  });
  test("P11, vllm#45389: braces in strings under a forced choice", () => {
    const more = { forcedCalls: { name: undefined } };
    expect(calls("hermes", '[{"name":"f","parameters":{"city":"a } b"}}]', more)).toEqual([["f", '{"city":"a } b"}']]);
    expect(calls("hermes", '{"city":"a } b"}', { forcedCalls: { name: "f" } })).toEqual([["f", '{"city":"a } b"}']]);
  });
  test("P12, vllm#53739: cut inside a string", () => {
    const json = parse({ tool: "hermes" }, ['<tool_call>\n{"name":"write","arguments":{"content":"a <tool_c']);
    expect(json.toolCalls).toEqual([
      { name: "write", id: undefined, arguments: '{"content":"a <tool_c', complete: false },
    ]);
    const tagged = parse({ tool: "qwen_xml" }, ["<tool_call>\n<function=write>\n<parameter=content>\na\n</para"]);
    expect(tagged.toolCalls).toEqual([{ name: "write", id: undefined, arguments: '{"content": "a', complete: false }]);
  });
  const kimi = (id: string, args: string): string =>
    `<|tool_calls_section_begin|><|tool_call_begin|>${id}<|tool_call_argument_begin|>${args}<|tool_call_end|><|tool_calls_section_end|>`;
  test("P13, sglang#21377: ids of Kimi without punctuation", () => {
    for (const id of ["functionsexec5", "functions.exec5", "exec:5", "functions.exec:0", "exec5", "exec"]) {
      expect(calls("kimik2", kimi(id, "{}"))).toEqual([["exec", "{}"]]);
    }
  });
  test("P14, vllm#32146: the name inside the arguments", () => {
    expect(calls("kimik2", kimi("call_1", '{"name":"f","x":1}'))).toEqual([["f", '{"x":1}']]);
    expect(calls("kimik2", kimi("call_1", '{"x":1.0, "name": "f", "y":{}}'))).toEqual([["f", '{"x":1.0, "y":{}}']]);
  });
  test("P15, smg#1110: the own format under a forced choice", () => {
    const forced = { forcedCalls: { name: "f" } };
    expect(calls("kimik2", kimi("functions.f:0", '{"n":1}'), forced)).toEqual([["f", '{"n":1}']]);
  });
  test("P16, vllm#30722: lists as arguments", () => {
    expect(calls("llama4_pythonic", '[f(q=["a","b"])]')).toEqual([["f", '{"q": ["a", "b"]}']]);
  });
  test("P17, vllm#46863: JSON where Python was expected", () => {
    const text = '{"type":"function","name":"Bash","parameters":{"c":"ls"}}';
    expect(calls("pythonic", text)).toEqual([["Bash", '{"c":"ls"}']]);
  });
  test("P18, sglang#23071: parameters belong to their own invoke", () => {
    const invoke = (value: string) => `<invoke name="f">\n${value}</invoke>\n`;
    const path = (value: string) => `<parameter name="path">${value}</parameter>\n`;
    const text = `<minimax:tool_call>\n${invoke(path("a"))}${invoke(path("b"))}${invoke("")}</minimax:tool_call>`;
    expect(calls("minimax_m2", text)).toEqual([
      ["f", '{"path": "a"}'],
      ["f", '{"path": "b"}'],
      ["f", "{}"],
    ]);
  });
  test("P19, Rapid-MLX#921: nested objects", () => {
    const args = '{"filters": {"a": {"b": [{"c": 1}]}}, "z": 1}';
    expect(calls("llama", `<|python_tag|>{"name": "search", "parameters": ${args}}`)).toEqual([["search", args]]);
  });
  test("P20, llama.cpp#17376: the singular section marker", () => {
    const text = kimi("functions.f:0", "{}").replaceAll("tool_calls_section", "tool_call_section");
    expect(calls("kimik2", text)).toEqual([["f", "{}"]]);
  });
});

describe("reasoning", () => {
  const split = (reasoning: string, text: string, more?: Partial<ParserOptions>): [string, string] => {
    const whole = parse({ reasoning }, [text], more);
    expect(parse({ reasoning }, [...text], more)).toEqual(whole);
    return [whole.reasoning, whole.content];
  };
  test("P21, sglang#35083: text before the opener", () => {
    expect(split("base", "Sure.<think>a</think>b")).toEqual(["a", "Sure.b"]);
  });
  test("P22, sglang#4539: an answer under a grammar", () => {
    expect(split("deepseek_r1", '{"a":1}', { startsInReasoning: true, constrained: true })).toEqual(["", '{"a":1}']);
    expect(split("deepseek_r1", "x</think>{}", { startsInReasoning: true, constrained: true })).toEqual(["x", "{}"]);
  });
  test("P23, smg#1873: the template has written the opener", () => {
    expect(split("kimi_k25", "x</think>y", { startsInReasoning: true })).toEqual(["x", "y"]);
  });
  test("P24, vllm#32216: from reasoning to the tool section", () => {
    const text =
      "a<|tool_calls_section_begin|><|tool_call_begin|>functions.f:0<|tool_call_argument_begin|>{}<|tool_call_end|><|tool_calls_section_end|>";
    const answer = parse({ reasoning: "kimi_thinking", tool: "kimik2" }, [text], { startsInReasoning: true });
    expect(answer.reasoning).toBe("a");
    expect(answer.toolCalls.map((call) => call.name)).toEqual(["f"]);
  });
  test("P25, harmony#38: unexpected words in a header", () => {
    const text = '<|channel|>commentary to=functions.web-browsing nonsense <|constrain|>json<|message|>{"q":1}<|call|>';
    expect(calls("harmony", text)).toEqual([["web-browsing", '{"q":1}']]);
  });
  test("P26, frontend-crates#236: junk in the header, or no end of it", () => {
    expect(split("harmony", "<|channel|>finalx<|message|>hi")).toEqual(["", "hi"]);
    expect(split("harmony", "<|channel|>final hi there<|return|>")).toEqual(["", "hi there"]);
    expect(split("harmony", "<|channel|>analysis<|message|>a<|end|>left over")).toEqual(["a", "left over"]);
  });
  test("harmony: words of a header that never came to its end are text", () => {
    expect(split("harmony", "<|channel|>hello")).toEqual(["", "hello"]);
    expect(split("harmony", "<|start|>hello")).toEqual(["", "hello"]);
    expect(split("harmony", "<|channel|>anal")).toEqual(["", ""]);
    expect(split("harmony", "<|channel|>final hello<|channel|>analysis<|message|>a")).toEqual(["a", "hello"]);
  });
  test("P27, agentscope#1359: the prompt tells where an answer begins", () => {
    const closed = "<|im_start|>assistant\n<think>\n\n</think>\n\n";
    expect(opensReasoning(closed, "deepseek_r1")).toBe(false);
    expect(split("deepseek_r1", "plain", { startsInReasoning: opensReasoning(closed, "deepseek_r1") })).toEqual([
      "",
      "plain",
    ]);
  });
  test("P32, vllm#45636: a stop filter that holds text back does not cut a closer", () => {
    const filter = { push: (text: string) => text, end: () => "", stopped: false };
    const answer = parse({ reasoning: "base" }, ["<think>a</th", "ink>b"], { filter });
    expect([answer.reasoning, answer.content]).toEqual(["a", "b"]);
  });
});
