/** Orders of turns that templates refuse, with real templates: what they get is what a client could have sent them itself. */
import { describe, expect, test } from "bun:test";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { fixtures } from "../../../scripts/fixtures.ts";
import type { Conversation, Message } from "../../../src/generation/conversation.ts";
import { renderPrompt } from "../../../src/generation/prompt.ts";
import { templateTraits } from "../../../src/generation/template-traits.ts";
import { type ChatTemplate, compileChatTemplate, renderedPrompt } from "../../../src/template/chat-template.ts";
import { compileModelTemplate, findChatTemplate } from "../../../src/template/model-template.ts";
import { type MessageData, prepareMessages } from "../../../src/template/prepare-messages.ts";

const folder = await fixtures();
const golden = join(import.meta.dir, "../../golden");
const real = (name: string): ChatTemplate => {
  const config = readFileSync(join(folder, "tokenizer-configs", `${name}.json`));
  return compileModelTemplate(findChatTemplate(new Map([["tokenizer_config.json", new Uint8Array(config)]]))!);
};
const own = (path: string): ChatTemplate =>
  compileChatTemplate(readFileSync(join(golden, path), "utf8"), { bos_token: "<s>", eos_token: "</s>" });

const TEMPLATES = {
  "Gemma 2": real("gemini"),
  "Gemma 3": real("gemma3"),
  "Llama 3": real("llama3"),
  "Llama 3.1": real("llama3_1"),
  "DeepSeek V3": real("deepseek_v3"),
  "Qwen 3": real("qwen3"),
  "Mistral Nemo's rules": own("tools/mistral_like.jinja"),
  "Mistral Small's rules": own("template/chat_templates/inst.jinja"),
} as const;
type Name = keyof typeof TEMPLATES;
const STRICT: readonly Name[] = ["Gemma 2", "Gemma 3", "Mistral Nemo's rules", "Mistral Small's rules"];
const LENIENT = (Object.keys(TEMPLATES) as Name[]).filter((name) => !STRICT.includes(name));

const now = new Date("2026-03-05T04:07:09");
/** The prompt of a request. */
function prompt(name: Name, messages: readonly Message[], more: Partial<Conversation> = {}): string {
  const conversation: Conversation = {
    ...{ messages, tools: [], toolChoice: { mode: "auto" }, parallelToolCalls: true },
    ...{ addGenerationPrompt: true, continueFinalMessage: false, templateVariables: {} },
    ...more,
  };
  return renderPrompt(conversation, TEMPLATES[name], { now }).text;
}
/** What the template makes of messages as they are, as transformers does (test/golden/template). */
const given = (name: Name, messages: readonly MessageData[]): string =>
  renderedPrompt(TEMPLATES[name], { messages: prepareMessages(messages), addGenerationPrompt: true, now }).text;

const user = (content: Message["content"]) => ({ role: "user", content }) as const;
const assistant = (content: string, more: Partial<Message> = {}) => ({ role: "assistant", content, ...more }) as const;
const system = (content: string) => ({ role: "system", content }) as const;
const part = (text: string) => ({ type: "text", text }) as const;

test.each(STRICT)("%s: what it refuses is found", (name) => {
  const { turns } = templateTraits(TEMPLATES[name], undefined, false);
  const refused = { user: false, assistant: false };
  expect(turns).toEqual({ system: name !== "Gemma 2", repeats: refused, answerFirst: false });
});

describe.each(LENIENT)("%s takes every order", (name) => {
  test.each([
    ["two of the user", [user("a"), user("b"), assistant("c"), user("d"), user("e")]],
    ["two answers", [user("a"), assistant("b"), assistant("c"), user("d")]],
    ["an answer first", [assistant("a"), user("b")]],
    ["a system message", [system("s"), user("a"), user("b")]],
  ] as const)("%s: the prompt is that of the messages as given", (_, messages) => {
    expect(prompt(name, messages)).toBe(given(name, messages));
  });
});

describe.each(STRICT)("%s", (name) => {
  test("messages in turn are as given", () => {
    const messages = [user("a"), assistant("b"), user("c")];
    expect(prompt(name, messages)).toBe(given(name, messages));
  });

  test("messages of the user in a row are one", () => {
    const messages = [user("a"), user("b"), user("c"), assistant("d"), user("e"), user(""), user("f")];
    expect(() => given(name, messages)).toThrow(/alternate/);
    expect(prompt(name, messages)).toBe(given(name, [user("a\n\nb\n\nc"), assistant("d"), user("e\n\nf")]));
  });

  test("answers in a row are one", () => {
    const messages = [user("a"), assistant("b"), assistant("c"), user("d")];
    expect(prompt(name, messages)).toBe(given(name, [user("a"), assistant("b\n\nc"), user("d")]));
  });

  test("before an answer that nobody asked for comes an empty message", () => {
    expect(prompt(name, [assistant("a"), user("b")])).toBe(given(name, [user(""), assistant("a"), user("b")]));
  });

  test("parts stay parts, with an empty line where messages meet", () => {
    const messages = [user([part("a"), part("b")]), user("c"), user([part("d"), part("e")])];
    const wanted = given(
      name,
      templateTraits(TEMPLATES[name], undefined, false).content.user.parts
        ? [user([part("a"), part("b\n\nc\n\nd"), part("e")])]
        : [user("a\nb\n\nc\n\nd\ne")],
    );
    expect(prompt(name, messages)).toBe(wanted);
  });

  test("a system message comes first, and as the user's where there is none", () => {
    const messages = [system("s"), user("a"), user("b"), system("t"), assistant("c"), user("d")];
    const inOrder = [user("a\n\nb"), assistant("c"), user("d")] as const;
    const [first, ...others] = inOrder;
    const wanted: Partial<Record<Name, readonly MessageData[]>> = {
      "Gemma 2": [user(`s\n\nt\n\n${first.content}`), ...others],
      // it has a place for later ones
      "Mistral Small's rules": [system("s"), first, system("t"), ...others],
    };
    expect(prompt(name, messages)).toBe(given(name, wanted[name] ?? [system("s\n\nt"), ...inOrder]));
  });

  test("orders that stay in place are text of the user", () => {
    const messages = [system("s"), user("a"), assistant("b"), system("t"), user("c")];
    const late = user("<system>\nt\n</system>\n\nc");
    const wanted: Partial<Record<Name, readonly MessageData[]>> = {
      "Gemma 2": [user("s\n\na"), assistant("b"), late],
      "Mistral Small's rules": messages,
    };
    const found = prompt(name, messages, { systemInPlace: true });
    expect(found).toBe(given(name, wanted[name] ?? [system("s"), user("a"), assistant("b"), late]));
  });

  test("an answer that goes on is the last one of its turn", () => {
    const more = { addGenerationPrompt: false, continueFinalMessage: true };
    expect(prompt(name, [user("a"), assistant("b"), assistant("c")], more)).toEndWith("b\n\nc");
  });

  test("a conversation that grows keeps the beginning of its prompt", () => {
    const all = [system("s"), user("a"), user("b"), assistant("c"), user("d"), user("e"), assistant("f")];
    const grown = [3, 6].map((length) => prompt(name, all.slice(0, length), { addGenerationPrompt: false }));
    // these templates put the system message, or the default one, into the last message of the user
    if (name !== "Mistral Nemo's rules") expect(grown[1]).toStartWith(grown[0]!);
  });
});

test("a system message between two of the user that become one stands before them", () => {
  const name = "Mistral Small's rules";
  const messages = [user("a"), system("s"), user("b"), system("t"), user("c"), assistant("d"), user("e")];
  expect(() => given(name, messages)).toThrow(/alternate/);
  expect(prompt(name, messages)).toBe(
    given(name, [system("s"), system("t"), user("a\n\nb\n\nc"), assistant("d"), user("e")]),
  );
});

describe("a system message that stays in place, between two of a role that become one, is text of the user there", () => {
  const name = "Mistral Small's rules";
  const inPlace = { systemInPlace: true } as const;
  test.each([
    [[user("a"), system("s"), user("b")], [user("a\n\n<system>\ns\n</system>\n\nb")]],
    [
      [system("r"), user("a"), system("s"), system("t"), user([part("b")]), assistant("c"), system("u"), user("d")],
      [
        system("r"),
        user([part("a\n\n<system>\ns\n</system>\n\n<system>\nt\n</system>\n\nb")]),
        assistant("c"),
        system("u"),
        user("d"),
      ],
    ],
    [
      [user("a"), assistant("b"), system("s"), assistant("c")],
      [user("a"), assistant("b"), user("<system>\ns\n</system>"), assistant("c")],
    ],
  ] as const)("%j", (messages, wanted) => {
    expect(prompt(name, messages, inPlace)).toBe(given(name, wanted));
  });

  test("behind the last message of the user it is a system message", () => {
    const messages = [user("a"), system("s")];
    expect(prompt(name, messages, inPlace)).toBe(given(name, messages));
  });
});

test("Gemma 2: a system message alone is the user's, and so is one before an answer", () => {
  expect(prompt("Gemma 2", [system("s")])).toBe(given("Gemma 2", [user("s")]));
  expect(prompt("Gemma 2", [system("s"), assistant("a"), user("b")])).toBe(
    given("Gemma 2", [user("s"), assistant("a"), user("b")]),
  );
  expect(prompt("Gemma 2", [{ role: "developer", content: "s" }, user("a")])).toBe(given("Gemma 2", [user("s\n\na")]));
});

test("thoughts and names of answers that become one", () => {
  const shown = `{% for m in messages %}{% if not loop.first and m.role == loop.previtem.role %}{{ raise_exception('alternate') }}{% endif %}[{{ m.name }}|{{ m.reasoning_content }}|{{ m.content }}]{% endfor %}`;
  const template = compileChatTemplate(shown, {});
  const rendered = (...messages: Message[]) =>
    renderPrompt(
      {
        ...{ messages: [user("a"), ...messages], tools: [], toolChoice: { mode: "auto" }, parallelToolCalls: true },
        ...{ addGenerationPrompt: false, continueFinalMessage: false, templateVariables: {} },
      },
      template,
    ).text;
  expect(rendered(assistant("b", { reasoning: "x", name: "n" }), assistant("c", { reasoning: "y", name: "n" }))).toBe(
    "[||a][n|x\n\ny|b\n\nc]",
  );
  expect(rendered(assistant("b", { name: "n" }), assistant("", { reasoning: "y" }))).toBe("[||a][|y|b]");
  expect(() =>
    rendered(assistant("b"), assistant("", { toolCalls: [{ id: "1", name: "f", arguments: "{}" }] })),
  ).toThrow("alternate");
});
