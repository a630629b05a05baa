/** Calls written as JSON objects: what is one, and what becomes of objects that are none. */
import { describe, expect, test } from "bun:test";
import { foldEvents, type ParsedAnswer } from "../../../src/parsers/events.ts";
import { createOutputParser } from "../../../src/parsers/parser.ts";

function read(tool: string, pieces: readonly string[]): ParsedAnswer {
  const parser = createOutputParser(undefined, tool, {
    tools: [{ name: "run" }],
    startsInReasoning: false,
    singleTokenMarkers: new Set(),
    parseTools: true,
  });
  const { sink, answer } = foldEvents();
  for (const piece of pieces) parser.push(piece, sink);
  parser.finish(sink);
  return answer();
}

describe("objects that carry something else than arguments", () => {
  const marked: [string, (body: string) => string][] = [
    ["qwen", (body) => `<tool_call>\n${body}\n</tool_call>`],
    ["mistral", (body) => `[TOOL_CALLS] [${body}]`],
    ["mistral", (body) => `[TOOL_CALLS] ${body}`],
    ["internlm", (body) => `<|action_start|><|plugin|>\n${body}<|action_end|>`],
    ["nemotron", (body) => `<TOOLCALL>[${body}]</TOOLCALL>`],
    ["json", (body) => body],
    ["llama", (body) => body],
    ["sarashina", (body) => `<|tool_calls|>[${body}]`],
  ];
  const bodies = [
    '{"name": "run", "input": {"cmd": "x"}}',
    '{"name": "run", "argument": {"cmd": "x"}}',
    '{"name":"run","cmd":"ls"}',
    '{"cmd": {"a": [1]}, "name": "run"}',
    '{"name": "run", "arguments": 5}',
    '{"name": "run", "arguments": ["a"]}',
    '{"name": "run", "arguments": "ls"}',
    '{"arguments": true, "name": "run"}',
    '{"arguments": {"cmd": "a"}, "arguments": {"cmd": "b"}, "name": "run"}',
  ];
  for (const [tool, around] of marked) {
    test(`${around("…")}: byte for byte text in ${tool}`, () => {
      for (const body of bodies) {
        const text = `a ${around(body)} b`.slice(tool === "llama" ? 2 : 0);
        for (const pieces of [[text], [...text]])
          expect(read(tool, pieces)).toEqual({ content: text, reasoning: "", toolCalls: [] });
      }
    });
  }
  test("a whole call before one in a list stays one", () => {
    const text = '[TOOL_CALLS] [{"name": "run", "arguments": {"cmd": "a"}}, {"name": "run", "input": {"cmd": "b"}}]';
    const answer = read("mistral", [...text]);
    expect(answer.toolCalls.map((call) => [call.arguments, call.complete])).toEqual([['{"cmd": "a"}', true]]);
    expect(answer.content).toBe(', {"name": "run", "input": {"cmd": "b"}}]');
  });
  test("arguments that come twice leave the call unfinished, the second are text", () => {
    const body = '{"name": "run", "arguments": {"cmd": "a"}, "arguments": {"cmd": "b"}}';
    const answer = read("hermes", [...`<tool_call>\n${body}\n</tool_call>`]);
    expect(answer.toolCalls).toEqual([{ name: "run", id: undefined, arguments: '{"cmd": "a"}', complete: false }]);
    expect(answer.content).toBe(', "arguments": {"cmd": "b"}}\n');
  });
  test("no arguments, null, an empty string and a written object are arguments", () => {
    const given = (rest: string) =>
      read("hermes", [...`<tool_call>{"name": "run"${rest}}</tool_call>`]).toolCalls.map((call) => [
        call.arguments,
        call.complete,
      ]);
    for (const rest of ["", ', "id": "x", "type": "function"', ', "arguments": null', ', "arguments": ""'])
      expect(given(rest)).toEqual([["{}", true]]);
    expect(given(', "arguments": "{\\"cmd\\": 1.0}"')).toEqual([['{"cmd": 1.0}', true]]);
    expect(given(', "thought": "x", "arguments": {"cmd": "a"}')).toEqual([['{"cmd": "a"}', true]]);
  });
  test("cut behind the name, the call stays unfinished", () => {
    const answer = read("hermes", ['<tool_call>\n{"name": "run", "argum']);
    expect(answer.toolCalls).toEqual([{ name: "run", id: undefined, arguments: "", complete: false }]);
    expect(answer.content).toBe("");
  });
});
