/** Calls and results for templates that take less than the APIs allow. */
import { describe, expect, test } from "bun:test";
import { oneCallEach, textInResults } from "../../../src/generation/call-turns.ts";
import type { Conversation, Message } from "../../../src/generation/conversation.ts";
import { renderPrompt } from "../../../src/generation/prompt.ts";
import { compileChatTemplate } from "../../../src/template/chat-template.ts";

const user = (content: string): Message => ({ role: "user", content });
const call = (id: string) => ({ id, name: "f", arguments: `{"of": "${id}"}` });
const called = (...ids: string[]): Message => ({ role: "assistant", content: "", toolCalls: ids.map(call) });
const result = (id: string | undefined, content = `${id}!`): Message => ({
  role: "tool",
  content,
  ...(id !== undefined && { toolCallId: id }),
});
const place = (messages: readonly Message[]) => messages.map((message, at) => ({ message, at }));

describe("one call each", () => {
  const row = (messages: readonly Message[]) =>
    oneCallEach(place(messages)).map(({ message: { role, toolCalls, toolCallId, content }, at, firstCall }) =>
      role === "tool"
        ? `${toolCallId ?? content}`
        : `${role} ${(toolCalls ?? []).map(({ id }) => id)} ${at}${firstCall ?? ""}`,
    );

  test("has its results behind it", () => {
    expect(row([user("a"), called("x", "y", "z"), result("x"), result("y"), result("z"), user("b")])).toEqual([
      ...["user  0", "assistant x 10", "x", "assistant y 11", "y", "assistant z 12", "z", "user  5"],
    ]);
    expect(row([called("x", "y"), result("y"), result("x")])).toEqual(["assistant x 00", "x", "assistant y 01", "y"]);
  });

  test("results that name no call answer the calls in their order; those of unknown ones come last", () => {
    expect(row([called("x", "y"), result(undefined, "1"), result(undefined, "2")])).toEqual([
      ...["assistant x 00", "1", "assistant y 01", "2"],
    ]);
    expect(row([called("x", "y"), result("q"), result("y")])).toEqual(["assistant x 00", "assistant y 01", "y", "q"]);
  });

  test("thoughts and text stay with the first; messages of one call are left alone", () => {
    const message: Message = { ...called("x", "y"), content: "text", reasoning: "thought" };
    const [first, second] = oneCallEach(place([message]));
    expect([first!.message.content, first!.message.reasoning]).toEqual(["text", "thought"]);
    expect(second!.message).toEqual({ role: "assistant", content: "", withoutContent: true, toolCalls: [call("y")] });
    const single = place([user("a"), called("x"), result("x")]);
    expect(oneCallEach(single)).toEqual(single);
  });
});

test("text behind results goes to the end of the last one", () => {
  const messages = [
    called("x", "y"),
    result("x"),
    result("y"),
    user("b"),
    user("c"),
    called("z"),
    result("z", ""),
    user("d"),
  ];
  const failed: Message = { ...result("z", ""), isError: true };
  expect(textInResults(place(messages)).map(({ message }) => message.content)).toEqual([
    "",
    "x!",
    "y!\n\nb\n\nc",
    "",
    "\n\nd",
  ]);
  expect(textInResults(place([failed, user("d")])).map(({ message }) => message.content)).toEqual(["error\n\nd"]);
  expect(textInResults(place([user("a"), called("x")]))).toHaveLength(2);
});

describe("a template", () => {
  const CALLS = `{% for c in m.tool_calls %}<{{ c.function.name }} {{ c.function.arguments | tojson }}>{% endfor %}`;
  const source = (check: string) =>
    `{% set ns = namespace(last="") %}{% for m in messages %}${check}[{{ m.role }}]{{ m.content or "" }}{% if m.tool_calls %}${CALLS}{% endif %}{% set ns.last = m.role %}{% endfor %}`;
  const prompt = (check: string, messages: readonly Message[]) => {
    const more: Omit<Conversation, "messages"> = {
      ...{ tools: [], toolChoice: { mode: "none" }, parallelToolCalls: true, addGenerationPrompt: false },
      ...{ continueFinalMessage: false, templateVariables: {} },
    };
    return renderPrompt({ messages, ...more } as Conversation, compileChatTemplate(source(check), {})).text;
  };
  const both = [user("a"), called("x", "y"), result("x"), result("y"), user("b")];
  const SINGLE = `{% if m.tool_calls and m.tool_calls | length > 1 %}{{ raise_exception("one at a time") }}{% endif %}`;
  const ALTERNATES = `{% if m.role == "user" and ns.last == "tool" %}{{ raise_exception("roles") }}{% endif %}`;
  const x = '<f {"of": "x"}>';
  const y = '<f {"of": "y"}>';

  test("that takes all is given all", () => {
    expect(prompt("", both)).toBe(`[user]a[assistant]${x}${y}[tool]x![tool]y![user]b`);
  });
  test("that takes one call a message", () => {
    expect(prompt(SINGLE, both)).toBe(`[user]a[assistant]${x}[tool]x![assistant]${y}[tool]y![user]b`);
  });
  test("that takes no user behind results", () => {
    expect(prompt(ALTERNATES, both)).toBe(`[user]a[assistant]${x}${y}[tool]x![tool]y!\n\nb`);
  });
  test("that takes neither", () => {
    expect(prompt(SINGLE + ALTERNATES, both)).toBe(`[user]a[assistant]${x}[tool]x![assistant]${y}[tool]y!\n\nb`);
  });
});
