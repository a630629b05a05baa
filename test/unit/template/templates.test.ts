import { describe, expect, test } from "bun:test";
import { InvalidRequestError } from "../../../src/errors.ts";
import {
  ChatTemplateError,
  ChatTemplateRefusal,
  compileChatTemplate,
  type TemplateInput,
} from "../../../src/template/chat-template.ts";
import { parseLossless } from "../../../src/template/lossless-json.ts";
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
    ["a chat_template.json that is a text", { "chat_template.json": '"t"' }, "t"],
    ["a chat_template.json that is a list", { "chat_template.json": [{ name: "default", template: "d" }] }, "d"],
    ["an empty list", { "tokenizer_config.json": { chat_template: [] } }, undefined],
    ["a wrong type", { "tokenizer_config.json": { chat_template: 5 } }, undefined],
    ["a list of wrong things", { "tokenizer_config.json": { chat_template: [null, 5] } }, undefined],
  ])("%s", (_, given, expected) => {
    expect(findChatTemplate(files(given))?.source).toBe(expected as string);
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

  test("models name further tokens of their own; the older file of special tokens counts before the configuration", () => {
    const given = {
      ...config,
      bos_token: "<s>",
      image_token: { content: "<image>" },
      add_bos_token: true,
      extra_special_tokens: { audio_token: "<audio>", vision: "<vision>" },
    };
    const map = { bos_token: "<older>", eos_token: { content: "</s>" }, additional_special_tokens: ["<x>"] };
    const specials = (more: object) =>
      findChatTemplate(files({ "tokenizer_config.json": { ...given, ...more }, "special_tokens_map.json": map }))
        ?.specials;
    const own = { bos_token: "<s>", image_token: "<image>", audio_token: "<audio>", vision: "<vision>" };
    expect(specials({ added_tokens_decoder: {} })).toEqual(own);
    expect(specials({})).toEqual({ ...own, bos_token: "<older>", eos_token: "</s>" });
  });

  test("several templates: by tools, by name, from a list or a folder; the file is not trimmed", () => {
    const list = [
      { name: "default", template: "default" },
      { name: "tool_use", template: "tools: {{ tools | length }}" },
      { name: "rag", template: " rag: {{ documents[0].text }} \n\n" },
    ];
    const folder = {
      "chat_template.jinja": "default",
      "additional_chat_templates/tool_use.jinja": list[1]?.template,
      "additional_chat_templates/rag.jinja": list[2]?.template,
      "additional_chat_templates/deeper/x.jinja": "no",
    };
    for (const given of [{ "tokenizer_config.json": { chat_template: list } }, folder]) {
      const found = findChatTemplate(files(given));
      expect(found?.source).toBe("default");
      const template = compileModelTemplate(structuredClone(found!));
      const input = { messages: [{ role: "user", content: "Hi" }], addGenerationPrompt: true };
      expect(template.render(input)).toBe("default");
      expect(template.render({ ...input, tools: [] })).toBe("tools: 0");
      expect(template.render({ ...input, tools: [{ a: 1 }] })).toBe("tools: 1");
      expect(template.render({ ...input, tools: [], template: "default" })).toBe("default");
      expect(template.render({ ...input, template: "rag", documents: [{ text: "t" }] })).toBe(" rag: t \n");
      expect(() => template.render({ ...input, template: "other" })).toThrow(InvalidRequestError);
    }
    const none = compileModelTemplate(
      findChatTemplate(files({ "tokenizer_config.json": { chat_template: [list[2]] } }))!,
    );
    expect(() => none.render({ messages: [{ role: "user", content: "" }], addGenerationPrompt: true })).toThrow(
      "several chat templates",
    );
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
    expect(error).toBeInstanceOf(ChatTemplateRefusal);
    expect(error).toMatchObject({ status: 400, param: "messages", message: "A system message must come first" });
    expect(render(source, { messages: [{ role: "system", content: "" }] })).toBe("ok");
  });

  test("a template that fails on a conversation is a 400 as well, and can be used again", () => {
    const template = compileChatTemplate("{% if messages %}{{ messages[0].content | no_such_filter }}{% endif %}", {});
    expect(() => template.render(input())).toThrow(InvalidRequestError);
    expect(() => template.render(input())).toThrow(InvalidRequestError);
  });

  test("what fails in a template names the line", () => {
    const source = "{% for m in messages %}\n{{ m.content }}\n{{ m.a.b }}{% endfor %}";
    expect(() => render(source)).toThrow(
      "The chat template fails on these messages: 'dict object' has no attribute 'a' (line 3 of the template)",
    );
  });

  test("absent tools, documents and special tokens are undefined; null ones are none", () => {
    const source = "{{ tools is defined }} {{ documents is defined }} {{ bos_token is defined }} {{ x is none }}";
    expect(render(source, { variables: { x: null } })).toBe("False False False True");
    expect(render(source, { tools: [], documents: [] })).toBe("True True False False");
  });

  test("numbers and key order of a request reach the prompt as they came", () => {
    const tools = parseLossless('[{"2": 1.0, "1": 12345678901234567890, "a": 1e-7}]') as readonly unknown[];
    const plain = JSON.parse('[{"b": 1.5, "a": 10000000000000000000000}]') as unknown[];
    expect(render("{{ tools | tojson }}", { tools })).toBe('[{"2": 1.0, "1": 12345678901234567890, "a": 1e-07}]');
    expect(render("{{ tools | tojson }}", { tools: plain })).toBe('[{"b": 1.5, "a": 1e+22}]');
  });

  test("the clock is the caller's, in local time", () => {
    const now = new Date(2026, 0, 31, 15, 4, 5);
    const source = "{{ strftime_now('%d %b %Y, %A %-I:%M %p, day %j, week %V, %e %y%%') }}";
    expect(render(source, { now })).toBe("31 Jan 2026, Saturday 3:04 PM, day 031, week 05, 31 26%");
    expect(render("{{ strftime_now('%Y') }}")).toBe(String(new Date().getFullYear()));
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
