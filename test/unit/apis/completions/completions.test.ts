/** `POST /v1/completions` over HTTP, with a real tokenizer and an engine in memory. */
import { afterAll, describe, expect, test } from "bun:test";
import { EngineError } from "../../../../src/engines/engine.ts";
import { type Completion, checkCompletion, foldCompletion } from "../../../support/schemas/completions.ts";
import { decodeAll, END_OF_TEXT, encode } from "../../generation/demo-tokenizer.ts";
import { type ScriptedCall, ScriptedEngine } from "../../generation/scripted-engine.ts";
import { type Gateway, MODEL, modelEntry, startGateway } from "../../server/gateway.ts";
import { answered, frames, post, refused, say, speaking } from "./gateway.ts";

const PATH = "/v1/completions";
const TEXT = "naïve 👩‍👩‍👧 日本語 done";
const open: Gateway[] = [];
function started(engine: ScriptedEngine, models = [modelEntry()]): Gateway {
  const gateway = startGateway([], engine, models);
  open.push(gateway);
  return gateway;
}
afterAll(() => Promise.all(open.map((gateway) => gateway.stop())));

/** Answers every choice with a text that tells its prompt and its number. */
const gateway = started(speaking((call, choice) => `${TEXT} ${call.request.tokenIds.length}.${choice}`));
const ask = async (body: object, from = gateway) => checkCompletion(await answered(from, PATH, body));
const textOf = (completion: Completion, index = 0) => completion.choices[index]!.text;
/** Prompts of a request, as the engine got them. */
async function prompts(body: object, from = gateway): Promise<number[][]> {
  const before = from.engine.calls.length;
  await ask(body, from);
  return from.engine.calls.slice(before).map((call) => Array.from(call.request.tokenIds));
}
/** Whole and streamed say the same; gives it. */
async function bothWays(body: object, from = gateway): Promise<Completion> {
  const whole = await ask(body, from);
  const folded = foldCompletion(await frames(from, PATH, { ...body, stream_options: { include_usage: true } }));
  const { id, created, ...rest } = whole;
  expect(folded).toEqual(rest);
  return whole;
}

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

describe("echo", () => {
  test("the text begins with the prompt, of each choice", async () => {
    const { choices } = await bothWays({ prompt: ["Once 日本", "upon"], echo: true, n: 2, max_tokens: 3 });
    expect(choices.map(({ text }) => text.startsWith("Once 日本"))).toEqual([true, true, false, false]);
    expect(choices.every(({ text }) => text.includes("naïve"))).toBe(true);
  });

  test("ids, and what was cut, are shown as their text", async () => {
    expect(textOf(await bothWays({ prompt: encode("Once upon"), echo: true }))).toStartWith("Once upon");
    const ids = encode("Once upon a time");
    expect(textOf(await bothWays({ prompt: "Once upon a time", echo: true, truncate_prompt_tokens: 2 }))).toStartWith(
      `${decodeAll(ids.slice(-2))}naïve`,
    );
  });

  test("with max_tokens 0 nothing but the prompt is told", async () => {
    const { choices, usage } = await bothWays({ prompt: ["Once upon", "a"], echo: true, max_tokens: 0, logprobs: 1 });
    expect(choices.map(({ text, finish_reason: end }) => [text, end])).toEqual([
      ["Once upon", "length"],
      ["a", "length"],
    ]);
    expect(choices[0]!.logprobs!.tokens).toEqual(["Once", " upon"]);
    expect(choices[0]!.logprobs!.token_logprobs[0]).toBeNull();
    expect(choices[0]!.logprobs!.token_logprobs[1]).toBeNumber();
    expect(usage.completion_tokens).toBe(0);
    expect(gateway.engine.calls.at(-1)!.request.sampling).toMatchObject({ maxTokens: 1, promptLogprobs: 1 });
  });

  test("an engine that keeps the prompt's logprobs back is at fault", async () => {
    const silent = started(
      new ScriptedEngine((call) => {
        call.chunk([1]).finish({ completionTokens: 1 }).end();
      }),
    );
    const body = { prompt: "a", echo: true, logprobs: 0 };
    expect((await refused(silent, PATH, body)).slice(0, 2)).toEqual([502, "engine_protocol_error"]);
    expect((await refused(silent, PATH, { ...body, stream: true })).slice(0, 2)).toEqual([
      502,
      "engine_protocol_error",
    ]);
  });
});

describe("logprobs", () => {
  test("tokens, values, alternatives and offsets, whole as streamed", async () => {
    for (const size of [1, 3, 100]) {
      const piecewise = started(
        speaking(
          () => "日本 a",
          () => size,
        ),
      );
      const { choices } = await bothWays({ prompt: "x👍", echo: true, logprobs: 2 }, piecewise);
      const { tokens, text_offset: offsets, top_logprobs: top, token_logprobs: values } = choices[0]!.logprobs!;
      const ids = [...encode("x👍"), ...encode("日本 a"), END_OF_TEXT];
      expect(tokens).toHaveLength(ids.length);
      const text = Array.from(choices[0]!.text);
      expect(text.join("")).toBe("x👍日本 a");
      tokens.forEach((token, i) => {
        if (token.startsWith("bytes:") || token === "<|endoftext|>") return;
        expect(text.slice(offsets[i], offsets[i]! + Array.from(token).length).join("")).toBe(token);
      });
      expect(tokens.at(-1)).toBe("<|endoftext|>");
      expect(offsets.at(-1)).toBe(text.length);
      expect([values[0], top[0]]).toEqual([null, null]);
      for (const [i, token] of tokens.entries()) if (i > 0) expect(top[i]![token]).toBe(values[i]!);
    }
  });

  test("0 shows each token's own", async () => {
    const { choices } = await bothWays({ prompt: "x", logprobs: 0, max_tokens: 2 });
    const { tokens, token_logprobs: values, top_logprobs: top } = choices[0]!.logprobs!;
    expect(top).toEqual(tokens.map((token, i) => ({ [token]: values[i]! })));
  });

  test("return_tokens_as_token_ids names tokens by id", async () => {
    const { choices } = await bothWays({ prompt: "x", logprobs: 1, return_tokens_as_token_ids: true, max_tokens: 2 });
    expect(choices[0]!.logprobs!.tokens).toEqual(
      encode(TEXT)
        .slice(0, 2)
        .map((id) => `token_id:${id}`),
    );
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

describe("failures", () => {
  const failing = (at: number) => {
    let calls = 0;
    return new ScriptedEngine((call) => {
      const mine = calls++;
      queueMicrotask(() => {
        if (mine === at) call.end(new EngineError("failed", "boom"));
        else if (mine < at) {
          say(call, "fine");
          call.end();
        }
      });
    });
  };

  test("of one prompt ends all others at the engine, and no more are begun", async () => {
    const broken = started(failing(3));
    const prompt = Array.from({ length: 200 }, (_, i) => [i]);
    const [status, , , message] = await refused(broken, PATH, { prompt });
    expect([status, message]).toEqual([500, "boom"]);
    const { calls } = broken.engine;
    expect(calls.length).toBeLessThanOrEqual(36);
    expect(calls.filter(({ cancelled }) => cancelled > 0).length).toBe(calls.length - 4);
    expect(calls.every(({ ended }) => ended)).toBe(true);
    expect(broken.scopes.size).toBe(0);
  });

  test("at most 32 prompts are with the engine at a time", async () => {
    let most = 0;
    let running = 0;
    const counted = started(
      new ScriptedEngine((call) => {
        most = Math.max(most, ++running);
        setTimeout(() => {
          running--;
          say(call, "fine");
          call.end();
        }, 1);
      }),
    );
    const { choices } = await ask({ prompt: Array.from({ length: 150 }, (_, i) => [i]) }, counted);
    expect([choices.length, most]).toEqual([150, 32]);
  });

  test("behind the first frame they are a frame, and no [DONE] follows", async () => {
    const broken = started(
      new ScriptedEngine((call: ScriptedCall) => {
        queueMicrotask(() => {
          call.chunk(encode("some")).idle();
          setTimeout(() => call.end(new EngineError("failed", "boom")), 5);
        });
      }),
    );
    for (const prompt of [[1], [[1], [2]]]) {
      const all = await frames(broken, PATH, { prompt });
      expect(JSON.parse(all.at(-1)!)).toMatchObject({ error: { message: "boom", type: "server_error" } });
      expect(all.filter((frame) => frame.includes('"error"'))).toHaveLength(1);
      expect(all.length).toBeGreaterThan(1);
    }
  });

  test("a client that leaves ends all prompts at the engine", async () => {
    const hanging = started(new ScriptedEngine());
    for (const stream of [false, true]) {
      const before = hanging.engine.calls.length;
      const leave = new AbortController();
      const left = fetch(hanging.url + PATH, {
        method: "POST",
        headers: { "content-type": "application/json" },
        body: JSON.stringify({ model: MODEL, prompt: [[1], [2], [3]], stream }),
        signal: leave.signal,
      }).catch((error: unknown) => error);
      while (hanging.engine.calls.length < before + 3) await Bun.sleep(1);
      leave.abort();
      await left;
      const deadline = performance.now() + 2000;
      while (hanging.engine.calls.some(({ ended }) => !ended) && performance.now() < deadline) await Bun.sleep(1);
      expect(hanging.engine.calls.slice(before).map(({ cancelled }) => cancelled)).toEqual([1, 1, 1]);
    }
  });

  test("an embedding model is none for text", async () => {
    const vectors = started(new ScriptedEngine(), [modelEntry({ pooling: {} as never })]);
    const [status, , param] = await refused(vectors, PATH, { prompt: "a" });
    expect([status, param]).toEqual([400, "model"]);
    expect((await post(vectors, PATH, { prompt: "a", model: "nobody" })).status).toBe(404);
  });
});
