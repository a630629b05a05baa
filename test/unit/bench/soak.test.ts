import { describe, expect, test } from "bun:test";
import { Answer, type Wanted } from "../../../bench/soak/answer.ts";
import { isEcho, matchesEcho } from "../../../bench/soak/echo.ts";
import { memorySlope } from "../../../bench/soak/trend.ts";

const words = ["one", "two", "three"];
const promptIds = [11, 12, 13];
const completion: Wanted = { shows: "ids and text", streams: true, words, maxTokens: 5 };

const data = (value: unknown) => `data: ${typeof value === "string" ? value : JSON.stringify(value)}\n\n`;
const token = (id: number, text: string) => data({ choices: [{ index: 0, text, token_ids: [id] }] });
const HEAD = data({ choices: [{ index: 0, text: "", token_ids: [], prompt_token_ids: promptIds }] });
const TOKENS = [token(11, " one"), token(12, " two"), token(13, " three"), token(11, " one"), token(12, " two")];
const TAIL = [
  data({ choices: [{ index: 0, text: "", finish_reason: "length" }] }),
  data({ choices: [], usage: { completion_tokens: 5 } }),
  data("[DONE]"),
];
const GOOD = [HEAD, ...TOKENS, ...TAIL];
const gone = { error: { message: "gone", type: "server_error", code: "engine_unavailable" } };

function outcome(body: readonly string[], options: { wanted?: Wanted; status?: number; problem?: string } = {}) {
  const { wanted = completion, status = 200, problem } = options;
  const answer = new Answer(wanted);
  for (const piece of body) answer.feed(status, piece);
  return answer.end(status, problem);
}
const without = (at: number) => GOOD.filter((_, i) => i !== at);

describe("an answer of the soak", () => {
  test("is exact when every token is there once, in order, with its end, however it is cut", () => {
    expect(outcome(GOOD)).toEqual({ kind: "exact", tokens: 5 });
    expect(outcome([...GOOD.join("")])).toEqual({ kind: "exact", tokens: 5 });
  });

  test.each([
    ["a token is lost", without(2), "token 1 is 13 instead of 12"],
    ["the last token is lost", without(5), "4 tokens instead of 5"],
    ["a token is doubled", GOOD.toSpliced(2, 0, GOOD[1]!), "token 1 is 11 instead of 12"],
    ["a token is another's", GOOD.with(3, token(14, " three")), "token 2 is 14 instead of 13"],
    ["the text is another's", GOOD.with(3, token(13, " four")), "other text"],
    ["the text lacks a piece", GOOD.with(5, token(12, " tw")), "the text is not that of 5 tokens"],
    ["the prompt is another's", GOOD.with(0, HEAD.replace("11,", "")), "a prompt of 2 tokens instead of 3"],
    ["there is no finish", without(6), "it ended by nothing"],
    ["the finish is another", GOOD.with(6, TAIL[0]!.replace("length", "stop")), "it ended by stop"],
    ["the usage is another", GOOD.with(7, TAIL[1]!.replace("5", "6")), "usage of 6 tokens for 5"],
    ["there is no [DONE]", without(8), "no [DONE]"],
    ["it goes on after the end", [...GOOD, TOKENS[0]!], "after the end"],
    ["it breaks off without a word", GOOD.slice(0, 4), "it ended by nothing after 3 tokens"],
    ["an event is no JSON", GOOD.with(2, data("{")), "not JSON"],
    ["it fails after a wrong token", [HEAD, TOKENS[1]!, data(gone)], "token 0 is 12 instead of 11"],
    ["it goes on after a failure", [HEAD, data(gone), TOKENS[0]!], "after the end"],
    ["an error has no code", [HEAD, data({ error: { message: "x", type: "server_error" } })], "without type or code"],
    [
      "the gateway stumbled",
      [HEAD, data({ error: { ...gone.error, code: "internal_error" } })],
      "internal_error: gone",
    ],
  ])("is wrong when %s", (_, body, why) => {
    expect(outcome(body)).toEqual({ kind: "wrong", why: expect.stringContaining(why) });
  });

  test("is wrong when the connection breaks, even after a right beginning", () => {
    expect(outcome(GOOD.slice(0, 3), { problem: "the connection was closed" })).toMatchObject({ kind: "wrong" });
  });

  test("may fail with a typed error, before its first token and after a right beginning", () => {
    expect(outcome([HEAD, TOKENS[0]!, data(gone)])).toEqual({ kind: "failed", code: "engine_unavailable", tokens: 1 });
    expect(outcome([JSON.stringify(gone)], { status: 503 })).toMatchObject({ kind: "failed", tokens: 0 });
    const numbered = { error: { ...gone.error, code: 503 } };
    expect(outcome([HEAD, data(numbered)])).toEqual({ kind: "failed", code: "503", tokens: 0 });
    expect(outcome([HEAD, data({ error: { ...gone.error, code: 400 } })])).toMatchObject({ kind: "wrong" });
    expect(outcome(["gone"], { status: 503 })).toMatchObject({ kind: "wrong" });
    expect(outcome(["{}"], { status: 503 })).toMatchObject({ kind: "wrong" });
  });

  test("of a client that leaves is right as far as it came", () => {
    const left = (...body: string[]) => {
      const answer = new Answer(completion);
      for (const piece of body) answer.feed(200, piece);
      return answer.leave();
    };
    expect(left(HEAD, TOKENS[0]!, TOKENS[1]!)).toEqual({ kind: "aborted", tokens: 2 });
    expect(left(HEAD, TOKENS[0]!, TOKENS[0]!)).toMatchObject({ kind: "wrong" });
  });

  test("as a whole, and of an engine whose ids are not shown", () => {
    const text = " one two three one two";
    const choice = { index: 0, text, token_ids: [11, 12, 13, 11, 12], prompt_token_ids: promptIds };
    const whole = { choices: [{ ...choice, finish_reason: "length" }], usage: { completion_tokens: 5 } };
    expect(outcome([JSON.stringify(whole)], { wanted: { ...completion, streams: false } }).kind).toBe("exact");
    const chat = (content: string) => data({ choices: [{ index: 0, delta: { content } }] });
    const wanted: Wanted = { ...completion, shows: "text" };
    expect(outcome([chat(" one tw"), chat("o three one two"), ...TAIL], { wanted }).kind).toBe("exact");
    expect(outcome([chat(" one"), chat(" one two"), ...TAIL], { wanted }).kind).toBe("wrong");
  });

  test("without the special tokens of a chat's prompt", () => {
    const head = HEAD.replace("[11,", "[151644,11,");
    expect(outcome([head, ...GOOD.slice(1)], { wanted: { ...completion, shows: "ids" } }).kind).toBe("exact");
  });
});

test("an echo is the words over and over", () => {
  expect(matchesEcho("", words)).toBe(true);
  expect(matchesEcho(" one two three one t", words)).toBe(true);
  expect(matchesEcho(" one three", words)).toBe(false);
  expect(isEcho(" one two three one", words, 4)).toBe(true);
  expect(isEcho(" one two three", words, 4)).toBe(false);
  expect(isEcho(" one two three one t", words, 4)).toBe(false);
});

test("the slope of the memory leaves out the warm-up", () => {
  const samples = Array.from({ length: 101 }, (_, i) => ({ atSecs: i, bytes: i < 20 ? i * 1e7 : 2e8 + i * 5e4 }));
  expect(memorySlope(samples, 0.2)).toBeCloseTo(3, 6);
  expect(memorySlope([], 0.2)).toBe(0);
});
