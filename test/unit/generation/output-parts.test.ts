import { expect, test } from "bun:test";
import { NO_CALLS } from "../../../src/generation/choice.ts";
import { type CallOptions, OutputParts } from "../../../src/generation/output-parts.ts";

const made = (more: Partial<CallOptions> = {}) =>
  new OutputParts({ ...NO_CALLS, callId: (id) => id ?? "new", mayCall: true, ...more });

test("white space waits for text, and is none before a call", () => {
  const text = made();
  text.text("\n");
  expect(text.isEmpty).toBe(true);
  text.text(" ");
  text.text("a");
  text.text("\n");
  expect(text.take()).toEqual([{ type: "text", text: "\n a\n" }]);
  const call = made();
  call.text("\n\n");
  call.toolStart(0, "f", undefined);
  expect(call.take()).toEqual([{ type: "tool_start", call: 0, id: "new", name: "f", kind: "function" }]);
  const nothing = made();
  nothing.text(" \n");
  nothing.finish();
  expect(nothing.take()).toEqual([{ type: "text", text: " \n" }]);
  const plain = made({ mayCall: false });
  plain.text("\n");
  expect(plain.take()).toEqual([{ type: "text", text: "\n" }]);
});

test("where one call is wanted, nothing comes of those behind it, even if it was cut off", () => {
  const parts = made({ single: true });
  parts.toolStart(0, "f", "a");
  parts.toolArguments(0, "{");
  parts.toolStart(1, "g", "b");
  parts.toolArguments(1, "{}");
  parts.toolEnd(1);
  expect(parts.take()).toEqual([
    { type: "tool_start", call: 0, id: "a", name: "f", kind: "function" },
    { type: "tool_arguments", call: 0, text: "{" },
  ]);
  expect([parts.satisfied, parts.complete]).toEqual([false, 0]);
});

test("where one call is wanted, nothing comes behind it", () => {
  const parts = made({ single: true });
  parts.text("a");
  parts.toolStart(0, "f", "a");
  parts.toolEnd(0);
  parts.text(" tail");
  parts.reasoning("thought");
  parts.finish();
  expect(parts.take().map(({ type }) => type)).toEqual(["text", "tool_start", "tool_end"]);
});

test("the text of a custom tool, also of a call that was cut off or followed by another", () => {
  const parts = made({ customTools: new Set(["f"]) });
  parts.toolStart(0, "f", "a");
  parts.toolArguments(0, '{"input": "a\\n');
  parts.toolStart(1, "f", "b");
  parts.toolArguments(1, '{"x": ');
  parts.finish();
  expect(parts.take()).toEqual([
    { type: "tool_start", call: 0, id: "a", name: "f", kind: "custom" },
    { type: "tool_arguments", call: 0, text: "a\n" },
    { type: "tool_start", call: 1, id: "b", name: "f", kind: "custom" },
    { type: "tool_arguments", call: 1, text: '{"x": ' },
  ]);
});

test("text alone is taken as it is; before anything else it is a part like others", () => {
  const parts = made({ mayCall: false });
  expect(parts.isText).toBe(false);
  parts.text("a");
  parts.text("b");
  expect([parts.isText, parts.isEmpty, parts.takeText()]).toEqual([true, false, "ab"]);
  expect([parts.isText, parts.isEmpty, parts.take()]).toEqual([false, true, []]);
  parts.text("c");
  parts.reasoning("d");
  expect(parts.isText).toBe(false);
  parts.text("e");
  parts.text("f");
  expect(parts.take()).toEqual([
    { type: "text", text: "c" },
    { type: "reasoning", text: "d" },
    { type: "text", text: "ef" },
  ]);
  parts.text("g");
  parts.toolStart(0, "f", "a");
  expect(parts.take()[0]).toEqual({ type: "text", text: "g" });
});
