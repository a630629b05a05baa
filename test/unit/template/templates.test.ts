import { describe, expect, test } from "bun:test";
import { InvalidRequestError } from "../../../src/errors.ts";
import { ChatTemplateError, compileChatTemplate, type TemplateInput } from "../../../src/template/chat-template.ts";
import { compileModelTemplate, findChatTemplate } from "../../../src/template/model-template.ts";

const utf8 = new TextEncoder();
const files = (given: Record<string, unknown>) =>
  new Map(
    Object.entries(given).map(([name, value]) => [
      name,
      utf8.encode(typeof value === "string" ? value : JSON.stringify(value)),
    ]),
  );

describe("where a template is found", () => {
  const jinja = "from jinja";
  const own = { chat_template: "from json" };
  const config = { chat_template: "from config" };

  test.each<[string, Record<string, unknown>, string | undefined]>([
    [
      "all: the jinja file",
      { "chat_template.jinja": jinja, "chat_template.json": own, "tokenizer_config.json": config },
      "from jinja",
    ],
    [
      "chat_template.json before the configuration",
      { "chat_template.json": own, "tokenizer_config.json": config },
      "from json",
    ],
    ["the configuration alone", { "tokenizer_config.json": config }, "from config"],
    ["nowhere", { "tokenizer_config.json": {} }, undefined],
    ["no files", {}, undefined],
    [
      "a list: the one named default",
      {
        "tokenizer_config.json": {
          chat_template: [
            { name: "tool_use", template: "t" },
            { name: "default", template: "d" },
          ],
        },
      },
      "d",
    ],
    [
      "a list without default: its first",
      { "tokenizer_config.json": { chat_template: [{ name: "rag", template: "r" }] } },
      "r",
    ],
    ["an empty list", { "tokenizer_config.json": { chat_template: [] } }, undefined],
    ["a wrong type", { "tokenizer_config.json": { chat_template: 5 } }, undefined],
    ["a list of wrong things", { "tokenizer_config.json": { chat_template: [null, 5] } }, undefined],
  ])("%s", (_, given, expected) => {
    expect(findChatTemplate(files(given))?.source).toBe(expected as string);
  });

  test("an override comes before all", () => {
    expect(findChatTemplate(files({ "chat_template.jinja": jinja }), "mine")?.source).toBe("mine");
    expect(findChatTemplate(files({}), "mine")).toEqual({ source: "mine", specials: {} });
  });

  test("special tokens are strings or added tokens", () => {
    const found = findChatTemplate(
      files({
        "tokenizer_config.json": {
          ...config,
          bos_token: "<s>",
          eos_token: { content: "</s>", lstrip: false },
          pad_token: null,
          unk_token: 5,
        },
      }),
    );
    expect(found?.specials).toEqual({ bos_token: "<s>", eos_token: "</s>" });
  });

  test("files that are no JSON name themselves", () => {
    expect(() => findChatTemplate(files({ "tokenizer_config.json": "{" }))).toThrow(/tokenizer_config.json/);
    expect(() => findChatTemplate(files({ "chat_template.json": "{" }))).toThrow(ChatTemplateError);
  });
});

describe("rendering", () => {
  const input = (more: Partial<TemplateInput> = {}): TemplateInput => ({
    messages: [{ role: "user", content: "Hi" }],
    addGenerationPrompt: true,
    ...more,
  });
  const render = (source: string, more: Partial<TemplateInput> = {}, specials = {}) =>
    compileChatTemplate(source, specials).render(input(more));

  test("messages, the generation prompt and special tokens are there", () => {
    const source =
      "{{ bos_token }}{% for m in messages %}[{{ m.role }}:{{ m['content'] }}]{% endfor %}{% if add_generation_prompt %}>{% endif %}";
    expect(render(source, {}, { bos_token: "<s>" })).toBe("<s>[user:Hi]>");
    expect(render(source, { addGenerationPrompt: false })).toBe("[user:Hi]");
  });

  test("variables of a request reach the template, but never replace its messages or the generation prompt", () => {
    const source = "{{ messages | length }}{{ messages[0].content }}{{ add_generation_prompt }}{{ enable_thinking }}";
    const variables = {
      enable_thinking: false,
      messages: [
        { role: "system", content: "injected" },
        { role: "x", content: "" },
      ],
      add_generation_prompt: "injected",
    };
    expect(render(source, { variables })).toBe(render(source, { variables: { enable_thinking: false } }));
    expect(render(source, { variables })).toStartWith("1Hi");
  });

  test.each(["raise_exception", "range", "namespace", "true", "__proto__", "constructor", "loop"])(
    "a variable named %s breaks nothing but its own request",
    (name) => {
      const template = compileChatTemplate("{% for i in range(2) %}{{ i }}{% endfor %}{{ messages[0].content }}", {});
      const variables = JSON.parse(`{"${name}": "x"}`) as Record<string, unknown>;
      try {
        template.render(input({ variables }));
      } catch (error) {
        expect(error).toBeInstanceOf(InvalidRequestError);
      }
      expect(template.render(input())).toBe("01Hi");
      expect({}).not.toHaveProperty("x");
    },
  );

  test("what a template refuses is a 400 with its words", () => {
    const source =
      "{% if messages[0].role != 'system' %}{{ raise_exception('A system message must come first') }}{% endif %}ok";
    let error: unknown;
    try {
      render(source);
    } catch (thrown) {
      error = thrown;
    }
    expect(error).toBeInstanceOf(InvalidRequestError);
    expect(error).toMatchObject({ status: 400, param: "messages" });
    expect((error as Error).message).toContain("A system message must come first");
    expect(render(source, { messages: [{ role: "system", content: "" }] })).toBe("ok");
  });

  test("a template that fails on a conversation is a 400 as well, and can be used again", () => {
    const template = compileChatTemplate("{% if messages %}{{ messages[0].content | no_such_filter }}{% endif %}", {});
    expect(() => template.render(input())).toThrow(InvalidRequestError);
    expect(() => template.render(input())).toThrow(InvalidRequestError);
  });

  test("one that does not compile says so at load", () => {
    expect(() => compileModelTemplate({ source: "{% if %}", specials: {} })).toThrow(ChatTemplateError);
    expect(() => compileModelTemplate({ source: "{{ 'open", specials: {} })).toThrow(ChatTemplateError);
    expect(() => compileModelTemplate({ source: "a\n{{ x | no_such_filter }}", specials: {} })).toThrow(
      "the chat template does not compile, line 2: No filter named 'no_such_filter' found.",
    );
  });

  test("text of messages is never read as a template", () => {
    const content = "{{ 7 * 7 }}{% raw %}{# #}";
    expect(render("{{ messages[0].content }}", { messages: [{ role: "user", content }] })).toBe(content);
  });
});
