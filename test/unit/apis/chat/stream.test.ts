import { describe, expect, test } from "bun:test";
import type { ChatAnswer } from "../../../../src/apis/chat/answer.ts";
import { ChatCollector } from "../../../../src/apis/chat/collect.ts";
import { ChatStream } from "../../../../src/apis/chat/stream.ts";
import type { FrameWriter } from "../../../../src/apis/shared/answer.ts";
import { ClientClosedError, EngineFailureError, type GatewayError } from "../../../../src/errors.ts";
import type { GenerationEvent, LogprobEntry } from "../../../../src/generation/events.ts";
import { demoTokenizer, encode } from "../../generation/demo-tokenizer.ts";
import { random } from "../../generation/random.ts";
import { checkGrammar, fold, readFrames } from "./chunks.ts";

class Frames implements FrameWriter {
  text = "";
  ends = 0;
  cuts = 0;
  write(frame: string): void {
    if (this.ends + this.cuts > 0) throw new Error(`written after the end: ${frame}`);
    if (!frame.endsWith("\n\n")) throw new Error(`not a whole frame: ${frame}`);
    this.text += frame;
  }
  flush(): void {}
  end(): void {
    this.ends++;
  }
  cut(): void {
    this.cuts++;
  }
}

const PLAIN: ChatAnswer = {
  id: "chatcmpl-1",
  created: 1_700_000_000,
  model: 'a "model"',
  choices: 1,
  promptTokens: 5,
  tokenizer: demoTokenizer,
  logprobs: false,
  tokensAsIds: false,
  promptTokenIds: undefined,
  includeUsage: false,
  continuousUsage: false,
  reasoningFields: ["reasoning_content"],
  legacyCalls: false,
  parsed: false,
};

const text = (
  value: string,
  index = 0,
  more: { tokenIds?: number[]; logprobs?: LogprobEntry[] } = {},
): GenerationEvent => ({
  type: "output",
  index,
  parts: value === "" ? [] : [{ type: "text", text: value }],
  tokenIds: more.tokenIds,
  logprobs: more.logprobs,
});
const finish = (index = 0, matchedStop?: string | number): GenerationEvent => ({
  type: "finish",
  index,
  reason: "stop",
  matchedStop,
});
const USAGE: GenerationEvent = {
  type: "usage",
  promptTokens: 5,
  cachedTokens: 2,
  completionTokens: 3,
  reasoningTokens: 0,
};
const failure = (error: GatewayError = new EngineFailureError(500, "engine_failed", "it failed")): GenerationEvent => ({
  type: "error",
  error,
});

function play(events: readonly GenerationEvent[], answer: Partial<ChatAnswer> = {}) {
  const out = new Frames();
  let firsts = 0;
  const stream = new ChatStream({ ...PLAIN, ...answer }, out, () => {
    firsts++;
  });
  for (const event of events) stream.emit(event);
  return { out, stream, firsts, read: readFrames(out.text) };
}

test("role, content, finish, [DONE]", () => {
  const { out, read, firsts } = play([text("Hel"), text("lo"), finish(), USAGE]);
  checkGrammar(read, 1, false);
  expect(out.text.split("\n\n")[0]).toBe(
    'data: {"id":"chatcmpl-1","object":"chat.completion.chunk","created":1700000000,"model":"a \\"model\\"","choices":[{"index":0,"delta":{"role":"assistant","content":""},"logprobs":null,"finish_reason":null}]}',
  );
  expect(read.chunks.map(({ choices: [choice] }) => [choice?.delta.content, choice?.finish_reason])).toEqual([
    ["", null],
    ["Hel", null],
    ["lo", null],
    [undefined, "stop"],
  ]);
  expect([out.ends, out.cuts, firsts]).toEqual([1, 0, 1]);
});

test("an empty answer still has a role and a finish", () => {
  checkGrammar(play([finish(), USAGE]).read, 1, false);
});

test("several choices, each with its own role and finish", () => {
  const { read } = play([text("b", 1), text("a", 0), finish(1), text("A", 0), finish(0), USAGE], { choices: 2 });
  checkGrammar(read, 2, false);
  expect(fold(read, 2)).toMatchObject([{ message: { content: "aA" } }, { message: { content: "b" } }]);
});

test("every text survives its JSON", () => {
  const nasty = ['"', "\\", "\n\n", "\r", "\u2028", "\u0000", "data: [DONE]\n\n", "日本😀", "</script>", "\ud800"];
  const { read } = play([...nasty.map((part) => text(part)), finish(), USAGE], { model: nasty.join("") });
  checkGrammar(read, 1, false);
  expect(read.chunks.slice(1, -1).map(({ choices: [choice] }) => choice?.delta.content)).toEqual(nasty);
  expect(read.chunks[0]?.model).toBe(nasty.join(""));
});

describe("usage", () => {
  test("comes last and alone if asked for, null before", () => {
    const { read } = play([text("a"), finish(), USAGE], { includeUsage: true });
    checkGrammar(read, 1, true);
    for (const chunk of read.chunks.slice(0, -1)) expect(chunk.usage).toBeNull();
    expect(read.chunks.at(-1)).toMatchObject({
      choices: [],
      usage: {
        prompt_tokens: 5,
        completion_tokens: 3,
        total_tokens: 8,
        prompt_tokens_details: { cached_tokens: 2 },
        completion_tokens_details: { reasoning_tokens: 0 },
      },
    });
  });

  test("runs along in every chunk with continuous_usage_stats, whether ids are shown or not", () => {
    const { read } = play(
      [text("a", 0, { tokenIds: [1] }), text("b", 1, { tokenIds: [2, 3] }), finish(0), finish(1), USAGE],
      { choices: 2, includeUsage: true, continuousUsage: true },
    );
    checkGrammar(read, 2, true);
    expect(read.chunks.map(({ usage }) => usage?.["completion_tokens"])).toEqual([0, 1, 1, 3, 3, 3, 3]);
    for (const { usage } of read.chunks) expect(usage).toMatchObject({ prompt_tokens: 5 });
    for (const { choices } of read.chunks) for (const choice of choices) expect(choice).not.toHaveProperty("token_ids");
  });
});

test("what the request named as its stop is told with the finish", () => {
  expect(play([finish(0, "END"), USAGE]).read.chunks.at(-1)?.choices[0]).toMatchObject({
    finish_reason: "stop",
    stop_reason: "END",
    matched_stop: "END",
  });
  expect(play([finish(0, 7), USAGE]).read.chunks.at(-1)?.choices[0]).toMatchObject({ stop_reason: 7 });
  expect(play([finish(), USAGE]).read.chunks.at(-1)?.choices[0]).not.toHaveProperty("stop_reason");
});

describe("failures", () => {
  test("after the first event: one frame, the end, no [DONE]", () => {
    const { read, out, firsts } = play([text("a"), failure()]);
    checkGrammar(read, 1, false);
    expect(read.done).toBe(false);
    expect(read.error).toEqual({ message: "it failed", type: "server_error", param: null, code: "engine_failed" });
    expect([out.ends, out.cuts]).toEqual([1, 0]);
    expect(firsts).toBeGreaterThan(0);
  });

  test("before the first event: nothing is written, so that the status can tell it", () => {
    const { out, stream, firsts } = play([failure()]);
    expect(out.text).toBe("");
    expect([stream.started, stream.error?.code, out.ends, firsts]).toEqual([false, "engine_failed", 0, 1]);
  });

  test("before the first event, but with the status out already: a frame", () => {
    const out = new Frames();
    const stream = new ChatStream(PLAIN, out, () => {});
    stream.commit();
    stream.emit(failure());
    expect(readFrames(out.text).error?.["code"]).toBe("engine_failed");
    expect(out.ends).toBe(1);
  });

  test("a client that left is cut, not told", () => {
    const { out } = play([text("a"), failure(new ClientClosedError())]);
    expect(out.text).not.toContain("error");
    expect([out.ends, out.cuts]).toEqual([0, 1]);
  });
});

describe("logprobs", () => {
  const entry = (id: number, logprob = -0.5): LogprobEntry => ({
    id,
    logprob,
    top: [
      { id, logprob },
      { id: 9, logprob: -2 },
    ],
  });

  test("have exact bytes, also of a token that is part of a character", () => {
    const ids = encode("\u{1fae0}");
    const { read } = play([text("", 0, { logprobs: [entry(ids[0]!)] }), finish(), USAGE], { logprobs: true });
    checkGrammar(read, 1, false);
    const content = read.chunks[1]?.choices[0]?.logprobs?.content ?? [];
    const [shown] = content as { bytes: number[]; top_logprobs: unknown[] }[];
    expect(shown?.bytes).toEqual(Array.from(demoTokenizer.tokenBytes(ids[0]!)));
    expect(shown?.top_logprobs.length).toBe(2);
  });

  test("minus infinity is a number that JSON has", () => {
    const { read } = play([text("a", 0, { logprobs: [entry(5, Number.NEGATIVE_INFINITY)] }), finish(), USAGE], {
      logprobs: true,
    });
    expect(read.chunks[1]?.choices[0]?.logprobs?.content).toMatchObject([{ logprob: -9999 }]);
  });

  test("token ids instead of texts", () => {
    const { read } = play([text("a", 0, { logprobs: [entry(5)] }), finish(), USAGE], {
      logprobs: true,
      tokensAsIds: true,
    });
    expect(read.chunks[1]?.choices[0]?.logprobs?.content).toMatchObject([
      { token: "token_id:5", top_logprobs: [{ token: "token_id:5" }, { token: "token_id:9" }] },
    ]);
  });
});

test("return_token_ids shows the prompt's once and each choice's with its text", () => {
  const answer = { choices: 2, promptTokenIds: Uint32Array.of(7, 8) };
  const { read } = play(
    [text("b", 1, { tokenIds: [3] }), text("", 0, { tokenIds: [1] }), finish(0), finish(1), USAGE],
    answer,
  );
  checkGrammar(read, 2, false);
  expect(read.chunks.flatMap(({ prompt_token_ids }) => (prompt_token_ids ? [prompt_token_ids] : []))).toEqual([[7, 8]]);
  expect(fold(read, 2)).toMatchObject([{ token_ids: [1] }, { token_ids: [3] }]);
});

test("random event sequences: the stream, folded, is the collected object", () => {
  for (let seed = 1; seed <= 2000; seed++) {
    const { below, pick } = random(seed);
    const choices = 1 + below(3);
    const logprobs = below(2) === 1;
    const includeUsage = below(2) === 1;
    const showIds = below(2) === 1;
    const answer = {
      choices,
      logprobs,
      includeUsage,
      tokensAsIds: below(2) === 1,
      promptTokenIds: showIds ? Uint32Array.of(1, 2) : undefined,
      continuousUsage: includeUsage && below(2) === 1,
    };
    const open = Array.from({ length: choices }, (_, i) => i);
    const events: GenerationEvent[] = [];
    while (open.length > 0) {
      const index = pick(open);
      if (below(4) === 0) {
        events.push({
          type: "finish",
          index,
          reason: pick(["stop", "length"]),
          matchedStop: pick([undefined, "END", 7]),
        });
        open.splice(open.indexOf(index), 1);
        continue;
      }
      const ids = Array.from({ length: 1 + below(3) }, () => below(1000));
      events.push(
        text(pick(["", "a", "ü😀", '"\\\n', " two words"]), index, {
          ...((showIds || answer.continuousUsage) && { tokenIds: ids }),
          ...(logprobs &&
            below(3) > 0 && { logprobs: ids.map((id) => ({ id, logprob: -below(9), top: [{ id, logprob: -1 }] })) }),
        }),
      );
    }
    events.push(USAGE);
    const { read } = play(events, answer);
    checkGrammar(read, choices, includeUsage);
    const collector = new ChatCollector({ ...PLAIN, ...answer });
    for (const event of events) collector.emit(event);
    const whole = JSON.parse(JSON.stringify(collector.object())) as {
      choices: Record<string, unknown>[];
      usage: unknown;
      prompt_token_ids?: number[];
    };
    const folded = fold(read, choices) as Record<string, unknown>[];
    whole.choices.forEach((choice, index) => {
      const streamed = folded[index]!;
      expect({ seed, ...choice }).toMatchObject({
        seed,
        index,
        message: streamed["message"],
        finish_reason: streamed["finish_reason"],
      });
      expect(choice["logprobs"]).toEqual(logprobs ? { content: streamed["logprobs"], refusal: null } : null);
      expect(choice["stop_reason"]).toEqual(streamed["stop_reason"]);
      expect(choice["token_ids"] ?? []).toEqual(streamed["token_ids"] as number[]);
    });
    if (includeUsage) expect(whole.usage).toEqual(read.chunks.at(-1)?.usage as never);
    expect(read.chunks.find((chunk) => chunk.prompt_token_ids)?.prompt_token_ids).toEqual(
      whole.prompt_token_ids as never,
    );
  }
});

test("the collected object has every key that clients' types need", () => {
  const collector = new ChatCollector({ ...PLAIN, choices: 2 });
  for (const event of [text("a"), finish(), finish(1, "END"), USAGE]) collector.emit(event);
  expect(collector.object()).toEqual({
    id: "chatcmpl-1",
    object: "chat.completion",
    created: 1_700_000_000,
    model: 'a "model"',
    choices: [
      { index: 0, message: { role: "assistant", content: "a", refusal: null }, logprobs: null, finish_reason: "stop" },
      {
        index: 1,
        message: { role: "assistant", content: "", refusal: null },
        logprobs: null,
        finish_reason: "stop",
        stop_reason: "END",
        matched_stop: "END",
      },
    ],
    usage: {
      prompt_tokens: 5,
      completion_tokens: 3,
      total_tokens: 8,
      prompt_tokens_details: { cached_tokens: 2 },
      completion_tokens_details: { reasoning_tokens: 0 },
    },
  });
});
