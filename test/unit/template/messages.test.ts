import { describe, expect, test } from "bun:test";
import { InvalidRequestError } from "../../../src/errors.ts";
import { type ChatTemplate, compileChatTemplate, type TemplateInput } from "../../../src/template/chat-template.ts";
import { parseLossless } from "../../../src/template/lossless-json.ts";
import { type MessageData, prepareMessages } from "../../../src/template/prepare-messages.ts";

const prepared = (...messages: MessageData[]) => prepareMessages(messages).map((message) => [...message]);

describe("messages before rendering", () => {
  test("null fields go, at the top level only; others stay as they are", () => {
    expect(
      prepared({ role: "user", content: null, name: undefined, extra: { a: null }, list: [null], zero: 0 }),
    ).toEqual([
      [
        ["role", "user"],
        ["extra", new Map([["a", null]])],
        ["list", [null]],
        ["zero", 0],
      ],
    ]);
    const lossless = parseLossless('{"2": "b", "1": null, "role": "x"}') as ReadonlyMap<string, unknown>;
    expect(prepared(lossless)).toEqual([
      [
        ["2", "b"],
        ["role", "x"],
      ],
    ]);
  });

  test.each([
    [{ reasoning_content: "a" }, { thinking: "a", reasoning_content: "a" }],
    [{ thinking: "a" }, { thinking: "a", reasoning_content: "a" }],
    [{ reasoning: "a" }, { thinking: "a", reasoning: "a", reasoning_content: "a" }],
    [
      { reasoning_content: "a", thinking: "b" },
      { thinking: "b", reasoning_content: "a" },
    ],
    [
      { reasoning: "a", thinking: "b", reasoning_content: null },
      { thinking: "b", reasoning: "a", reasoning_content: "b" },
    ],
    [
      { reasoning_content: "", reasoning: "a" },
      { thinking: "", reasoning_content: "", reasoning: "a" },
    ],
    [{ reasoning: null }, {}],
  ] as const)("reasoning under one name is there under all: %j", (given, expected) => {
    expect(Object.fromEntries(prepared(given)[0]!)).toEqual(expected);
  });

  test("null content of tool calls is kept where it is asked for", () => {
    const call = { role: "assistant", content: null, tool_calls: [{ function: { name: "f" } }] };
    const keep = (message: MessageData) => prepareMessages([message], { keepNullContent: true })[0]!.has("content");
    expect(keep(call)).toBe(true);
    expect(keep({ ...call, tool_calls: [] })).toBe(false);
    expect(keep({ role: "user", content: null })).toBe(false);
    expect(prepareMessages([call])[0]!.has("content")).toBe(false);
  });

  test("the caller's messages stay as they are", () => {
    const message = Object.freeze({ role: "user", content: null, thinking: "t" });
    prepareMessages(Object.freeze([message]));
    expect(message).toEqual({ role: "user", content: null, thinking: "t" });
  });

  test("no message at all is refused, and what is no object", () => {
    expect(() => prepareMessages([])).toThrow(InvalidRequestError);
    expect(() => prepareMessages(["x" as unknown as MessageData])).toThrow(InvalidRequestError);
  });

  test("templates that write calls only where content is none are found by trying", () => {
    const calls = "{% for c in m.tool_calls %}{{ c.function.name }}{% endfor %}";
    const needs = (body: string) =>
      compileChatTemplate(`{% for m in messages %}${body}{% endfor %}`, {}).needsNullContent;
    expect(needs(`{% if m.tool_calls %}${calls}{% endif %}`)).toBe(false);
    expect(needs(`{% if m['content'] is none %}${calls}{% else %}{{ m.content }}{% endif %}`)).toBe(true);
    expect(needs("{{ m.content }}")).toBe(false);
    expect(needs("{{ raise_exception('no') }}")).toBe(false);
    const text = "{{ m.tool_calls[0].function.name + m.tool_calls[0].function.arguments }}";
    expect(needs(`{% if m.tool_calls and m.content is none %}${text}{% endif %}`)).toBe(true);
  });
});

describe("going on with the final message", () => {
  const source =
    "{% for m in messages %}<{{ m.role }}>{% if m.reasoning_content %}[{{ m.reasoning_content }}]{% endif %}{{ m.content }}</>{% endfor %}";
  const trims = source.replace("m.content }}", "m.content | trim }}");
  const go = (template: ChatTemplate, content: unknown, more: Partial<TemplateInput> = {}): string =>
    template.render({
      messages: [
        { role: "user", content: "Q" },
        { role: "assistant", content },
      ],
      addGenerationPrompt: false,
      continueFinalMessage: true,
      ...more,
    });

  test.each([
    [source, "A: ", "<user>Q</><assistant>A: "],
    [source, "", "<user>Q</><assistant>"],
    [trims, "A: ", "<user>Q</><assistant>A:"],
    [trims, "", "<user>Q</><assistant>"],
    [`{{ "x\\n\\n" }}${trims}`.replace("<{{ m.role }}>", "\\n\\n"), "", "x\n\n\n\nQ</>"],
  ])("%s, %p", (template, content, expected) => {
    const found = go(compileChatTemplate(template, {}), content);
    expect(found.replaceAll("\\n", "\n").trimEnd()).toBe(expected.trimEnd());
  });

  test("in parts, behind the last text", () => {
    const template = compileChatTemplate(
      "{% for m in messages %}{% for p in m.content %}({{ p.text }}){% endfor %}{% endfor %}",
      {},
    );
    const parts = [{ text: "a" }, { text: "b" }, { image: 1 }];
    const messages = [{ role: "assistant", content: parts }];
    expect(template.render({ messages, addGenerationPrompt: false, continueFinalMessage: true })).toBe("(a)(b");
    expect(parts).toEqual([{ text: "a" }, { text: "b" }, { image: 1 }]);
  });

  test("a field by its name, under whichever of its names the template reads it", () => {
    const template = compileChatTemplate(source, {});
    const messages = prepareMessages([{ role: "assistant", reasoning: "hm", content: "A" }]);
    const input = { messages, addGenerationPrompt: false };
    expect(template.render({ ...input, continueFinalMessage: "reasoning" })).toBe("<assistant>[hm");
    expect(template.render({ ...input, continueFinalMessage: "reasoning_content" })).toBe("<assistant>[hm");
    expect(template.render({ ...input, continueFinalMessage: "content" })).toBe("<assistant>[hm]A");
    expect(template.render({ ...input, continueFinalMessage: false })).toBe("<assistant>[hm]A</>");
  });

  test("a text of the client that looks like the mark stays", () => {
    const found = go(compileChatTemplate(source, {}), "A CONTINUE_FINAL_MESSAGE_TAG B");
    expect(found).toBe("<user>Q</><assistant>A CONTINUE_FINAL_MESSAGE_TAG B");
  });

  test.each([
    ["nothing to continue", source, null, {}],
    ["a field that is not there", source, "A", { continueFinalMessage: "thinking" }],
    ["a field that the template does not know", "{{ messages[-1].role }}", "A", {}],
    ["a number", source, 5, {}],
    ["parts without text", source, [{ type: "image" }], {}],
    ["a template that drops the text", "{{ 'content' }}{{ messages[0].role }}", "A", {}],
    ["a new turn, too", source, "A", { addGenerationPrompt: true }],
  ])("%s: refused", (_, template, content, more) => {
    let error: unknown;
    try {
      go(compileChatTemplate(template, {}), content, more);
    } catch (thrown) {
      error = thrown;
    }
    expect(error).toBeInstanceOf(InvalidRequestError);
    expect(error).toMatchObject({ param: "continue_final_message" });
  });
});
