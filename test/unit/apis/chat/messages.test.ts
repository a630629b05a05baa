import { describe, expect, test } from "bun:test";
import { chatConversation } from "../../../../src/apis/chat/messages.ts";
import { GatewayError } from "../../../../src/errors.ts";
import { encodePrompt, renderPrompt } from "../../../../src/generation/prompt.ts";
import { compileModelTemplate } from "../../../../src/template/model-template.ts";
import { demoTemplate, demoTokenizer } from "../../generation/demo-tokenizer.ts";
import { checked } from "./requests.ts";

const convert = (messages: unknown[], more: Record<string, unknown> = {}) =>
  chatConversation(checked({ messages, ...more }));

function refusal(messages: unknown[], more: Record<string, unknown> = {}): unknown {
  try {
    convert(messages, more);
  } catch (error) {
    if (error instanceof GatewayError) return { status: error.status, param: error.param };
    throw error;
  }
  throw new Error("it was taken");
}

describe("messages", () => {
  test.each<[Record<string, unknown>, Record<string, unknown>]>([
    [
      { role: "system", content: "s" },
      { role: "system", content: "s" },
    ],
    [
      { role: "developer", content: "d" },
      { role: "developer", content: "d" },
    ],
    [
      { role: "user", content: "u", name: "ann" },
      { role: "user", content: "u", name: "ann" },
    ],
    [
      { role: "user", content: "" },
      { role: "user", content: "" },
    ],
    [
      { role: "user", content: [] },
      { role: "user", content: "" },
    ],
    [
      {
        role: "user",
        content: [
          { type: "text", text: "a" },
          { type: "text", text: "b" },
        ],
      },
      {
        role: "user",
        content: [
          { type: "text", text: "a" },
          { type: "text", text: "b" },
        ],
      },
    ],
    [
      { role: "assistant", content: null },
      { role: "assistant", content: "" },
    ],
    [{ role: "assistant" }, { role: "assistant", content: "" }],
    [
      {
        role: "assistant",
        content: [
          { type: "text", text: "a" },
          { type: "refusal", refusal: "no" },
        ],
      },
      {
        role: "assistant",
        content: [
          { type: "text", text: "a" },
          { type: "text", text: "no" },
        ],
      },
    ],
    [
      { role: "assistant", content: "a", reasoning_content: "r" },
      { role: "assistant", content: "a", reasoning: "r" },
    ],
    [
      { role: "assistant", content: "a", reasoning: "r" },
      { role: "assistant", content: "a", reasoning: "r" },
    ],
    [
      { role: "tool", content: "t", tool_call_id: "call_1" },
      { role: "tool", content: "t", toolCallId: "call_1" },
    ],
    [
      { role: "user", content: "u", name: null, unknown: [1] },
      { role: "user", content: "u" },
    ],
    [
      { role: "assistant", content: "a", tool_calls: [], function_call: null },
      { role: "assistant", content: "a" },
    ],
    [
      { role: "assistant", content: "a", thinking: "t", reasoning: "r" },
      { role: "assistant", content: "a", reasoning: "t" },
    ],
    [
      { role: "assistant", content: "a", thinking: { type: "enabled" } },
      { role: "assistant", content: "a" },
    ],
    [
      { role: "assistant", content: null, refusal: "no" },
      { role: "assistant", content: "no" },
    ],
    [
      {
        role: "assistant",
        tool_calls: [
          { id: "call_1", type: "function", function: { name: "f", arguments: '{"a": 1.0}' } },
          { id: "call_2", type: "custom", custom: { name: "g", input: 'say "hi"' } },
          { function: { name: "h" } },
        ],
      },
      {
        role: "assistant",
        content: "",
        withoutContent: true,
        toolCalls: [
          { id: "call_1", name: "f", arguments: '{"a": 1.0}' },
          { id: "call_2", name: "g", arguments: '{"input":"say \\"hi\\""}' },
          { id: "", name: "h", arguments: "" },
        ],
      },
    ],
    [
      { role: "assistant", content: "x", function_call: { name: "f", arguments: "{}" } },
      { role: "assistant", content: "x", toolCalls: [{ id: "", name: "f", arguments: "{}" }] },
    ],
    [
      { role: "function", name: "f", content: "t" },
      { role: "tool", name: "f", content: "t" },
    ],
  ])("%j", (message, expected) => {
    expect(convert([message]).messages).toEqual([expected as never]);
  });

  test.each<[Record<string, unknown>, string]>([
    [{ role: "robot", content: "x" }, "messages[0].role"],
    [{ role: "toString", content: "x" }, "messages[0].role"],
    [{ role: "__proto__", content: "x" }, "messages[0].role"],
    [{ role: "user" }, "messages[0].content"],
    [{ role: "user", content: null }, "messages[0].content"],
    [{ role: "user", content: [{ type: "text" }] }, "messages[0].content[0].text"],
    [{ role: "user", content: [{ type: "image_url", image_url: { url: "u" } }] }, "messages[0].content[0].type"],
    [{ role: "user", content: [{ type: "refusal", refusal: "r" }] }, "messages[0].content[0].type"],
    [{ role: "assistant", content: "x", tool_calls: [{}] }, "messages[0].tool_calls[0].function"],
    [{ role: "assistant", tool_calls: [{ function: { name: 5 } }] }, "messages[0].tool_calls[0].function.name"],
    [{ role: "assistant", tool_calls: [{ function: { name: "" } }] }, "messages[0].tool_calls[0].function.name"],
    [{ role: "user", content: "x", tool_calls: [{ function: { name: "f" } }] }, "messages[0].tool_calls"],
  ])("%j is refused", (message, param) => {
    expect(refusal([message])).toEqual({ status: 400, param });
  });

  test("the message at fault is named by its place", () => {
    expect(
      refusal([
        { role: "user", content: "a" },
        { role: "x", content: "b" },
      ]),
    ).toEqual({
      status: 400,
      param: "messages[1].role",
    });
  });
});

describe("the prompt's end", () => {
  const turns = [
    { role: "user", content: "u" },
    { role: "assistant", content: "a" },
  ];

  test("asks for a new turn unless told otherwise", () => {
    expect(convert(turns)).toMatchObject({ addGenerationPrompt: true, continueFinalMessage: false });
    expect(convert(turns, { add_generation_prompt: false })).toMatchObject({ addGenerationPrompt: false });
    expect(convert(turns, { continue_final_message: true })).toMatchObject({
      addGenerationPrompt: false,
      continueFinalMessage: true,
    });
    expect(convert(turns, { continue_final_message: true, add_generation_prompt: null })).toMatchObject({
      continueFinalMessage: true,
    });
  });

  test("what excludes each other is refused", () => {
    const param = "continue_final_message";
    expect(refusal(turns, { continue_final_message: true, add_generation_prompt: true })).toEqual({
      status: 400,
      param,
    });
    expect(refusal(turns.slice(0, 1), { continue_final_message: true })).toEqual({ status: 400, param });
  });
});

test("documents, effort and variables of the template", () => {
  const user = [{ role: "user", content: "u" }];
  const fields = (more: Record<string, unknown>) => {
    const { documents, reasoningEffort, templateVariables } = convert(user, more);
    return { documents, reasoningEffort, templateVariables };
  };
  expect(fields({})).toEqual({ documents: undefined, reasoningEffort: undefined, templateVariables: {} });
  expect(fields({ documents: [{ a: 1 }], chat_template_kwargs: { x: 1 }, reasoning_effort: "high" })).toEqual({
    documents: [{ a: 1 }],
    reasoningEffort: "high",
    templateVariables: { x: 1 },
  });
});

describe("with Qwen 3's template", () => {
  const template = compileModelTemplate(demoTemplate as NonNullable<typeof demoTemplate>);
  const prompt = (messages: unknown[], more: Record<string, unknown> = {}) =>
    renderPrompt(convert(messages, more), template).text;

  test("the text is the template's, the ids are the text's, special tokens included", async () => {
    const text = prompt([
      { role: "developer", content: "Be brief." },
      {
        role: "user",
        content: [
          { type: "text", text: "Hi" },
          { type: "text", text: "there" },
        ],
      },
    ]);
    expect(text).toBe(
      "<|im_start|>system\nBe brief.<|im_end|>\n<|im_start|>user\nHi\nthere<|im_end|>\n<|im_start|>assistant\n",
    );
    const encodeLong = () => Promise.reject(new Error("it is short"));
    const tokenIds = await encodePrompt({ text }, { tokenizer: demoTokenizer, encodeLong }, 4096);
    expect(Array.from(tokenIds)).toEqual(Array.from(demoTokenizer.encode(text)));
    expect(tokenIds[0]).toBe(demoTokenizer.tokenId("<|im_start|>") as number);
  });

  test("effort none switches thinking off", () => {
    const user = [{ role: "user", content: "Hi" }];
    expect(prompt(user, { reasoning_effort: "none" })).toEndWith("<think>\n\n</think>\n\n");
    expect(prompt(user, { reasoning_effort: "high" })).toEndWith("assistant\n");
    expect(prompt(user, { reasoning_effort: "minimal" })).toEndWith("<think>\n\n</think>\n\n");
    expect(prompt(user, { reasoning_effort: 0 })).toEndWith("<think>\n\n</think>\n\n");
    expect(prompt(user, { chat_template_kwargs: { enable_thinking: false } })).toEndWith("</think>\n\n");
    const own = { reasoning_effort: "none", chat_template_kwargs: { enable_thinking: true } };
    expect(prompt(user, own)).toEndWith("assistant\n");
  });

  test("a final message to go on with ends the prompt, whatever the template puts behind it", () => {
    const go = (content: string) =>
      prompt(
        [
          { role: "user", content: "Say: One, two" },
          { role: "assistant", content },
        ],
        { continue_final_message: true },
      );
    expect(go("One, two")).toEndWith("assistant\n<think>\n\n</think>\n\nOne, two");
    expect(go("One, two ")).toEndWith("\nOne, two ");
    expect(go("One")).toEndWith("\nOne");
    // texts that the template itself has behind the message
    for (const text of ["<", "|", "im_end", "\n"]) expect(go(text)).toEndWith(`</think>\n\n${text.trimStart()}`);
  });

  test("an empty final message goes on right after the header of its turn", () => {
    const text = prompt(
      [
        { role: "user", content: "Hi" },
        { role: "assistant", content: "" },
      ],
      { continue_final_message: true },
    );
    expect(text).toEndWith("<|im_start|>assistant\n<think>\n\n</think>\n\n");
  });

  test("content null and content empty give one prompt", () => {
    const turns = (content: unknown) => [
      { role: "user", content: "a" },
      { role: "assistant", content },
      { role: "user", content: "b" },
    ];
    expect(prompt(turns(null))).toBe(prompt(turns("")));
  });
});

describe("arguments sent as an object", () => {
  const args = '{"id":12345678901234567890, "b":1.0,"2":1}';
  const called = (call: string) => `{"messages": [{"role": "user", "content": "a"}, {"role": "assistant", ${call}}]}`;
  const textsOf = (raw: string, known: string | undefined) =>
    chatConversation(checked(JSON.parse(raw) as Record<string, unknown>), known).messages[1]?.toolCalls?.map(
      (call) => call.arguments,
    );

  test("are the text that was sent", () => {
    const raw = called(
      `"tool_calls": [{"function": {"name": "g", "arguments": "{}"}}, {"function": {"arguments": ${args}, "name": "f"}}]`,
    );
    expect(textsOf(raw, raw)).toEqual(["{}", args]);
    const old = called(`"function_call": {"name": "f", "arguments": ${args}}`);
    expect(textsOf(old, old)).toEqual([args]);
  });

  test("are JSON of the same value where the request's text is not known", () => {
    const raw = called('"tool_calls": [{"function": {"name": "f", "arguments": {"a": 1}}}]');
    expect(textsOf(raw, undefined)).toEqual(['{"a":1}']);
  });
});
