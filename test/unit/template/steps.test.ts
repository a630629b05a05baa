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
