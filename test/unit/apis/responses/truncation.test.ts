import { expect, test } from "bun:test";
import { withinCharacters, withoutOldest } from "../../../../src/apis/responses/truncation.ts";
import type { Message } from "../../../../src/generation/conversation.ts";
import { random } from "../../generation/random.ts";

const said = (role: Message["role"], content: string, more: Partial<Message> = {}): Message => ({
  role,
  content,
  ...more,
});
const call = (id: string): Message => said("assistant", "", { toolCalls: [{ id, name: "f", arguments: "{}" }] });
const result = (id: string, content = "r".repeat(10)): Message => said("tool", content, { toolCallId: id });
const shown = (messages: readonly Message[] | undefined) =>
  messages?.map(({ role, content, toolCallId }) => toolCallId ?? `${role} ${String(content).slice(0, 1)}`);

const long = (letter: string) => letter.repeat(100);

test("whole turns go first, the oldest before the others; system messages stay", () => {
  const messages = [
    said("system", "s"),
    said("user", long("a")),
    said("assistant", long("b")),
    said("developer", "d"),
    said("user", long("c")),
    said("assistant", long("e")),
    said("user", long("f")),
  ];
  expect(shown(withoutOldest(messages, 0.1))).toEqual(["system s", "developer d", "user c", "assistant e", "user f"]);
  expect(shown(withoutOldest(messages, 0.5))).toEqual(["system s", "developer d", "user f"]);
  expect(shown(withoutOldest(messages, 1))).toEqual(["system s", "developer d", "user f"]);
});

test("in one long turn the oldest calls go, each with its results", () => {
  const messages = [
    said("user", "go"),
    call("1"),
    result("1"),
    call("2"),
    result("2"),
    result("2b"),
    call("3"),
    result("3"),
  ];
  expect(shown(withoutOldest(messages, 0.01))).toEqual(["user g", "assistant ", "2", "2b", "assistant ", "3"]);
  expect(shown(withoutOldest(messages, 1))).toEqual(["user g", "assistant ", "3"]);
});

test("what is left at last can't go", () => {
  expect(withoutOldest([said("system", "s"), said("user", long("a"))], 0.5)).toBeUndefined();
  expect(withoutOldest([said("user", "a"), call("1"), result("1")], 0.5)).toBeUndefined();
  expect(withoutOldest([result("1")], 0.5)).toBeUndefined();
});

test("a number of characters is kept to where something can go for it", () => {
  const messages = [said("user", long("a")), said("assistant", long("b")), said("user", long("c")), said("user", "d")];
  expect(withinCharacters(messages, 301)).toBe(messages);
  expect(shown(withinCharacters(messages, 300))).toEqual(["user c", "user d"]);
  expect(shown(withinCharacters(messages, 50))).toEqual(["user d"]);
  expect(withinCharacters([said("user", long("a"))], 50)).toHaveLength(1);
});

test("random histories: it comes to an end, and no call ever loses its result, nor a result its call", () => {
  for (let seed = 1; seed <= 500; seed++) {
    const { below, pick } = random(seed);
    let messages: readonly Message[] = Array.from({ length: 1 + below(20) }, (_, i) => i).flatMap((i): Message[] => {
      const kind = below(4);
      if (kind === 0) return [call(`${i}`), result(`${i}`)];
      return [said(pick(["user", "assistant", "system"]), "x".repeat(below(50)))];
    });
    const system = messages.filter(({ role }) => role === "system").length;
    for (;;) {
      const fewer = withoutOldest(messages, 0.02 + below(50) / 100);
      if (fewer === undefined) break;
      expect(fewer.length).toBeLessThan(messages.length);
      expect(fewer.filter(({ role }) => role === "system").length).toBe(system);
      expect(fewer.at(-1)).toBe(messages.at(-1)!);
      const calls = new Set(fewer.flatMap(({ toolCalls = [] }) => toolCalls.map(({ id }) => id)));
      const results = new Set(fewer.flatMap(({ toolCallId }) => (toolCallId === undefined ? [] : [toolCallId])));
      expect({ seed, calls: [...calls] }).toEqual({ seed, calls: [...results] });
      messages = fewer;
    }
  }
});
