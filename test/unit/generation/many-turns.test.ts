/** Chats of very many messages are put in order in time that grows with their number, whatever the template takes. */
import { expect, test } from "bun:test";
import type { Message } from "../../../src/generation/conversation.ts";
import { templateMessages } from "../../../src/generation/template-messages.ts";
import type { TemplateTraits } from "../../../src/generation/template-traits.ts";
import { Turns } from "../../../src/generation/turns.ts";

const COUNT = 100_000;
/** In the square of their number they would take a quarter of a minute and more, on a fast machine. */
const MOST_MS = 6000;

const both = { text: true, parts: true };
const easy: TemplateTraits = {
  content: { system: both, user: both, assistant: both, tool: both },
  developer: true,
  systemAnywhere: true,
  systemInPlace: true,
  turns: { system: true, repeats: { user: true, assistant: true }, answerFirst: true },
  calls: {
    arguments: "object",
    takesText: true,
    besideNull: true,
    besideEmpty: true,
    many: true,
    ids: "any",
    sample: "",
  },
  userBehindResults: true,
  namesResults: true,
  thinkingKey: undefined,
};
const strict: TemplateTraits = {
  ...easy,
  turns: { ...easy.turns, repeats: { user: false, assistant: false } },
  calls: { ...easy.calls!, many: false },
};

const list = <T>(item: (i: number) => T): T[] => Array.from({ length: COUNT }, (_, i) => item(i));
const parts = (i: number) => [`part ${i}`, "end"].map((text) => ({ type: "text", text }) as const);
const user = (i: number): Message => ({ role: "user", content: parts(i) });
const system = (i: number): Message => ({ role: "system", content: `rule ${i}` });
const asking: Message = {
  role: "assistant",
  content: "",
  toolCalls: list((i) => ({ id: `call ${i}`, name: "f", arguments: "{}" })),
};
const result = (i: number): Message => ({ role: "tool", content: "done", toolCallId: `call ${i}` });

test.each<[string, Message[], TemplateTraits]>([
  ["of one role", list(user), strict],
  ["of the system behind one", [user(0), ...list(system)], strict],
  ["of the system between others", list((i) => (i % 2 === 0 ? user(i) : system(i))), strict],
  ["that become text of the user", [user(0), ...list(system)], { ...strict, systemInPlace: false }],
  ["that answer calls of one message", [asking, ...list(result)], easy],
  ["that answer them from the last on", [asking, ...list((i) => result(COUNT - 1 - i))], strict],
  ["that name no call", [asking, ...list((): Message => ({ role: "tool", content: "done" }))], easy],
])(
  "messages %s",
  (_, messages, traits) => {
    const { user: before } = process.threadCpuUsage();
    expect(templateMessages(messages, traits, { systemInPlace: true }).length).toBeGreaterThan(0);
    expect((process.threadCpuUsage().user - before) / 1000).toBeLessThan(MOST_MS);
  },
  60_000,
);

test("items of a history", () => {
  const { user: before } = process.threadCpuUsage();
  const turns = new Turns({ joinUsers: true });
  for (let i = 0; i < COUNT; i++) turns.user(parts(i));
  for (let i = 0; i < COUNT; i++) turns.assistant(parts(i));
  for (let i = 0; i < COUNT; i++) turns.call({ id: `call ${i}`, name: "f", arguments: "{}" });
  for (let i = 0; i < COUNT; i++) turns.result(`call ${COUNT - 1 - i}`, "done");
  expect(turns.messages.length).toBe(COUNT + 2);
  expect(turns.messages.at(-1)?.toolCallId).toBe(`call ${COUNT - 1}`);
  expect((process.threadCpuUsage().user - before) / 1000).toBeLessThan(MOST_MS);
}, 60_000);
