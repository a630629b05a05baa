/** `POST /v1/embeddings` over HTTP, with a real tokenizer and an engine in memory. */
import { afterAll, describe, expect, test } from "bun:test";
import { EngineError } from "../../../../src/engines/engine.ts";
import { checkPooling } from "../../../support/schemas/pooling.ts";
import { MODEL, startGateway } from "../../server/gateway.ts";
import {
  answer,
  CLS,
  type Embedder,
  idsOf,
  type PoolingGateway,
  poolingGateway,
  refused,
  SEP,
  send,
  telling,
  VOCAB,
} from "../pooling/gateway.ts";

const PATH = "/v1/embeddings";
const open: PoolingGateway[] = [];
function started(...args: Parameters<typeof poolingGateway>): PoolingGateway {
  const gateway = poolingGateway(...args);
  open.push(gateway);
  return gateway;
}
afterAll(() => Promise.all(open.map((gateway) => gateway.stop())));

const gateway = started();
const around = (text: string) => [CLS, ...idsOf(text), SEP];
interface Answered {
  readonly object: string;
  readonly model: string;
  readonly data: { object: string; index: number; embedding: number[] | string }[];
  readonly usage: { prompt_tokens: number; total_tokens: number };
}
const ask = async (body: object, from = gateway) => (await answer(from, PATH, body)) as unknown as Answered;
/** Prompts of a request, as the engine got them. */
async function prompts(body: object, from = gateway): Promise<number[][]> {
  const before = from.prompts.length;
  await ask(body, from);
  return from.prompts.slice(before);
}

describe("forms of the input", () => {
  test("a text gets the special tokens of the model; the answer has exactly OpenAI's members", async () => {
    expect(idsOf("this number").length).toBeGreaterThan(0);
    const length = around("this number").length;
    expect(await ask({ input: "this number", user: "somebody", unknown: [1] })).toEqual({
      object: "list",
      data: [
        {
          object: "embedding",
          index: 0,
          embedding: [length, around("this number").reduce((a, b) => a + b), Math.fround(0.1)],
        },
      ],
      model: MODEL,
      usage: { prompt_tokens: length, total_tokens: length },
    });
    expect(gateway.prompts.at(-1)).toEqual(around("this number"));
  });

  test("the model is called as the client calls it", async () => {
    expect((await ask({ model: "demo", input: "a" })).model).toBe("demo");
  });

  test("texts, ids, and lists of ids, each to its place", async () => {
    const texts = Array.from({ length: 300 }, (_, i) => Array.from({ length: (i % 9) + 1 }, () => "number").join(" "));
    const { data, usage } = await ask({ input: texts });
    expect(data.map(({ index }) => index)).toEqual(texts.map((_, i) => i));
    expect(data.map(({ embedding }) => embedding[0])).toEqual(texts.map((text) => around(text).length));
    expect(usage.prompt_tokens).toBe(texts.reduce((sum, text) => sum + around(text).length, 0));
    expect(await prompts({ input: [7, 8, 9] })).toEqual([[7, 8, 9]]);
    expect(await prompts({ input: [[7], [8, 9], [VOCAB - 1]] })).toEqual([[7], [8, 9], [VOCAB - 1]]);
  });

  test("add_special_tokens false leaves them out", async () => {
    expect(await prompts({ input: "this number", add_special_tokens: false })).toEqual([idsOf("this number")]);
  });

  test.each([
    [{}, "input", "Missing"],
    [{ input: null }, "input", "Missing"],
    [{ input: "" }, "input", "empty"],
    [{ input: [] }, "input", "empty"],
    [{ input: ["a", ""] }, "input[1]", "empty"],
    [{ input: [[]] }, "input[0]", "empty"],
    [{ input: [[1], []] }, "input[1]", "empty"],
    [{ input: 7 }, "input", "expected"],
    [{ input: { text: "a" } }, "input", "expected"],
    [{ input: ["a", 1] }, "input[1]", "like the others"],
    [{ input: [1, "a"] }, "input[1]", "token id"],
    [{ input: [[1], "a"] }, "input[1]", "expected"],
    [{ input: [{}] }, "input[0]", "expected"],
    [{ input: [-1] }, "input[0]", "token id"],
    [{ input: [1.5] }, "input[0]", "token id"],
    [{ input: [VOCAB] }, "input[0]", `0 to ${VOCAB - 1}`],
    [{ input: [[0], [1, VOCAB]] }, "input[1][1]", "token id"],
    [{ input: "a", encoding_format: "bytes" }, "encoding_format", ""],
    [{ input: "a", dimensions: 0 }, "dimensions", ""],
    [{ input: "a", dimensions: 1.5 }, "dimensions", ""],
    [{ input: "a", truncate_prompt_tokens: -2 }, "truncate_prompt_tokens", ""],
    [{ input: "a", truncate_prompt_tokens: 0 }, "truncate_prompt_tokens", ""],
    [{ input: "a", truncate_prompt_tokens: 17 }, "truncate_prompt_tokens", "16 tokens"],
    [{ input: "a", truncation_side: "middle" }, "truncation_side", ""],
    [{ input: "a", normalize: false }, "normalize", "not supported"],
    [{ input: "a", use_activation: false }, "use_activation", "not supported"],
    [{ input: "a", embed_dtype: "float16" }, "embed_dtype", "not supported"],
    [{ input: "a", endianness: "big" }, "endianness", "little"],
    [{ input: "a", padding: "max_length" }, "padding", "not supported"],
    [{ messages: [{ role: "user", content: "a" }] }, "messages", "not supported"],
  ])("refuses %j", async (body, param, words) => {
    const before = gateway.prompts.length;
    const error = await refused(gateway, PATH, body);
    expect(error).toMatchObject({ type: "invalid_request_error", param });
    expect(error.message).toContain(words);
    expect(gateway.prompts).toHaveLength(before);
  });

  test("an unknown model is not found", async () => {
    const error = await refused(gateway, PATH, { model: "nobody", input: "a" }, 404);
    expect(error).toMatchObject({ code: "model_not_found", param: "model" });
  });
});

describe("inputs that are too long", () => {
  const words = (count: number) => Array.from({ length: count }, () => "number").join(" ");
  const word = idsOf("number");

  test("are refused with their place and length; the context may be full", async () => {
    expect(word).toHaveLength(1);
    expect(await prompts({ input: words(14) })).toEqual([around(words(14))]);
    const error = await refused(gateway, PATH, { input: ["number", words(15)] });
    expect(error).toMatchObject({ code: "context_length_exceeded", param: "input[1]" });
    expect(error.message).toContain("16 tokens");
    expect(error.message).toContain("17 tokens");
    const ids = Array.from({ length: 17 }, () => 7);
    expect((await refused(gateway, PATH, { input: ids })).param).toBe("input");
  });

  test("are cut when truncate_prompt_tokens says so: the special tokens around a text stay", async () => {
    const text = `number this ${words(30)}`;
    const ids = idsOf(text);
    expect(await prompts({ input: text, truncate_prompt_tokens: -1 })).toEqual([[CLS, ...ids.slice(0, 14), SEP]]);
    expect(await prompts({ input: text, truncate_prompt_tokens: 4 })).toEqual([[CLS, ...ids.slice(0, 2), SEP]]);
    expect(await prompts({ input: text, truncate_prompt_tokens: 2 })).toEqual([[CLS, SEP]]);
    expect(await prompts({ input: "number", truncate_prompt_tokens: 4 })).toEqual([[CLS, ...word, SEP]]);
    expect((await ask({ input: text, truncate_prompt_tokens: 4 })).usage.prompt_tokens).toBe(4);
    expect((await refused(gateway, PATH, { input: text, truncate_prompt_tokens: 1 })).param).toBe(
      "truncate_prompt_tokens",
    );
  });

  test("token ids, and sides that are named, are cut as they are", async () => {
    const ids = Array.from({ length: 20 }, (_, i) => i + 10);
    expect(await prompts({ input: ids, truncate_prompt_tokens: 3 })).toEqual([[10, 11, 12]]);
    expect(await prompts({ input: ids, truncate_prompt_tokens: 3, truncation_side: "left" })).toEqual([[27, 28, 29]]);
    const text = [CLS, ...idsOf("number this number"), SEP];
    const body = { input: "number this number", truncate_prompt_tokens: 3 };
    expect(await prompts({ ...body, truncation_side: "left" })).toEqual([text.slice(-3)]);
    expect(await prompts({ ...body, truncation_side: "right" })).toEqual([text.slice(0, 3)]);
  });

  test("no length is refused where the context is unknown", async () => {
    const unknown = started(telling, { contextLength: 0 });
    const text = words(5000);
    expect(await prompts({ input: text, truncate_prompt_tokens: -1 }, unknown)).toEqual([around(text)]);
    expect(await prompts({ input: text }, unknown)).toEqual([around(text)]);
  });
});

describe("numbers", () => {
  const vectors: Embedder = () => [3, 4, 0, Math.fround(1e-20), -Math.fround(0.1)];

  test("are as exact as base64 has them", async () => {
    const from = started(vectors);
    const [float, base64] = await Promise.all([
      ask({ input: "a", encoding_format: "float" }, from),
      ask({ input: "a", encoding_format: "base64" }, from),
    ]);
    const bytes = Buffer.from(base64.data[0]!.embedding as string, "base64");
    expect(bytes).toHaveLength(20);
    const view = new DataView(bytes.buffer, bytes.byteOffset);
    const decoded = Array.from({ length: 5 }, (_, i) => view.getFloat32(4 * i, true));
    expect(decoded).toEqual([...(await vectors([], new AbortController().signal))]);
    expect(float.data[0]!.embedding).toEqual(decoded);
    expect(base64.usage).toEqual(float.usage);
  });

  test("dimensions cut and scale to length 1 where the model is trained for it", async () => {
    const any = started(vectors, { pooling: { matryoshka: "any", classes: undefined } });
    const cut = async (dimensions: number) =>
      (await ask({ input: "a", dimensions }, any)).data[0]?.embedding as number[];
    expect(await cut(1)).toEqual([1]);
    expect(await cut(2)).toEqual([Math.fround(0.6), Math.fround(0.8)]);
    expect((await cut(5)).reduce((sum, x) => sum + x * x, 0)).toBeCloseTo(1, 6);
    expect(await refused(any, PATH, { input: "a", dimensions: 6 })).toMatchObject({ param: "dimensions" });
    const listed = started(vectors, { pooling: { matryoshka: [2, 4], classes: undefined } });
    expect((await ask({ input: "a", dimensions: 4 }, listed)).data[0]?.embedding).toHaveLength(4);
    const error = await refused(listed, PATH, { input: "a", dimensions: 3 });
    expect(error.message).toContain("2, 4 dimensions");
  });

  test("dimensions are refused elsewhere", async () => {
    const error = await refused(started(vectors), PATH, { input: "a", dimensions: 2 });
    expect(error).toMatchObject({ code: "unsupported_parameter", param: "dimensions" });
  });

  test("normalize scales to length 1; what is the usual is taken", async () => {
    const from = started(() => [3, 4]);
    const usual = { normalize: true, use_activation: true, embed_dtype: "float32", endianness: "native" };
    const { data } = await ask({ input: "a", ...usual }, from);
    expect(data[0]?.embedding).toEqual([Math.fround(0.6), Math.fround(0.8)]);
    expect((await ask({ input: "a", normalize: null }, from)).data[0]?.embedding).toEqual([3, 4]);
  });

  test("a vector of zeros stays one", async () => {
    const from = started(() => [0, 0], { pooling: { matryoshka: "any", classes: undefined } });
    expect((await ask({ input: "a", dimensions: 1 }, from)).data[0]?.embedding).toEqual([0]);
  });
});

describe("engines", () => {
  test.each([
    ["invalid", "This model does not support pooling", 400],
    ["overloaded", "full", 429],
    ["unavailable", "The engine cannot be reached", 503],
    ["failed", "crashed", 500],
  ] as const)("an engine that fails (%s) is told", async (kind, message, status) => {
    const from = started(() => Promise.reject(new EngineError(kind, message)));
    expect((await refused(from, PATH, { input: "a" }, status)).message).toBe(message);
  });

  test("a model that generates is refused by name, without its engine", async () => {
    const chatModel = startGateway();
    const wanted = { param: "model", message: `The model '${MODEL}' generates text: it gives no vectors` };
    expect(await refused(chatModel, PATH, { input: "a", dimensions: 3 })).toMatchObject(wanted);
    expect(await refused(chatModel, "/v1/rerank", { query: "a", documents: ["b"] })).toMatchObject(wanted);
    await chatModel.stop();
  });

  test.each([{ lora_path: "a" }, { cache_salt: "s" }, { extra_key: ["k"] }])(
    "what its wire cannot carry is refused, whoever asks for vectors: %j",
    async (field) => {
      const from = started(() => Promise.reject(new EngineError("failed", "it was asked")));
      const [param] = Object.keys(field) as [string];
      const wanted = { code: "unsupported_parameter", param };
      expect(await refused(from, PATH, { input: "a", ...field })).toMatchObject(wanted);
      expect(await refused(from, "/v1/rerank", { query: "a", documents: ["b"], ...field })).toMatchObject(wanted);
    },
  );

  test("at most 64 inputs are with it at a time, and more follow as soon as one is done", async () => {
    let running = 0;
    let most = 0;
    const from = started(async (ids, signal) => {
      most = Math.max(most, ++running);
      await Bun.sleep(ids[0] === 7 ? 30 : 1);
      running--;
      return telling(ids, signal);
    });
    const input = Array.from({ length: 200 }, (_, i) => [i === 0 ? 7 : 8, i]);
    const { data } = await ask({ input }, from);
    expect(data.map(({ embedding }) => embedding[1])).toEqual(input.map(([a, b]) => a! + b!));
    expect(most).toBe(64);
  });

  /** Engine calls that go on until they are cancelled; the first may fail instead. */
  function hanging(fail?: EngineError) {
    const state = { started: 0, cancelled: 0 };
    const from = started((ids, signal) => {
      state.started++;
      if (fail !== undefined && ids[0] === 5) return Promise.reject(fail);
      return new Promise<never>((_, reject) => {
        signal.addEventListener("abort", () => {
          state.cancelled++;
          reject(new EngineError("cancelled", "cancelled"));
        });
      });
    });
    return { from, state };
  }

  test("one input that fails ends the others", async () => {
    const { from, state } = hanging(new EngineError("invalid", "no such token"));
    const input = Array.from({ length: 100 }, (_, i) => [i === 40 ? 5 : 6]);
    expect((await refused(from, PATH, { input })).message).toBe("no such token");
    expect(state).toEqual({ started: 64, cancelled: 63 });
  });

  test("a client that leaves ends all of them, and nothing is left", async () => {
    const { from, state } = hanging();
    const leave = new AbortController();
    const input = Array.from({ length: 100 }, () => "number");
    const response = send(from, PATH, { input }, { signal: leave.signal }).catch(() => undefined);
    while (state.started < 64) await Bun.sleep(1);
    leave.abort();
    await response;
    while (from.scopes.size > 0) await Bun.sleep(1);
    expect(state).toEqual({ started: 64, cancelled: 64 });
    expect(from.board.running(from.slot)).toBe(0);
  });

  test("a request's time limit does, too", async () => {
    const { from } = hanging();
    const limited = started(
      (_, signal) => new Promise<never>((__, reject) => signal.addEventListener("abort", () => reject(signal.reason))),
      {},
      ["--request-timeout-secs", "1"],
    );
    expect((await refused(limited, PATH, { input: "a" }, 504)).code).toBe("request_timeout");
    expect(from.scopes.size).toBe(0);
  });
});

test("the key is asked for on every route, also those without /v1", async () => {
  const locked = started(telling, {}, ["--api-key", "s3cret"]);
  for (const path of [PATH, "/rerank", "/v1/rerank", "/v1/classify"]) {
    expect((await send(locked, path, { input: "a", query: "a", documents: ["b"] })).status).toBe(401);
    const ok = await send(
      locked,
      path,
      { input: "a", query: "a", documents: ["b"] },
      {
        headers: { "content-type": "application/json", authorization: "Bearer s3cret" },
      },
    );
    expect(ok.status).toBe(path === "/v1/classify" ? 400 : 200);
    if (ok.status === 200) checkPooling(path, {}, await ok.json());
  }
});
