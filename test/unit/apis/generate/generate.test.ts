/** `POST /generate` over HTTP, with a real tokenizer and an engine in memory. */
import { afterAll, describe, expect, test } from "bun:test";
import { EngineError } from "../../../../src/engines/engine.ts";
import { checkResult, lastResults, type Result } from "../../../support/schemas/generate.ts";
import { END_OF_TEXT, encode } from "../../generation/demo-tokenizer.ts";
import { ScriptedEngine } from "../../generation/scripted-engine.ts";
import { type Gateway, MODEL, modelEntry, startGateway } from "../../server/gateway.ts";
import { answered, frames, refused, say, speaking } from "../completions/gateway.ts";

const PATH = "/generate";
const TEXT = 'naïve 👩‍👩‍👧 "日本語"\n done';
const open: Gateway[] = [];
function started(engine: ScriptedEngine, models = [modelEntry()]): Gateway {
  const gateway = startGateway([], engine, models);
  open.push(gateway);
  return gateway;
}
afterAll(() => Promise.all(open.map((gateway) => gateway.stop())));

const gateway = started(speaking((call, choice) => `${TEXT} ${call.request.tokenIds.length}.${choice}`));
const ask = async (body: object, from = gateway) => checkResult(await answered(from, PATH, body));
const askAll = async (body: object, from = gateway) =>
  (await answered<unknown[]>(from, PATH, body)).map((result) => checkResult(result));
const sampling = () => gateway.engine.calls.at(-1)!.request.sampling;

/** Without what two answers can't have in common. */
function comparable({ meta_info: { id, e2e_latency, ...meta }, ...rest }: Result) {
  return { ...rest, meta };
}
async function bothWays(body: object, from = gateway): Promise<Result[]> {
  const whole = await answered<unknown>(from, PATH, body);
  const results = (Array.isArray(whole) ? whole : [whole]).map((result) => checkResult(result));
  expect(lastResults(await frames(from, PATH, body)).map(comparable)).toEqual(results.map(comparable));
  return results;
}

describe("prompts", () => {
  test("a text gives an object, a list a list", async () => {
    const one = await ask({ text: "this number", sampling_params: { max_new_tokens: 50 } });
    const ids = encode("this number");
    expect(one.text).toBe(`${TEXT} ${ids.length}.0`);
    expect(one.meta_info).toMatchObject({ prompt_tokens: ids.length, cached_tokens: 0 });
    expect(one.output_ids).toEqual([...encode(one.text), END_OF_TEXT]);
    expect(one.meta_info.finish_reason).toEqual({ type: "stop", matched: END_OF_TEXT });
    expect(await askAll({ text: ["this number"] })).toHaveLength(1);
    expect((await askAll({ text: ["a", "this number"] })).map(({ meta_info: { prompt_tokens: n } }) => n)).toEqual([
      1,
      ids.length,
    ]);
  });

  test("ids, and lists of ids", async () => {
    await ask({ input_ids: [5, 6] });
    expect(Array.from(gateway.engine.calls.at(-1)!.request.tokenIds)).toEqual([5, 6]);
    const results = await askAll({ input_ids: [[5], [6, 7]], return_prompt_token_ids: true });
    expect(results.map(({ prompt_token_ids: ids }) => ids)).toEqual([[5], [6, 7]]);
  });

  test("the model needs no name where there is but one", async () => {
    await ask({ text: "a", model: null });
    await ask({ text: "a", model: "demo" });
    const two = started(
      speaking(() => "x"),
      [modelEntry(), modelEntry({ id: "other", aliases: [] })],
    );
    expect(await refused(two, PATH, { text: "a", model: undefined })).toEqual([
      400,
      "invalid_request",
      "model",
      "Several models are served: name one",
    ]);
    const vectors = modelEntry({ id: "vectors", aliases: [], pooling: {} as never });
    await ask(
      { text: "a", model: undefined },
      started(
        speaking(() => "x"),
        [modelEntry(), vectors],
      ),
    );
  });

  test.each([
    [{}, "text"],
    [{ text: "a", input_ids: [1] }, "text"],
    [{ text: [] }, "text"],
    [{ text: "" }, "text"],
    [{ text: [1, 2] }, "text"],
    [{ input_ids: "a" }, "input_ids"],
    [{ input_ids: ["a"] }, "input_ids"],
    [{ input_ids: [1, -1] }, "input_ids[1]"],
    [{ text: "a", image_data: "x" }, "image_data"],
    [{ text: "a", lora_path: "x" }, "lora_path"],
    [{ text: "a", return_hidden_states: true }, "return_hidden_states"],
    [{ text: "a", something_new: 5 }, "something_new"],
    [{ text: "a", sampling_params: { stop_regex: "x" } }, "sampling_params.stop_regex"],
    [{ text: ["a", "b"], sampling_params: [{}, { custom_params: { a: 1 } }] }, "sampling_params[1].custom_params"],
    [{ text: "a", sampling_params: { max_new_tokens: -1 } }, "sampling_params.max_new_tokens"],
    [{ text: "a", sampling_params: { regex: "a", ebnf: "b" } }, null],
    [{ text: ["a", "b"], sampling_params: [{}] }, "sampling_params"],
    [{ text: ["a", "b"], sampling_params: [{ n: 2 }, { n: 3 }] }, "sampling_params"],
    [{ text: ["a", "b"], rid: ["x", "x"] }, "rid"],
    [{ text: ["a", "b"], return_logprob: [true] }, "return_logprob"],
    [{ text: "a", return_logprob: true, logprob_start_len: 1 }, "logprob_start_len"],
    [{ text: "a", top_logprobs_num: 21 }, "top_logprobs_num"],
  ])("refuses %j", async (body, param) => {
    const calls = gateway.engine.calls.length;
    const [status, , at] = await refused(gateway, PATH, body);
    expect([status, at]).toEqual([400, param as string]);
    expect(gateway.engine.calls.length).toBe(calls);
  });

  test("what says nothing is no reason to refuse", async () => {
    const nothing = { image_data: null, return_hidden_states: false, lora_path: [], stream: null, log_metrics: true };
    await ask({ text: "a", ...nothing, sampling_params: { stop_regex: null, stream_interval: 2 } });
  });
});

describe("sampling", () => {
  test("128 tokens unless told otherwise; null: what the context leaves", async () => {
    await ask({ text: "a" });
    expect(sampling().maxTokens).toBe(128);
    await ask({ text: "a", sampling_params: { max_new_tokens: null } });
    expect(sampling().maxTokens).toBe(4095);
    expect((await refused(gateway, PATH, { text: "a", sampling_params: { max_new_tokens: 4096 } }))[1]).toBe(
      "context_length_exceeded",
    );
  });

  test("all of it reaches the engine, of each prompt its own", async () => {
    const all = {
      temperature: 0.5,
      top_p: 0.9,
      top_k: 7,
      min_p: 0.1,
      frequency_penalty: 0.3,
      presence_penalty: 0.4,
      repetition_penalty: 1.1,
      min_new_tokens: 2,
      stop_token_ids: [9],
      ignore_eos: true,
      sampling_seed: 3,
      logit_bias: { "5": -2 },
      json_schema: '{"type":"object"}',
    };
    await ask({ text: "a", sampling_params: all });
    expect(sampling()).toMatchObject({
      temperature: 0.5,
      topP: 0.9,
      topK: 7,
      minP: 0.1,
      frequencyPenalty: 0.3,
      presencePenalty: 0.4,
      repetitionPenalty: 1.1,
      minTokens: 2,
      stopTokenIds: [9],
      ignoreEos: true,
      seed: 3,
      logitBias: new Map([[5, -2]]),
      constraint: { kind: "json_schema", schema: '{"type":"object"}' },
    });
    const before = gateway.engine.calls.length;
    await askAll({ text: ["a", "b"], sampling_params: [{ max_new_tokens: 1 }, { max_new_tokens: 2 }] });
    expect(gateway.engine.calls.slice(before).map(({ request }) => request.sampling.maxTokens)).toEqual([1, 2]);
  });
});

describe("results", () => {
  test("several of each prompt, whole as streamed, with ids of their own", async () => {
    const body = { text: ["a", "b c"], sampling_params: { n: 2, max_new_tokens: 50 }, rid: "mine" };
    const results = await bothWays(body);
    expect(results.map(({ text }) => text)).toEqual([1, 2].flatMap((n) => [0, 1].map((k) => `${TEXT} ${n}.${k}`)));
    expect(results.map(({ meta_info: { id } }) => id)).toEqual(["mine_0_0", "mine_0_1", "mine_1_0", "mine_1_1"]);
    expect((await ask({ text: "a", rid: "mine" })).meta_info.id).toBe("mine");
    expect((await askAll({ text: ["a", "b"], rid: ["x", "y"] })).map(({ meta_info: { id } }) => id)).toEqual([
      "x",
      "y",
    ]);
  });

  test("how they end: by a stop string, a stop token, or their length", async () => {
    const end = async (params: object) =>
      (await bothWays({ text: "a", sampling_params: params }))[0]!.meta_info.finish_reason;
    expect(await end({ stop: "日本" })).toEqual({ type: "stop", matched: "日本" });
    const id = encode(TEXT)[1]!;
    expect(await end({ stop_token_ids: [id] })).toEqual({ type: "stop", matched: id });
    expect(await end({ max_new_tokens: 3 })).toEqual({ type: "length", length: 3 });
  });

  test("max_new_tokens 0 is the prompt alone", async () => {
    const [result] = await bothWays({
      text: "Once upon a",
      sampling_params: { max_new_tokens: 0 },
      return_logprob: true,
      logprob_start_len: 0,
    });
    expect(result).toMatchObject({ text: "", output_ids: [] });
    expect(result!.meta_info).toMatchObject({ finish_reason: { type: "length", length: 0 }, completion_tokens: 0 });
    expect(result!.meta_info.input_token_logprobs!.map(([, id]) => id)).toEqual(encode("Once upon a"));
    expect(result!.meta_info.output_token_logprobs).toEqual([]);
  });

  test("logprobs of the output, and of the prompt from a token on", async () => {
    const params = { max_new_tokens: 4 };
    const own = async (more: object) =>
      (await bothWays({ text: "Once upon a time", sampling_params: params, return_logprob: true, ...more }))[0]!
        .meta_info;
    const ids = encode("Once upon a time");
    const output = await own({});
    expect(output.output_token_logprobs!.map(([, id, text]) => [id, text])).toEqual(
      encode(TEXT)
        .slice(0, 4)
        .map((id) => [id, null]),
    );
    expect(output).toMatchObject({ input_token_logprobs: [], output_token_logprobs_length: 4 });
    expect(output.output_top_logprobs).toBeUndefined();
    const input = await own({ logprob_start_len: 1, top_logprobs_num: 2, return_text_in_logprobs: true });
    expect(input.input_token_logprobs!.map(([, id]) => id)).toEqual(ids.slice(1));
    expect(input.input_token_logprobs![0]![0]).toBeNull();
    expect(input.input_token_logprobs![1]![0]).toBeNumber();
    expect(input.input_token_logprobs!.map(([, , text]) => text)).toEqual([" upon", " a", " time"]);
    expect(input.input_top_logprobs!.map((row) => row?.length)).toEqual([undefined, 2, 2]);
    expect(input.output_top_logprobs!.map((row) => row.length)).toEqual([2, 2, 2, 2]);
  });

  test("cached tokens are the engine's", async () => {
    const cached = started(
      new ScriptedEngine((call) => {
        say(call, "fine", { cachedTokens: 2 });
        call.end();
      }),
    );
    expect(
      (
        await bothWays(
          {
            input_ids: [
              [1, 2, 3],
              [4, 5, 6],
            ],
          },
          cached,
        )
      ).map(({ meta_info: m }) => m.cached_tokens),
    ).toEqual([2, 2]);
  });
});

describe("streams", () => {
  test("each frame has all of the text; those of several results are numbered", async () => {
    const all = (await frames(gateway, PATH, { text: "a" })).slice(0, -1).map((frame) => JSON.parse(frame) as Result);
    expect(all.length).toBeGreaterThan(5);
    expect(all.every(({ index }) => index === undefined)).toBe(true);
    expect(all.slice(0, -1).every(({ meta_info: { finish_reason: end } }) => end === null)).toBe(true);
    const many = await frames(gateway, PATH, { text: ["a", "b"] });
    expect(new Set(many.slice(0, -1).map((frame) => (JSON.parse(frame) as Result).index))).toEqual(new Set([0, 1]));
  });

  test("stream_interval: the first token, then every so many, then the end", async () => {
    const of = (frame: string) => JSON.parse(frame) as Result;
    const body = { text: ["a", "b"], sampling_params: [{ stream_interval: 5 }, {}] };
    const all = (await frames(gateway, PATH, body)).slice(0, -1).map(of);
    const tokens = (result: number) =>
      all.filter(({ index }) => index === result).map(({ output_ids: { length } }) => length);
    const every = tokens(1);
    const [first, last] = [every[0]!, every.at(-1)!];
    expect([...new Set(every)]).toEqual(Array.from({ length: last - first + 1 }, (_, i) => first + i));
    expect(tokens(0)).toEqual([...[...new Set(every)].filter((n) => (n - first) % 5 === 0), last]);
  });

  test("what an error finds untold is told before it", async () => {
    const broken = started(
      new ScriptedEngine((call) =>
        queueMicrotask(() => {
          for (const id of encode("one two three")) call.chunk([id]).idle();
          call.end(new EngineError("failed", "boom"));
        }),
      ),
    );
    const all = await frames(broken, PATH, { text: "a", sampling_params: { stream_interval: 100 } });
    expect(all).toHaveLength(3);
    expect(JSON.parse(all[1]!)).toMatchObject({ text: "one two three" });
    expect(JSON.parse(all[2]!)).toMatchObject({ error: { message: "boom" } });
  });

  test("an error behind the first frame is a frame, and no [DONE] follows", async () => {
    const broken = started(
      new ScriptedEngine((call) => {
        queueMicrotask(() => {
          call.chunk(encode("some")).idle();
          setTimeout(() => call.end(new EngineError("failed", "boom")), 5);
        });
      }),
    );
    const all = await frames(broken, PATH, { text: "a" });
    expect(JSON.parse(all[0]!)).toMatchObject({ text: "some" });
    expect(JSON.parse(all.at(-1)!)).toMatchObject({ error: { message: "boom" } });
  });

  test("one before it has its status", async () => {
    const broken = started(
      new ScriptedEngine((call) => queueMicrotask(() => call.end(new EngineError("overloaded", "full")))),
    );
    expect((await refused(broken, PATH, { text: "a", stream: true }))[0]).toBe(429);
    const silent = started(
      new ScriptedEngine((call) => {
        queueMicrotask(() => call.chunk([1]).idle().finish({ completionTokens: 1 }).end());
      }),
    );
    const body = { text: "a", return_logprob: true, logprob_start_len: 0 };
    expect((await refused(silent, PATH, { ...body, stream: true }))[0]).toBe(502);
    expect((await refused(silent, PATH, body))[0]).toBe(502);
    expect(silent.scopes.size).toBe(0);
  });
});

test("a key is needed where the gateway has one", async () => {
  const locked = startGateway(
    ["--api-key", "k"],
    speaking(() => "x"),
  );
  open.push(locked);
  expect((await refused(locked, PATH, { text: "a", model: MODEL }))[0]).toBe(401);
});
