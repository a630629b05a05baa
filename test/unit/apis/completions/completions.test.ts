/** `POST /v1/completions` over HTTP, with a real tokenizer and an engine in memory. */
import { afterAll, describe, expect, test } from "bun:test";
import { type Completion, checkCompletion } from "../../../support/schemas/completions.ts";
import { END_OF_TEXT, encode } from "../../generation/demo-tokenizer.ts";
import { MODEL, modelEntry } from "../../server/gateway.ts";
import {
  completedBothWays,
  completionOf,
  frames,
  PATH,
  promptsOf,
  refused,
  speaking,
  started,
  stopAll,
  TEXT,
  textOf,
} from "./gateway.ts";

/** Answers every choice with a text that tells its prompt and its number. */
const gateway = started(speaking((call, choice) => `${TEXT} ${call.request.tokenIds.length}.${choice}`));
afterAll(stopAll);
const ask = (body: object, from = gateway) => completionOf(body, from);
const bothWays = (body: object, from = gateway) => completedBothWays(body, from);
const prompts = (body: object, from = gateway) => promptsOf(body, from);

describe("prompts", () => {
  test("text, texts, ids, and lists of ids, each to its place", async () => {
    expect(await prompts({ prompt: "this number" })).toEqual([encode("this number")]);
    expect(await prompts({ prompt: ["this", "this number"] })).toEqual([encode("this"), encode("this number")]);
    expect(await prompts({ prompt: [7, 8, 9] })).toEqual([[7, 8, 9]]);
    expect(await prompts({ prompt: [[7], [8, 9]] })).toEqual([[7], [8, 9]]);
  });

  test("special tokens in a text are tokens", async () => {
    expect(await prompts({ prompt: "a<|im_end|>" })).toEqual([[...encode("a"), 151645]]);
  });

  test("truncate_prompt_tokens keeps the last tokens; -1: what the context leaves", async () => {
    const ids = Array.from({ length: 30 }, (_, i) => i);
    expect(await prompts({ prompt: ids, truncate_prompt_tokens: 4 })).toEqual([ids.slice(-4)]);
    const small = started(
      speaking(() => "x"),
      [modelEntry({ contextLength: 20 })],
    );
    expect(await prompts({ prompt: ids, truncate_prompt_tokens: -1, max_tokens: 5 }, small)).toEqual([ids.slice(-15)]);
    expect(await prompts({ prompt: ids, truncate_prompt_tokens: -1 }, small)).toEqual([ids.slice(-4)]);
    expect((await refused(small, PATH, { prompt: ids }))[1]).toBe("context_length_exceeded");
  });

  test("16 tokens unless told otherwise; no more than the context leaves where none was asked for", async () => {
    const asked = async (body: object, from = gateway) => {
      await ask({ prompt: [1, 2], ...body }, from);
      return from.engine.calls.at(-1)!.request.sampling.maxTokens;
    };
    expect(await asked({})).toBe(16);
    expect(await asked({ max_tokens: null })).toBe(16);
    expect(await asked({ max_tokens: 99 })).toBe(99);
    const small = started(
      speaking(() => "x"),
      [modelEntry({ contextLength: 10 })],
    );
    expect(await asked({}, small)).toBe(8);
    expect(await refused(small, PATH, { prompt: [1, 2], max_tokens: 9 })).toEqual([
      400,
      "context_length_exceeded",
      "prompt",
      expect.any(String),
    ]);
  });

  test.each([
    [{}, "prompt", "Missing"],
    [{ prompt: 5 }, "prompt", "expected"],
    [{ prompt: [] }, "prompt", "empty"],
    [{ prompt: "" }, "prompt", "empty"],
    [{ prompt: ["a", 5] }, "prompt[1]", "a string"],
    [{ prompt: [[1], "a"] }, "prompt[1]", "token ids"],
    [{ prompt: [1, 151999999] }, "prompt[1]", "token id"],
    [{ prompt: [1, 1.5] }, "prompt[1]", "token id"],
    [{ prompt: ["a", ""] }, "prompt[1]", "empty"],
    [{ prompt: "a", best_of: 3 }, "best_of", "not supported"],
    [{ prompt: "a", n: 3, best_of: 2 }, "best_of", "below n"],
    [{ prompt: "a", logprobs: 21 }, "logprobs", ""],
    [{ prompt: "a", logprobs: true }, "logprobs", ""],
    [{ prompt: "a", max_tokens: 0 }, "max_tokens", "echo"],
    [{ prompt: "a", stream_options: { include_usage: true } }, "stream_options", "stream"],
    [{ prompt: "a", prompt_embeds: "x" }, "prompt_embeds", "not supported"],
    [{ prompt: "a", use_beam_search: true }, "use_beam_search", "not supported"],
    [{ prompt: "a", prompt_logprobs: 1 }, "prompt_logprobs", "not supported"],
    [{ prompt: "a", truncate_prompt_tokens: 0 }, "truncate_prompt_tokens", "-1"],
    [{ prompt: "a", truncate_prompt_tokens: 3, truncation_side: "right" }, "truncation_side", "left"],
    [{ prompt: "a", suffix: "b", echo: true }, "echo", "exclude"],
    [{ prompt: "a", suffix: "b", truncate_prompt_tokens: 3 }, "truncate_prompt_tokens", "exclude"],
    [{ prompt: Array.from({ length: 40 }, () => "a"), n: 128 }, "prompt", "4096"],
    [{ prompt: "a", regex: "a", guided_choice: ["b"] }, null, "Only one constraint"],
  ])("refuses %j", async (body, param, message) => {
    const calls = gateway.engine.calls.length;
    const [status, code, at, said] = await refused(gateway, PATH, body);
    expect([status, at]).toEqual([400, param as string]);
    expect(code).toBeString();
    expect(said).toContain(message);
    expect(gateway.engine.calls.length).toBe(calls);
  });

  test("the values that mean nothing are no reason to refuse", async () => {
    const nothing = { best_of: 1, suffix: "", echo: false, logprobs: null, n: null, user: "u", unknown: { a: 1 } };
    expect(textOf(await ask({ prompt: "a", ...nothing, truncation_side: "right" }))).toStartWith("naïve");
  });
});

describe("answers", () => {
  test("choices are numbered prompt by prompt, whole as streamed", async () => {
    const { choices, usage, model } = await bothWays({
      model: "demo",
      prompt: [[1], [2, 3], [4, 5, 6]],
      n: 2,
      max_tokens: 50,
    });
    const expected = [1, 2, 3].flatMap((length) => [0, 1].map((choice) => `${TEXT} ${length}.${choice}`));
    expect(choices.map(({ text }) => text)).toEqual(expected);
    expect(choices.map(({ finish_reason: end }) => end)).toEqual(expected.map(() => "stop"));
    expect(usage.prompt_tokens).toBe(6);
    expect(usage.completion_tokens).toBe(expected.reduce((sum, text) => sum + encode(text).length + 1, 0));
    expect(usage.total_tokens).toBe(usage.prompt_tokens + usage.completion_tokens);
    expect(model).toBe("demo");
  });

  test("what the engine gets of the sampling", async () => {
    const given = {
      temperature: 0.5,
      top_p: 0.9,
      top_k: 7,
      min_p: 0.1,
      seed: 3,
      stop: ["zz", "yy"],
      stop_token_ids: [9],
    };
    const more = { frequency_penalty: 0.3, presence_penalty: 0.4, repetition_penalty: 1.1, logit_bias: { "5": -2 } };
    await ask({ prompt: "a", ...given, ...more, guided_regex: "a+", min_tokens: 2, ignore_eos: true });
    expect(gateway.engine.calls.at(-1)!.request.sampling).toMatchObject({
      temperature: 0.5,
      topP: 0.9,
      topK: 7,
      minP: 0.1,
      seed: 3,
      stopTokenIds: [9],
      frequencyPenalty: 0.3,
      presencePenalty: 0.4,
      repetitionPenalty: 1.1,
      logitBias: new Map([[5, -2]]),
      constraint: { kind: "regex", pattern: "a+" },
      minTokens: 2,
      ignoreEos: true,
    });
    await ask({ prompt: "a", response_format: { type: "json_object" } });
    expect(gateway.engine.calls.at(-1)!.request.sampling.constraint).toEqual({ kind: "json_object" });
  });

  test("a stop string ends the text before it and is named", async () => {
    const { choices } = await bothWays({ prompt: [1], stop: "日本" });
    expect(choices[0]).toMatchObject({ text: "naïve 👩‍👩‍👧 ", finish_reason: "stop", stop_reason: "日本" });
  });

  test("ids on demand", async () => {
    const { choices } = await bothWays({ prompt: [[1], [2, 3]], return_token_ids: true, max_tokens: 50 });
    expect(choices.map(({ prompt_token_ids: ids }) => ids)).toEqual([[1], [2, 3]]);
    expect(choices[1]!.token_ids).toEqual([...encode(`${TEXT} 2.0`), END_OF_TEXT]);
  });

  test("running usage counts all prompts", async () => {
    const body = { prompt: [[1], [2, 3]], stream_options: { continuous_usage_stats: true }, max_tokens: 50 };
    const usages = (await frames(gateway, PATH, body))
      .slice(0, -1)
      .map((frame) => (JSON.parse(frame) as Completion).usage);
    expect(usages.every(({ prompt_tokens: tokens }) => tokens === 3)).toBe(true);
    expect(usages.at(-1)!.completion_tokens).toBe(encode(`${TEXT} 1.0`).length + encode(`${TEXT} 2.0`).length + 2);
  });

  test("a client's request id names the answer", async () => {
    const response = await fetch(gateway.url + PATH, {
      method: "POST",
      headers: { "content-type": "application/json", "x-request-id": "mine" },
      body: JSON.stringify({ model: MODEL, prompt: "a" }),
    });
    expect(response.headers.get("x-request-id")).toBe("mine");
    expect(checkCompletion(await response.json()).id).toBe("cmpl-mine");
  });
});

describe("suffix", () => {
  const id = (text: string) => encode(text)[0]!;
  test("the middle is asked for in the form of the model's training", async () => {
    expect(await prompts({ prompt: "def f(", suffix: "\n  return x" })).toEqual([
      [
        id("<|fim_prefix|>"),
        ...encode("def f("),
        id("<|fim_suffix|>"),
        ...encode("\n  return x"),
        id("<|fim_middle|>"),
      ],
    ]);
    expect(await prompts({ prompt: ["a", "b"], suffix: "c" })).toHaveLength(2);
    expect(await prompts({ prompt: [5, 6], suffix: "c" })).toEqual([
      [id("<|fim_prefix|>"), 5, 6, id("<|fim_suffix|>"), ...encode("c"), id("<|fim_middle|>")],
    ]);
  });

  test("a special token in the text around it is text", async () => {
    const [ids] = await prompts({ prompt: "a<|im_end|>", suffix: "b" });
    expect(ids).not.toContain(151645);
  });
});
