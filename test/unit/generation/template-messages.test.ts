import { describe, expect, test } from "bun:test";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import type { Conversation, Message, ToolCall } from "../../../src/generation/conversation.ts";
import { renderPrompt, withoutThinking } from "../../../src/generation/prompt.ts";
import { templateTraits } from "../../../src/generation/template-traits.ts";
import { type ChatTemplate, compileChatTemplate } from "../../../src/template/chat-template.ts";
import { nativeEncoder } from "../../../src/template/encoders/native-encoder.ts";
import { budget } from "../../../src/template/engine/limits.ts";

const golden = join(import.meta.dir, "../../golden");
const own = (path: string): ChatTemplate =>
  compileChatTemplate(readFileSync(join(golden, path), "utf8"), { bos_token: "<s>", eos_token: "</s>" });
const mistral = own("tools/mistral_like.jinja");
const kimi = own("tools/kimi_like.jinja");
const inner = "{% for m in messages %}[{{ m.role }}|{{ m.content }}]{% endfor %}";
const conversation = (messages: readonly Message[], more: Partial<Conversation> = {}): Conversation => ({
  messages,
  tools: [],
  toolChoice: { mode: "none" },
  parallelToolCalls: true,
  addGenerationPrompt: false,
  continueFinalMessage: false,
  templateVariables: {},
  ...more,
});
const prompt = (
  template: ChatTemplate | string,
  messages: readonly Message[],
  more: Partial<Conversation> = {},
): string =>
  renderPrompt(
    conversation(messages, more),
    typeof template === "string" ? compileChatTemplate(template, {}) : template,
  ).text;
const user = (content: Message["content"]): Message => ({ role: "user", content });
const calls = (...toolCalls: ToolCall[]): Message => ({ role: "assistant", content: "", toolCalls });
const call = (id: string, args = "{}", name = "f"): ToolCall => ({ id, name, arguments: args });
const result = (toolCallId: string | undefined, content = "r", name?: string): Message => ({
  role: "tool",
  content,
  ...(toolCallId !== undefined && { toolCallId }),
  ...(name !== undefined && { name }),
});

describe("ids of calls", () => {
  test("nine letters and digits where the template demands it: always the same for an id", () => {
    const turns = (id: string) => prompt(mistral, [user("a"), calls(call(id)), result(id)]);
    const [, given, answered] = /"id": "(.*?)".*"call_id": "(.*?)"/.exec(turns("call_0123456789abcdef")) ?? [];
    expect(given).toMatch(/^[a-zA-Z0-9]{9}$/);
    expect(answered).toBe(given!);
    expect(turns("call_0123456789abcdef")).toBe(turns("call_0123456789abcdef"));
    expect(turns("call_0123456789abcdeg")).not.toContain(given!);
    expect(turns("abcDEF123")).toContain('"call_id": "abcDEF123"');
  });

  test("those that are too short for the template are rewritten, others are the template's own affair", () => {
    const template = own("template/chat_templates/inst.jinja");
    const turns = (id: string) => prompt(template, [user("a"), calls(call(id)), result(id)]);
    const [, given, answered] = /"id": "(.*?)".*"call_id": "(.*?)"/.exec(turns("a1")) ?? [];
    expect(given).toMatch(/^[a-zA-Z0-9]{9}$/);
    expect(answered).toBe(given!);
    expect(turns("a2")).not.toContain(given!);
    for (const id of ["abcDEF123", "call_0123456789abcdef"])
      expect(turns(id)).toContain(`"call_id": "${id.slice(-9)}"`);
  });

  test("Kimi's count the calls of the conversation; its own ones stay", () => {
    const text = prompt(kimi, [
      user("a"),
      calls(call("call_1"), call("call_2", "{}", "g.h")),
      result("call_2"),
      result("call_1"),
      calls(call("call_1")),
      result("call_1"),
      calls(call("functions.f:7")),
      result("functions.f:7"),
    ]);
    const begun = [...text.matchAll(/<\|tool_call_begin\|>(.*?)</g)].map(([, id]) => id);
    expect(begun).toEqual(["functions.f:0", "functions.g.h:1", "functions.f:2", "functions.f:7"]);
    const returned = [...text.matchAll(/Return of (\S+)/g)].map(([, id]) => id);
    expect(returned).toEqual(["functions.g.h:1", "functions.f:0", "functions.f:2", "functions.f:7"]);
  });

  test("results without an id belong to the calls of their name, in order", () => {
    const turns = [user("a"), calls(call("x", "{}", "f"), call("y", "{}", "g"), call("z", "{}", "f"))];
    const text = prompt(kimi, [
      ...turns,
      result(undefined, "1", "g"),
      result(undefined, "2", "f"),
      result(undefined, "3"),
    ]);
    expect([...text.matchAll(/Return of (\S+)/g)].map(([, id]) => id)).toEqual([
      "functions.g:1",
      "functions.f:0",
      "functions.f:2",
    ]);
  });

  test("an id that no call has stays", () => {
    expect(prompt(kimi, [user("a"), result("call_9")])).toContain("Return of call_9");
    expect(prompt("{% for m in messages %}{{ m.tool_call_id }}{% endfor %}", [result("call_9")])).toBe("call_9");
  });
});

describe("arguments", () => {
  const loop = (form: string) =>
    `{% for m in messages %}{% for c in m.tool_calls or [] %}<${"{{ c.function.name }}"}:${form}>{% endfor %}{{ m.content or '' }}{% endfor %}`;
  const asObject = loop("{% for k, v in c.function.arguments.items() %}{{ k }}={{ v | tojson }};{% endfor %}");
  const asText = loop("{{ '' + c.function.arguments }}");
  const asEither = loop(
    "{{ c.function.arguments if c.function.arguments is string else c.function.arguments | tojson }}",
  );
  const turns = (args: string) => [user("a"), calls(call("c", args))];

  test("as an object, with numbers and order as sent; as the very text; empty ones as an empty object", () => {
    const args = '{"b":1.0, "2":  12345678901234567890, "1": 1}';
    expect(prompt(asObject, turns(args))).toBe("a<f:b=1.0;2=12345678901234567890;1=1;>");
    expect(prompt(asText, turns(args))).toBe(`a<f:${args}>`);
    expect(prompt(asEither, turns(args))).toBe('a<f:{"b": 1.0, "2": 12345678901234567890, "1": 1}>');
    for (const empty of ["", " "]) {
      expect(prompt(asObject, turns(empty))).toBe("a<f:>");
      expect(prompt(asText, turns(empty))).toBe("a<f:{}>");
    }
    expect(prompt(asEither, turns("null"))).toBe("a<f:{}>");
  });

  test("broken ones stay as they are where the template takes text, else they are named", () => {
    expect(prompt(asText, turns('{"a": '))).toBe('a<f:{"a": >');
    expect(prompt(asEither, turns('{"a": '))).toBe('a<f:{"a": >');
    expect(() => prompt(asObject, turns('{"a": '))).toThrow(
      /messages\[1\]\.tool_calls\[0\]\.function\.arguments is not valid JSON/,
    );
  });
});

describe("what a client sent beside its calls", () => {
  const turns = (assistant: Partial<Message>) => [user("a"), { ...calls(call("c")), ...assistant }];
  const shows = (guard: string) =>
    `{% for m in messages %}{% if ${guard} %}{% for c in m.tool_calls or [] %}<{{ c.function.name }}{{ c.function.arguments | tojson }}>{% endfor %}{% endif %}{{ '()' if m.content is not defined or m.content is none else '"' ~ m.content ~ '"' }}{% endfor %}`;
  const both = (guard: string) => [
    prompt(shows(guard), turns({})),
    prompt(shows(guard), turns({ withoutContent: true })),
  ];

  test("empty content and none stay what they are, unless the calls are lost", () => {
    expect(both("true")).toEqual(['"a"<f{}>""', '"a"<f{}>()']);
    expect(both("m.content is none")).toEqual(['"a"<f{}>()', '"a"<f{}>()']);
    expect(both("m.content is string")).toEqual(['"a"<f{}>""', '"a"<f{}>""']);
  });

  test("a result without a name gets that of its call only where the template has nothing to put there", () => {
    const printed = (name: string) =>
      prompt(`${shows("true")}{% for m in messages if m.role == 'tool' %}<{{ ${name} }}={{ m.content }}>{% endfor %}`, [
        ...turns({}),
        result("c"),
        result("c", "r", "own"),
      ]);
    expect(printed("m.name")).toEndWith("<f=r><own=r>");
    expect(printed("m['name'] + ''")).toEndWith("<f=r><own=r>");
    expect(printed("m.name | default('unknown')")).toEndWith("<unknown=r><own=r>");
    expect(printed("m.name or m.role")).toEndWith("<tool=r><own=r>");
  });
});

describe("roles", () => {
  const order = [
    user("a"),
    { role: "system", content: "s" },
    user("b"),
    { role: "developer", content: "d" },
  ] as Message[];

  test("a template that takes every message gets them in their order", () => {
    expect(prompt(inner, order)).toBe("[user|a][system|s][user|b][system|d]");
    const knows = inner.replace("{{ m.role }}", "{{ 'DEV' if m.role == 'developer' else m.role }}");
    expect(prompt(knows, order)).toBe("[user|a][system|s][user|b][DEV|d]");
  });

  test("one that drops or refuses later orders gets them all in front", () => {
    const drops = `{% if messages[0].role == 'system' %}<{{ messages[0].content }}>{% endif %}{% for m in messages if m.role != 'system' %}[{{ m.content }}]{% endfor %}`;
    expect(prompt(drops, order)).toBe("<s\n\nd>[a][b]");
    const refuses = `{% for m in messages %}{% if m.role == 'system' and not loop.first %}{{ raise_exception('late') }}{% endif %}[{{ m.content }}]{% endfor %}`;
    expect(prompt(refuses, order)).toBe("[s\n\nd][a][b]");
  });

  test("one that takes no orders at all gets them as the user's", () => {
    const refuses = `{% for m in messages %}{% if m.role == 'system' %}{{ raise_exception('no system') }}{% endif %}[{{ m.content }}]{% endfor %}`;
    expect(prompt(refuses, order)).toBe("[s\n\nd\n\na][b]");
  });
});

describe("content", () => {
  const parts = [
    { type: "text", text: "One" },
    { type: "text", text: "two" },
  ] as const;
  const printed = (form: string) => `{% for m in messages %}${form}{% endfor %}`;

  test("parts stay parts where the template reads them, else they are lines", () => {
    const both = printed(
      "{% if m.content is string %}{{ m.content }}{% else %}{% for p in m.content %}{{ p.text }}{% endfor %}{% endif %}",
    );
    const only = printed("{% for p in m.content %}{{ p.text }}{% endfor %}");
    const first = printed("{{ m.content if m.content is string else m.content[0].text }}");
    expect(prompt(both, [user(parts)])).toBe("Onetwo");
    expect(prompt(only, [user(parts)])).toBe("Onetwo");
    expect(prompt(only, [user("One")])).toBe("One");
    for (const text of [inner, first, printed("{{ m.content | trim }}"), printed("{{ m.content | tojson }}")])
      expect(prompt(text, [user(parts)])).toMatch(/One(?:\n|\\n)two/);
  });
});

describe("thinking", () => {
  const by = (key: string) => `{{ messages[0].content }}{% if ${key} is not defined or ${key} %}<think>{% endif %}`;
  const shown = (key: string, more: Partial<Conversation>) => prompt(by(key), [user("a")], more);

  test.each(["enable_thinking", "thinking"])(
    "the lowest efforts switch it off by the template's own key: %s",
    (key) => {
      for (const reasoningEffort of ["none", "minimal", 0]) expect(shown(key, { reasoningEffort })).toBe("a");
      for (const reasoningEffort of ["low", "high", 0.5]) expect(shown(key, { reasoningEffort })).toBe("a<think>");
      expect(shown(key, { reasoningEffort: "none", templateVariables: { [key]: true } })).toBe("a<think>");
      expect(shown(key, { templateVariables: new Map([[key, false]]) })).toBe("a");
    },
  );

  test("templates that know efforts are told", () => {
    expect(prompt("{{ reasoning_effort }}{{ enable_thinking }}", [user("a")], { reasoningEffort: "high" })).toBe(
      "high",
    );
  });

  test("it can be switched off for a conversation, or not", () => {
    const template = compileChatTemplate(by("thinking"), {});
    const quiet = withoutThinking(conversation([user("a")], { templateVariables: { thinking: true } }), template);
    expect(prompt(template, quiet!.messages, quiet!)).toBe("a");
    expect(withoutThinking(conversation([user("a")]), compileChatTemplate(inner, {}))).toBeUndefined();
  });
});

test("formats that tell the model of the choice of tools and of a format are given both", () => {
  const told = (more: Partial<Conversation>) =>
    renderPrompt(conversation([user("a")], more), nativeEncoder("kimi_k3")).text;
  const tools = [{ type: "function", name: "f", strict: false }] as const;
  expect(told({ tools, toolChoice: { mode: "required", named: "f" } })).toContain("tool_choice=required");
  expect(told({ tools, toolChoice: { mode: "none" } })).toContain("tool_choice=none");
  expect(told({ tools, toolChoice: { mode: "auto" } })).not.toContain("tool_choice=");
  expect(told({})).not.toContain("tool_choice=");
  expect(told({ responseFormat: { type: "json_object" } })).toContain("response_format=json_object");
});

test("an empty list of tools is one for the template", () => {
  const named = compileChatTemplate({ default: "none", tool_use: "{{ tools | tojson }}" }, {});
  expect(prompt(named, [user("a")])).toBe("none");
  expect(prompt(named, [user("a")], { emptyToolList: true })).toBe("[]");
});

test("a template is tried out once", () => {
  let renders = 0;
  const compiled = compileChatTemplate(inner, {});
  const counted: ChatTemplate = {
    needsNullContent: false,
    render(input) {
      renders++;
      return compiled.render(input);
    },
  };
  const traits = templateTraits(counted, undefined, false);
  const probes = renders;
  expect(probes).toBeGreaterThan(10);
  expect(templateTraits(counted, undefined, false)).toBe(traits);
  expect(renders).toBe(probes);
  for (let i = 0; i < 100; i++) templateTraits(counted, `name ${i}`, true);
  const before = renders;
  templateTraits(counted, "name 0", true);
  expect(renders).toBe(before);
});

test.each([
  ["fails", "{% for a in range(100000) %}{% for b in range(100000) %}{% endfor %}{% endfor %}"],
  ["just does not fail", "{% for a in range(100000) %}{% for b in range(10) %}{% endfor %}{% endfor %}"],
])("a slow template that %s is tried out for a tenth of a render, once", (_, slow) => {
  const compiled = compileChatTemplate(`{{ messages[0].content }}${slow}`, {});
  let renders = 0;
  let before = 0;
  const counted: ChatTemplate = {
    get needsNullContent() {
      return compiled.needsNullContent;
    },
    render(input) {
      renders++;
      try {
        return compiled.render(input);
      } finally {
        before = budget.left;
      }
    },
  };
  const traits = templateTraits(counted, undefined, false);
  expect(before).toBeLessThan(0);
  expect(traits).toMatchObject({ calls: undefined, thinkingKey: undefined, developer: false, namesResults: false });
  const probes = renders;
  expect(templateTraits(counted, undefined, false)).toBe(traits);
  expect(renders).toBe(probes);
  // a render by itself has its whole budget again
  compileChatTemplate("{% for a in range(100000) %}{% for b in range(20) %}{% endfor %}{% endfor %}", {}).render({
    messages: [{ role: "user", content: "a" }],
    addGenerationPrompt: false,
  });
  expect(budget.left).toBeGreaterThan(10_000_000);
});

describe("system messages in place", () => {
  const system = (content: string, role: "system" | "developer" = "system"): Message => ({ role, content });
  const assistant = (content: string): Message => ({ role: "assistant", content });
  const strict = `{% for m in messages %}{% if m.role == 'system' and not loop.first %}{{ raise_exception('system first') }}{% endif %}[{{ m.role }}|{{ m.content }}]{% endfor %}`;
  const hoisting = `{% for m in messages if m.role == 'system' %}[system|{{ m.content }}]{% endfor %}{% for m in messages if m.role != 'system' %}[{{ m.role }}|{{ m.content }}]{% endfor %}`;
  const inPlace = (template: string, ...messages: Message[]) => prompt(template, messages, { systemInPlace: true });

  test("stay what they are where the template shows them where they stand", () => {
    expect(inPlace(inner, system("a"), system("b"), user("c"), system("d"), assistant("e"), system("f"))).toBe(
      "[system|a][system|b][user|c][system|d][assistant|e][system|f]",
    );
  });

  test.each([
    ["one that refuses them", strict],
    ["one that moves them to the front", hoisting],
  ])("become user text for %s", (_, template) => {
    expect(inPlace(template, system("a"), system("b", "developer"), user("c"))).toBe("[system|a\n\nb][user|c]");
    const later = [user("c"), system("d"), system("e"), assistant("f"), system("g"), user("h")];
    expect(inPlace(template, ...later)).toBe(
      "[user|c\n\n<system>\nd\n</system>\n\n<system>\ne\n</system>][assistant|f][user|<system>\ng\n</system>\n\nh]",
    );
    expect(inPlace(template, user("c"), assistant("f"), system("g"), system("h"), assistant("i"), system("j"))).toBe(
      "[user|c][assistant|f][user|<system>\ng\n</system>\n\n<system>\nh\n</system>][assistant|i][user|<system>\nj\n</system>]",
    );
  });

  test("a conversation that grows keeps the beginning of its prompt", () => {
    const all = [
      ...[system("s"), user("a"), system("b"), assistant("c"), system("d"), assistant("e"), user("f"), assistant("g")],
      ...[calls(call("1")), result("1"), system("h"), assistant("i"), user("j"), system("k"), assistant("l")],
    ];
    for (const template of [inner, strict, hoisting]) {
      let before = "";
      for (let length = 1; length <= all.length; length++) {
        // an answer follows what was sent
        if (length < all.length && all[length]?.role !== "assistant") continue;
        const now = inPlace(template, ...all.slice(0, length));
        expect(now).toStartWith(before);
        before = now;
      }
    }
  });

  test("parts stay parts", () => {
    const parts = `{% for m in messages %}[{{ m.role }}|{% if m.content is string %}{{ m.content }}{% else %}{% for p in m.content %} {{ p.text }}{% endfor %}{% endif %}]{% if m.role == 'system' and not loop.first %}{{ raise_exception('no') }}{% endif %}{% endfor %}`;
    const listed = user([{ type: "text", text: "a" }]);
    expect(inPlace(parts, listed, system("b"))).toBe("[user| a <system>\nb\n</system>]");
    expect(inPlace(parts, assistant("x"), system("b"), listed)).toBe("[assistant|x][user| <system>\nb\n</system> a]");
  });

  test("without the wish they go to the front as one, as ever", () => {
    expect(prompt(strict, [user("c"), system("d")])).toBe("[system|d][user|c]");
  });
});

test("a tool that failed without a word has one", () => {
  const failed = (content: Message["content"]): Message => ({ role: "tool", toolCallId: "1", content, isError: true });
  expect(prompt(inner, [user("a"), failed(""), failed([]), failed("no such file")])).toBe(
    "[user|a][tool|error][tool|error][tool|no such file]",
  );
});

describe("the wish to think", () => {
  const switched =
    "{{ enable_thinking | default('open') }} {{ reasoning_effort | default('none') }}{{ messages[0].content }}";
  const wish = (more: Partial<Conversation>) => prompt(switched, [user("a")], more);
  test("turns the template's switch, whatever the effort", () => {
    expect(wish({})).toBe("open nonea");
    expect(wish({ thinking: true })).toBe("True nonea");
    expect(wish({ thinking: false, reasoningEffort: "high" })).toBe("False higha");
    expect(wish({ thinking: true, reasoningEffort: "none" })).toBe("True nonea");
  });
  test("gives way to the client's own variables, and to a call that must be forced", () => {
    expect(wish({ thinking: true, templateVariables: { enable_thinking: false } })).toBe("False nonea");
    const template = compileChatTemplate(switched, {});
    const quiet = withoutThinking(conversation([user("a")], { thinking: true }), template);
    expect(prompt(template, quiet!.messages, quiet!)).toBe("False nonea");
  });
  test("is nothing to a template without a switch", () => {
    expect(prompt(inner, [user("a")], { thinking: false })).toBe(prompt(inner, [user("a")]));
  });
});
