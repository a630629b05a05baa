/** A template that gives way while it renders gives the same text, whatever others do meanwhile. */
import { describe, expect, test } from "bun:test";
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { type ChatTemplate, compileChatTemplate, type TemplateInput } from "../../../src/template/chat-template.ts";

const folder = join(import.meta.dir, "../../golden/template/chat_templates");
const real = readdirSync(folder).filter((name) => name.endsWith(".jinja"));
const specials = { bos_token: "<s>", eos_token: "</s>" };
const COUNT = 6000;

const chat = (name: string, more: Partial<TemplateInput> = {}): TemplateInput => ({
  messages: Array.from({ length: COUNT }, (_, i) => ({
    role: i % 2 === 0 ? "user" : "assistant",
    content: `${name} ${i}`,
  })),
  addGenerationPrompt: true,
  now: new Date(2026, 10, 30),
  ...more,
});

interface Way {
  readonly pauses: number;
  readonly text: string;
}

/** `between` is called at each pause. */
function inSteps(template: ChatTemplate, input: TemplateInput, between: () => void): Way {
  const steps = template.renderSteps!(input);
  for (let pauses = 0; ; pauses++) {
    const { done, value } = steps.next();
    if (done) return { pauses, text: value };
    between();
  }
}
const told = (run: () => string): string => {
  try {
    return run();
  } catch (error) {
    return `${(error as Error).name}: ${(error as Error).message}`;
  }
};

const other = compileChatTemplate("{% for m in messages %}{% set x = m.content %}{{ x }}{% endfor %}", specials);
const disturb = (): void => {
  expect(other.render({ messages: [{ role: "user", content: "other" }], addGenerationPrompt: false })).toBe("other");
  expect(told(() => other.render({ messages: [], addGenerationPrompt: false, continueFinalMessage: true }))).not.toBe(
    "",
  );
};

test.each(real)("%s", (name) => {
  const template = compileChatTemplate(readFileSync(join(folder, name), "utf8"), specials);
  for (const more of [
    {},
    { tools: [{ type: "function", function: { name: "f", description: "d", parameters: {} } }] },
  ]) {
    const input = chat(name, more);
    expect(told(() => inSteps(template, input, disturb).text)).toBe(told(() => template.render(input)));
  }
});

describe("loops", () => {
  test.each([
    ["with a condition", "{% for m in messages if loop is defined or m.role == 'user' %}{{ m.content }},{% endfor %}"],
    [
      "that end early",
      "{% for m in messages %}{% if loop.index > 4000 %}{% break %}{% endif %}{{ m.content }}{% else %}none{% endfor %}",
    ],
    [
      "that pass items by",
      "{% for m in messages %}{% if m.role == 'user' %}{% continue %}{% endif %}{{ loop.index }}{% endfor %}",
    ],
    ["over nothing", "{% for m in [] %}{{ m }}{% else %}none{% endfor %}{% for m in messages %}.{% endfor %}"],
    [
      "in branches",
      "{% if messages %}{% for m in messages %}{{ loop.last }}{% endfor %}{% elif x %}x{% else %}y{% endif %}",
    ],
    [
      "with what they keep",
      "{% set n = namespace(k=0) %}{% for m in messages %}{% set n.k = n.k + 1 %}{% endfor %}{{ n.k }}",
    ],
    [
      "that go on with what is left",
      "{% set u = messages | map(attribute='content') %}{% for c in u %}{% if loop.index == 3000 %}{% break %}{% endif %}{% endfor %}{% for c in u %}{{ c }}{% endfor %}",
    ],
    ["with macros", "{% macro w(m) %}[{{ m.content }}]{% endmacro %}{% for m in messages %}{{ w(m) }}{% endfor %}"],
    [
      "in blocks",
      "{% block b %}{% for m in messages %}{{ m.content }}{% endfor %}{% endblock %}{{ self.b() | length }}",
    ],
    [
      "that fail",
      "{% for m in messages %}\n{% if loop.index == 5000 %}{{ raise_exception('no') }}{% endif %}{% endfor %}",
    ],
    [
      "that are wrong",
      "{% for m in messages %}\n{% if loop.index == 5000 %}{{ m.content + 1 }}{% endif %}{% endfor %}",
    ],
    ["without end", "{% for m in messages %}{% for k in range(100000) %}{% endfor %}{% endfor %}"],
  ])("%s", (_, source) => {
    const template = compileChatTemplate(source, specials);
    expect(told(() => inSteps(template, chat("a"), disturb).text)).toBe(told(() => template.render(chat("a"))));
  });

  test.each([
    "{% for m in messages %}{% if m.tool_calls %}{% for c in m.tool_calls %}{% if loop.index == 5000 %}{% break %}{% endif %}{{ c.id }}{% if loop.last %}!{% endif %}{% endfor %}{% endif %}{{ m.content }}{% endfor %}",
    "{% for m in messages %}{% set n = namespace(k=0) %}{% for c in m.tool_calls %}{% set n.k = n.k + 1 %}{{ c | tojson }}{% else %}none{% endfor %}{{ n.k }}{% if m.role == 'tool' %}{% break %}{% endif %}{% endfor %}",
  ])("within a message of many calls: %#", (source) => {
    const template = compileChatTemplate(source, specials);
    const calls = Array.from({ length: 20_000 }, (_, i) => ({ id: `c${i}`, function: { name: "f", arguments: {} } }));
    const messages = [
      { role: "user", content: "a" },
      { role: "assistant", content: "b", tool_calls: calls },
      { role: "tool", content: "c" },
      { role: "tool", content: "d" },
    ];
    const input = chat("a", { messages });
    const { pauses, text } = inSteps(template, input, disturb);
    expect(text).toBe(template.render(input));
    expect(pauses).toBeGreaterThan(2);
  });

  test("of two chats by turns", () => {
    const source =
      "{% set n = namespace(k=0) %}{% for m in messages %}{% for k in range(20) %}{% set n.k = n.k + k %}{% endfor %}{{ m.content }} {{ n.k }};{% endfor %}";
    const [one, two] = ["one", "two"].map((name) => ({
      template: compileChatTemplate(source, specials),
      input: chat(name),
    }));
    const second = two!.template.renderSteps!(two!.input);
    let end = second.next();
    const first = inSteps(one!.template, one!.input, () => {
      if (!end.done) end = second.next();
    });
    while (!end.done) end = second.next();
    expect(first.pauses).toBeGreaterThan(1);
    expect(first.text).toBe(one!.template.render(one!.input));
    expect(end.value).toBe(two!.template.render(two!.input));
  });
});

describe("JSON of large values", () => {
  const properties = Object.fromEntries(
    Array.from({ length: 8_000 }, (_, i) => [
      `p${i}`,
      { type: "string", description: `number ${i}`, "\u00e9": i + 0.5 },
    ]),
  );
  const nested = (levels: number): unknown =>
    levels === 0 ? properties : { type: "object", properties: { a: nested(levels - 1) } };
  const tool = (name: string, parameters: unknown) => ({ type: "function", function: { name, parameters } });
  const words = Array.from({ length: 20_000 }, (_, i) => `word "${i}"`);
  const tools = [
    tool("few", {}),
    tool("many", { type: "object", properties }),
    tool("enum", { type: "string", enum: words }),
    tool("deep", nested(5)),
    tool("long", { description: '\ud800 "text"\n'.repeat(100_000) }),
  ];
  const messages = [
    { role: "user", content: "a" },
    {
      role: "assistant",
      content: "b",
      tool_calls: [{ id: "c", type: "function", function: { name: "f", arguments: properties } }],
    },
  ];

  test.each([
    "{% for t in tools %}{{ t | tojson }}{% endfor %}",
    "{{ tools | tojson }}{% for m in messages %}{{ m.role }}{% endfor %}",
    "{% for t in tools %}{{ t.function.parameters | tojson(separators=(',', ':')) }}{% endfor %}",
    "{% for t in tools %}{{ {'a': t, 'b': [t.function]} | tojson(sort_keys=true) }}{% endfor %}",
    "{% for t in tools %}{{ t | tojson(indent=4) }}{% endfor %}",
    "{% for t in tools %}{{ '{' ~ (t | tojson(ensure_ascii=true)) ~ (t | tojson | length) }}{% endfor %}",
    "{% macro w(t) %}{{ t | tojson }}{% endmacro %}{% for t in tools %}{{ w(t.function) }}{% endfor %}",
    "{% for m in messages %}{% for c in m.tool_calls %}{{ c | tojson }}{{ c.function.arguments | tojson }}{% endfor %}{% endfor %}",
    "{% for m in messages %}{{ documents | tojson }}{% endfor %}",
  ])("%s", (source) => {
    const template = compileChatTemplate(source, specials);
    const input = chat("a", { messages, tools, documents: [properties] });
    const { pauses, text } = inSteps(template, input, disturb);
    expect(text).toBe(template.render(input));
    expect(text.length).toBeGreaterThan(400_000);
    const unwritten = compileChatTemplate("{% for m in messages %}{{ m.role }}{% endfor %}", specials);
    expect(pauses).toBeGreaterThan(inSteps(unwritten, input, disturb).pauses + 10);
  });

  test.each([
    ["that nest too deep", "{{ tools | tojson }}", [nested(120)]],
    ["that take too much work", "{% for k in range(1000) %}{{ tools | tojson }}{% endfor %}", tools],
    ["of which none is asked for", "{% if false %}{{ tools | tojson }}{% endif %}{{ tools | length }}", tools],
    ["with one that is no JSON", "{{ [tools, nothing] | tojson }}", tools],
  ])("%s", (_, source, given) => {
    const template = compileChatTemplate(source, specials);
    const input = chat("a", { messages, tools: given });
    expect(told(() => inSteps(template, input, disturb).text)).toBe(told(() => template.render(input)));
  });
});
