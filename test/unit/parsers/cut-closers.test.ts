/** Answers that end inside the closer of a value: its begin is markup, and none of it gets into the arguments. */
import { expect, test } from "bun:test";
import { foldEvents } from "../../../src/parsers/events.ts";
import { createOutputParser } from "../../../src/parsers/parser.ts";

const TOOLS = [
  { name: "f", parameters: { type: "object", properties: { city: { type: "string" }, days: { type: "integer" } } } },
];

const dsml = (key: string, isString: boolean, rest: string) =>
  `<｜DSML｜function_calls>\n<｜DSML｜invoke name="f">\n<｜DSML｜parameter name="${key}" string="${isString}">${rest}`;
const glm = (rest: string) => `<tool_call>f\n<arg_key>city</arg_key>\n<arg_value>${rest}`;
const xml = (key: string, rest: string) => `<tool_call>\n<function=f>\n<parameter=${key}>\n${rest}`;

/** Parser, text up to the end of the value, what closes it, the arguments while it is open, and once it is closed. */
const CASES: readonly [string, string, string, string, string][] = [
  ["qwen_xml", xml("city", "Rome"), "\n</parameter>", '{"city": "Rome', '{"city": "Rome"'],
  ["qwen_xml", xml("days", "2"), "\n</parameter>", '{"days": 2', '{"days": 2'],
  ["qwen_xml", xml("other", "Tru"), "\n</parameter>", '{"other": Tru', '{"other": "Tru"'],
  ["deepseek32", dsml("city", true, "Rome"), "</｜DSML｜parameter>", '{"city": "Rome', '{"city": "Rome"'],
  ["deepseek32", dsml("days", false, "2"), "</｜DSML｜parameter>", '{"days": 2', '{"days": 2'],
  ["glm45_moe", glm("Rome"), "</arg_value>", '{"city": "Rome', '{"city": "Rome"'],
];
/** What stands behind the closer of the value, and may be cut too. */
const BEHIND: Readonly<Record<string, string>> = {
  qwen_xml: "\n</function>",
  deepseek32: "\n</｜DSML｜invoke>",
  glm45_moe: "\n</tool_call>",
};

test.each(CASES)("%s %j", (tool, before, closer, open, closed) => {
  const read = (pieces: readonly string[]) => {
    const parser = createOutputParser(undefined, tool, {
      tools: TOOLS,
      startsInReasoning: false,
      singleTokenMarkers: new Set(),
      parseTools: true,
    });
    const { sink, answer } = foldEvents();
    for (const piece of pieces) parser.push(piece, sink);
    parser.finish(sink);
    return answer();
  };
  const unfinished = (args: string) => ({
    content: "",
    reasoning: "",
    toolCalls: [{ name: "f", id: undefined, arguments: args, complete: false }],
  });
  const text = before + closer + BEHIND[tool]!;
  for (let end = before.length; end < text.length; end++) {
    const cut = text.slice(0, end);
    const wanted = unfinished(end < before.length + closer.length ? open : closed);
    for (const pieces of [[cut], [...cut]]) expect({ cut, ...read(pieces) }).toEqual({ cut, ...wanted });
  }
});

test("the closer of the call in the place of the value's, cut behind it", () => {
  const parser = createOutputParser(undefined, "qwen_xml", {
    tools: TOOLS,
    startsInReasoning: false,
    singleTokenMarkers: new Set(),
    parseTools: true,
  });
  const { sink, answer } = foldEvents();
  parser.push(`${xml("city", "Rome")}\n</function>\n</tool`, sink);
  parser.finish(sink);
  expect(answer().toolCalls).toEqual([{ name: "f", id: undefined, arguments: '{"city": "Rome', complete: false }]);
  expect(answer().content).toBe("");
});
