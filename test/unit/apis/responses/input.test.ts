import { describe, expect, test } from "bun:test";
import { inputToTurns } from "../../../../src/apis/responses/input.ts";
import type { Loose } from "../../../../src/apis/responses/schema.ts";
import { responseTools } from "../../../../src/apis/responses/tools.ts";
import type { Message } from "../../../../src/generation/conversation.ts";
import { Turns } from "../../../../src/generation/turns.ts";
import { atOnce } from "../../../../src/steps.ts";

const tools = responseTools([{ type: "namespace", name: "mail", tools: [{ type: "function", name: "send" }] }]);

function read(input: string | readonly Loose[], open: (blob: string) => string | undefined = () => undefined) {
  const turns = new Turns();
  const left = [...atOnce(inputToTurns(input, turns, { tools, open }))];
  return { messages: turns.messages as readonly Message[], left };
}

const output = (id: string, value: unknown = "ok"): Loose => ({
  type: "function_call_output",
  call_id: id,
  output: value,
});
const call = (id: string, more: Loose = {}): Loose => ({
  type: "function_call",
  call_id: id,
  name: "f",
  arguments: "{}",
  ...more,
});

describe("messages", () => {
  test("a text is the user's", () => {
    expect(read("Hi").messages).toEqual([{ role: "user", content: "Hi" }]);
  });

  test("with and without a type, in all roles, content as text or parts", () => {
    const { messages } = read([
      { role: "developer", content: "be brief" },
      { type: "message", role: "system", content: [{ type: "input_text", text: "rules" }] },
      {
        role: "user",
        content: [
          { type: "input_text", text: "a" },
          { type: "input_text", text: "b" },
        ],
      },
      {
        type: "message",
        id: "msg_1",
        status: "completed",
        role: "assistant",
        content: [{ type: "output_text", text: "c", annotations: [] }],
        phase: "final_answer",
      },
      { role: "assistant", content: [{ type: "refusal", refusal: "no" }] },
      { role: "user", content: [] },
    ]);
    expect(messages).toEqual([
      { role: "developer", content: "be brief" },
      { role: "system", content: "rules" },
      {
        role: "user",
        content: [
          { type: "text", text: "a" },
          { type: "text", text: "b" },
        ],
      },
      {
        role: "assistant",
        content: [
          { type: "text", text: "c" },
          { type: "text", text: "no" },
        ],
      },
      { role: "user", content: "" },
    ]);
  });
});

describe("calls and results", () => {
  test("an assistant's turn is one message: reasoning, text, calls; results in the order of their calls", () => {
    const { messages } = read([
      { role: "user", content: "go" },
      { type: "reasoning", id: "rs_1", summary: [], content: [{ type: "reasoning_text", text: "hm" }] },
      { role: "assistant", content: "on it" },
      call("call_1"),
      call("call_2", { name: "send", namespace: "mail", arguments: '{"to":1.0}' }),
      output("call_2", [{ type: "input_text", text: "sent" }]),
      output("call_1"),
    ]);
    expect(messages).toMatchObject([
      { role: "user" },
      {
        role: "assistant",
        reasoning: "hm",
        content: "on it",
        toolCalls: [
          { id: "call_1", name: "f", arguments: "{}" },
          { id: "call_2", name: "mail__send", arguments: '{"to":1.0}' },
        ],
      },
      { role: "tool", toolCallId: "call_1", content: "ok" },
      { role: "tool", toolCallId: "call_2", content: "sent" },
    ]);
  });

  test("free text of custom tools goes in as models write it", () => {
    const { messages } = read([
      { type: "custom_tool_call", call_id: "c", name: "run", input: 'a "b"' },
      { type: "custom_tool_call_output", call_id: "c", output: "done" },
    ]);
    expect(messages).toMatchObject([
      { toolCalls: [{ id: "c", name: "run", arguments: '{"input":"a \\"b\\""}' }] },
      { role: "tool", toolCallId: "c", content: "done" },
    ]);
  });

  test("nothing but a result is fine; so are values that are no text", () => {
    expect(read([output("call_9", { degrees: 4 })]).messages).toEqual([
      { role: "tool", toolCallId: "call_9", content: '{"degrees":4}' },
    ]);
    expect(read([call("c", { arguments: { a: 1 } })]).messages[0]?.toolCalls?.[0]?.arguments).toBe('{"a":1}');
  });
});

describe("reasoning", () => {
  const item = (more: Loose): Loose[] => [{ type: "reasoning", id: "rs_1", summary: [], ...more }];
  const raw = [{ type: "reasoning_text", text: "raw" }];
  const summary = [
    { type: "summary_text", text: "one" },
    { type: "summary_text", text: "two" },
  ];

  test("our own blob counts first, then the raw text, then the summary; foreign blobs are ignored", () => {
    const open = (blob: string) => (blob === "ours" ? "sealed" : undefined);
    const of = (more: Loose) => read(item(more), open).messages[0]?.reasoning;
    expect(of({ encrypted_content: "ours", content: raw })).toBe("sealed");
    expect(of({ encrypted_content: "gAAAA", content: raw, summary })).toBe("raw");
    expect(of({ encrypted_content: null, summary })).toBe("one\n\ntwo");
    expect(of({ encrypted_content: "gAAAA" })).toBeUndefined();
  });
});

describe("other items", () => {
  test("hosted calls with results are told as calls of tools", () => {
    const { messages, left } = read([
      { type: "mcp_call", id: "mcp_1", server_label: "docs", name: "search", arguments: '{"q":1}', output: "found" },
      { type: "code_interpreter_call", id: "ci_1", code: "1+1", outputs: [{ type: "logs", logs: "2" }] },
      { type: "local_shell_call", id: "lsh_1", call_id: "call_s", action: { type: "exec", command: ["ls"] } },
      { type: "local_shell_call_output", id: "call_s", output: "a b" },
      { type: "apply_patch_call", call_id: "call_p", operation: { type: "delete_file", path: "a" } },
      { type: "apply_patch_call_output", call_id: "call_p", status: "completed" },
    ]);
    expect(left).toEqual([]);
    expect(
      messages.map(({ role, toolCalls, content, toolCallId }) => [role, toolCalls?.[0]?.name, toolCallId, content]),
    ).toEqual([
      ["assistant", "search", undefined, ""],
      ["tool", undefined, "mcp_1", "found"],
      ["assistant", "code_interpreter", undefined, ""],
      ["tool", undefined, "ci_1", '[{"type":"logs","logs":"2"}]'],
      ["assistant", "local_shell", undefined, ""],
      ["tool", undefined, "call_s", "a b"],
      ["assistant", "apply_patch", undefined, ""],
      ["tool", undefined, "call_p", "completed"],
    ]);
    for (const { toolCalls = [] } of messages)
      for (const each of toolCalls) expect(typeof JSON.parse(each.arguments)).toBe("object");
  });

  test("what says nothing to a model is left out, never refused", () => {
    const types = [
      "web_search_call",
      "image_generation_call",
      "mcp_list_tools",
      "compaction_trigger",
      "configuration_update",
      "something_new",
      "compaction",
    ];
    const { messages, left } = read([
      ...types.map((type): Loose => ({ type, id: "x_1" })),
      { role: "user", content: "a" },
    ]);
    expect(messages).toEqual([{ role: "user", content: "a" }]);
    expect(left).toEqual(types);
  });

  test("a compaction of ours is opened: items, or a text", () => {
    const items = JSON.stringify([{ role: "user", content: "old" }]);
    const open = (blob: string) => (blob === "items" ? items : blob === "text" ? "[summary" : undefined);
    const of = (blob: string) => read([{ type: "compaction", encrypted_content: blob }], open);
    expect(of("items").messages).toEqual([{ role: "user", content: "old" }]);
    expect(of("text").messages).toEqual([{ role: "developer", content: "[summary" }]);
    expect(of("foreign").left).toEqual(["compaction"]);
  });
});

test.each<[string, Loose, string]>([
  ["no type and no role", { content: "a" }, "input[0].type"],
  ["no role, but an id", { id: "msg_1", content: "a" }, "input[0].type"],
  ["a role that is none", { role: "tool", content: "a" }, "input[0].role"],
  ["no content", { role: "user" }, "input[0].content"],
  ["content that is a number", { role: "user", content: 1 }, "input[0].content"],
  ["a part without a text", { role: "user", content: [{ type: "input_text" }] }, "input[0].content[0].text"],
  ["a part without a type", { role: "user", content: [{ text: "a" }] }, "input[0].content[0].type"],
  ["an image", { role: "user", content: [{ type: "input_image", image_url: "data:," }] }, "input[0].content[0].type"],
  ["an image as a result", output("c", [{ type: "input_image", image_url: "data:," }]), "input[0].output[0].type"],
  ["a result that is nothing", { type: "function_call_output", call_id: "c" }, "input[0].output"],
  ["a call without a name", { type: "function_call", call_id: "c", arguments: "" }, "input[0].name"],
])("%s is refused", (_, item, param) => {
  expect(() => read([item])).toThrow(expect.objectContaining({ status: 400, param }));
});
