import { expect, test } from "bun:test";
import { rawBody, rememberText } from "../../../src/server/raw-body.ts";

test.each<[unknown, boolean]>([
  [{ messages: [{ role: "user", content: "a" }], temperature: 1.0 }, false],
  [{ input: "a" }, false],
  [{ input: [{ type: "function_call", arguments: "{}" }, null, 1] }, false],
  [{ input: [[1, 2], [3]] }, false],
  [{ messages: [{ content: [{ type: "text", text: "a" }] }, { content: [{ type: "tool_use", input: null }] }] }, false],
  [{ tools: [] }, true],
  [{ text: { format: {} } }, true],
  [{ requests: [{ params: {} }] }, true],
  [{ output_config: {} }, true],
  [{ messages: [{ function_call: { name: "f", arguments: {} } }] }, true],
  [{ messages: [{ tool_calls: [{ function: { arguments: "{}" } }, { function: { arguments: {} } }] }] }, true],
  [{ messages: [{ content: "a" }, { content: [{ type: "tool_use", input: {} }] }] }, true],
  [{ input: [{ type: "function_call", arguments: {} }] }, true],
  [{ input: [{ type: "function_result", result: { a: 1 } }] }, true],
  [{ input: [{ type: "function_result", result: [{ type: "text" }] }] }, true],
])("%j is kept: %p", (body, kept) => {
  const text = JSON.stringify(body);
  const value = JSON.parse(text) as object;
  rememberText(value, text);
  expect(rawBody(value)).toBe(kept ? text : undefined);
});
