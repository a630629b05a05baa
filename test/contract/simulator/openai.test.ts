/** The simulated engine over HTTP, judged by OpenAI's own client and by plain requests. */
import { describe, expect, test } from "bun:test";
import OpenAI from "openai";
import type { SimulatorOptions } from "../../../src/simulator/options.ts";
import { type Simulator, startSimulator } from "../../../src/simulator/simulator.ts";
import { settings, TABLES, until } from "./harness.ts";

interface Peer {
  readonly engine: Simulator;
  readonly url: string;
  readonly api: OpenAI;
  post(path: string, body: unknown, init?: RequestInit): Promise<Response>;
  get(path: string): Promise<Response>;
}

async function withServer(changed: Partial<SimulatorOptions>, body: (peer: Peer) => Promise<void>): Promise<void> {
  const engine = await startSimulator(settings({ dialect: "openai", speed: "instant", ...changed }), {
    tokenizerCacheDir: TABLES,
  });
  const url = `http://127.0.0.1:${engine.port}`;
  try {
    await body({
      engine,
      url,
      api: new OpenAI({ baseURL: `${url}/v1`, apiKey: "any", maxRetries: 0 }),
      post: (path, value, init) => fetch(url + path, { method: "POST", body: JSON.stringify(value), ...init }),
      get: (path) => fetch(url + path),
    });
  } finally {
    await engine.stop();
  }
}

const MODEL = "collie-demo";
const CHAT = { model: MODEL, messages: [{ role: "user" as const, content: "hello there" }] };
const SAID = "I am a simulated engine. Your prompt had 2 tokens, 0 of them cached.";

describe("text", () => {
  test("a chat answer, whole and streamed, is the same; counts are right", () =>
    withServer({ noPrefixCache: true }, async ({ api, engine }) => {
      const whole = await api.chat.completions.create({ ...CHAT, max_tokens: 18 });
      expect(whole.choices[0]).toMatchObject({ index: 0, finish_reason: "length", message: { role: "assistant" } });
      expect(whole.choices[0]!.message.content).toStartWith(SAID.slice(0, 40));
      expect(whole.usage).toMatchObject({ prompt_tokens: 2, completion_tokens: 18, total_tokens: 20 });

      const stream = await api.chat.completions.create({
        ...CHAT,
        max_tokens: 18,
        stream: true,
        stream_options: { include_usage: true },
      });
      let text = "";
      const events = [];
      for await (const event of stream) {
        events.push(event);
        text += event.choices[0]?.delta.content ?? "";
      }
      expect(text).toBe(whole.choices[0]!.message.content!);
      expect(events[0]!.choices[0]!.delta.role).toBe("assistant");
      expect(events.at(-2)!.choices[0]!.finish_reason).toBe("length");
      expect(events.at(-1)).toMatchObject({ choices: [], usage: { prompt_tokens: 2, completion_tokens: 18 } });
      expect(engine.stats()).toMatchObject({
        received: 2,
        finished: 2,
        open: 0,
        calls: { "POST /v1/chat/completions": 2 },
      });
    }));

  test("n, stops that lie across tokens, logprobs, an EOS", () =>
    withServer({}, async ({ api }) => {
      const stopped = await api.chat.completions.create({
        ...CHAT,
        n: 2,
        stop: ["lated en"],
        logprobs: true,
        top_logprobs: 2,
      });
      expect(stopped.choices.map(({ message }) => message.content)).toEqual(["I am a simu", "Sample 1 of a simu"]);
      const { content } = stopped.choices[0]!.logprobs!;
      expect(content![0]).toMatchObject({ token: "I", bytes: [73] });
      expect(content![0]!.top_logprobs.map(({ token }) => token)[0]).toBe("I");
      const streamed = await api.chat.completions.create({ ...CHAT, stop: ["lated en"], stream: true });
      let text = "";
      for await (const { choices } of streamed) text += choices[0]?.delta.content ?? "";
      expect(text).toBe("I am a simu");
      const natural = await api.chat.completions.create(CHAT);
      expect(natural.choices[0]!.finish_reason).toBe("stop");
      expect(natural.choices[0]!.message.content).not.toContain("<|");
    }));

  test("completions: several prompts as texts and as ids, in order", () =>
    withServer({}, async ({ api, post }) => {
      const texts = await api.completions.create({
        model: MODEL,
        prompt: ["a b", "c"],
        n: 2,
        max_tokens: 3,
        logprobs: 1,
      });
      expect(texts.choices.map(({ index, text }) => [index, text])).toEqual([
        [0, "I am a"],
        [1, "Sample 1"],
        [2, "I am a"],
        [3, "Sample 1"],
      ]);
      expect(texts.choices[0]!.logprobs).toMatchObject({ tokens: ["I", " am", " a"], text_offset: [0, 1, 4] });
      expect(texts.usage).toMatchObject({ prompt_tokens: 3, completion_tokens: 12 });
      const ids = await post("/v1/completions", { prompt: [[1, 2, 3]], max_tokens: 2, return_token_ids: true });
      expect(await ids.json()).toMatchObject({
        usage: { prompt_tokens: 3 },
        choices: [{ prompt_token_ids: [1, 2, 3], token_ids: [40, 1079] }],
      });
    }));

  test("a forced tool and schemas are met", () =>
    withServer({}, async ({ api }) => {
      const parameters = {
        type: "object",
        properties: { city: { type: "string" }, days: { type: "integer" } },
        required: ["city", "days"],
      };
      const tools = [{ type: "function" as const, function: { name: "weather", parameters } }];
      const called = await api.chat.completions.create({ ...CHAT, tools, tool_choice: "required" });
      const [call] = called.choices[0]!.message.tool_calls!;
      expect(called.choices[0]!.finish_reason).toBe("tool_calls");
      expect(call).toMatchObject({ type: "function", function: { name: "weather" } });
      const whole = call!.type === "function" ? call!.function.arguments : "";
      expect(JSON.parse(whole)).toMatchObject({ city: expect.any(String), days: expect.any(Number) });
      let streamed = "";
      for await (const { choices } of await api.chat.completions.create({
        ...CHAT,
        tools,
        tool_choice: "required",
        stream: true,
      }))
        streamed += choices[0]?.delta.tool_calls?.[0]?.function?.arguments ?? "";
      expect(streamed).toBe(whole);
      const schema = await api.chat.completions.create({
        ...CHAT,
        response_format: { type: "json_schema", json_schema: { name: "x", schema: parameters } },
      });
      expect(JSON.parse(schema.choices[0]!.message.content!)).toMatchObject({ days: expect.any(Number) });
    }));

  test("what is wrong is a 400 in the flavor's own form; another model is a 404 where the server looks", () =>
    withServer({ contextLength: 100 }, async ({ post, engine }) => {
      const status = async (path: string, body: unknown) => {
        const reply = await post(path, body);
        return [reply.status, (await reply.json()) as { error: { message: string; code: number } }] as const;
      };
      const [code, body] = await status("/v1/chat/completions", { ...CHAT, temperature: 3 });
      expect([code, body.error.code]).toEqual([400, 400]);
      expect(body.error.message).toContain("temperature");
      for (const [path, bad] of [
        ["/v1/chat/completions", { messages: [] }],
        ["/v1/chat/completions", { ...CHAT, max_tokens: 99 }],
        ["/v1/chat/completions", { ...CHAT, max_tokens: "9" }],
        ["/v1/completions", {}],
        ["/v1/chat/completions", [1]],
      ] as const)
        expect((await status(path, bad))[0]).toBe(400);
      expect((await status("/v1/chat/completions", { ...CHAT, model: "gpt" }))[0]).toBe(404);
      expect((await post("/v1/embeddings", { input: "a" })).status).toBe(404);
      expect((await post("/v1/chat/completions", null, { body: "{" })).status).toBe(400);
      expect(engine.stats()).toMatchObject({ received: 2, refused: 2, open: 0 });
    }));

  test("bodies with members that nobody knows, the request's headers and an x-request-id are in the log", () =>
    withServer({}, async ({ post, engine }) => {
      const body = { ...CHAT, max_tokens: 1, some_new_member: { deep: [1] } };
      const reply = await post("/v1/chat/completions", body, {
        headers: { "x-request-id": "r-7", "x-smg-routing-key": "k" },
      });
      expect(await reply.json()).toMatchObject({ id: "chatcmpl-r-7" });
      expect(engine.requests().at(-1)).toMatchObject({
        requestId: "chatcmpl-r-7",
        extra: { body },
        metadata: { "x-smg-routing-key": "k" },
        outcome: "finished",
      });
    }));
});

test("vectors: equal for equal texts, near for texts with common words; rerank by the same", () =>
  withServer({ poolingDim: 32 }, async ({ api, post }) => {
    const input = ["the cat sat on the mat", "the cat sat on a mat", "prime numbers are odd"];
    const { data, usage } = await api.embeddings.create({ model: MODEL, input, encoding_format: "float" });
    expect(data.map(({ index }) => index)).toEqual([0, 1, 2]);
    const dot = (a: number[], b: number[]) => a.reduce((sum, value, i) => sum + value * b[i]!, 0);
    const [cat, cat2, primes] = data.map(({ embedding }) => embedding);
    expect(dot(cat!, cat!)).toBeCloseTo(1, 4);
    expect(dot(cat!, cat2!)).toBeGreaterThan(dot(cat!, primes!) + 0.3);
    expect(usage.prompt_tokens).toBeGreaterThan(10);
    // OpenAI's client asks for base64 by itself and unpacks it.
    const packed = await api.embeddings.create({ model: MODEL, input: input[0]! });
    expect(packed.data[0]!.embedding[5]).toBeCloseTo(cat![5]!, 6);
    const ranked = await post("/v1/rerank", { query: "a cat on a mat", documents: [input[2], input[0]], top_n: 1 });
    expect(await ranked.json()).toMatchObject({ results: [{ index: 1, document: { text: input[0] } }] });
    expect((await post("/v1/chat/completions", CHAT)).status).toBe(404);
  }));

describe("what a server says of itself", () => {
  test("vLLM", () =>
    withServer({ script: undefined, speed: "1", decodeBaseMs: 20 }, async ({ api, get, engine }) => {
      const { data } = await api.models.list();
      expect(data[0]).toMatchObject({ id: MODEL, owned_by: "vllm", max_model_len: 40_960 });
      expect((await get("/health")).status).toBe(200);
      const stop = new AbortController();
      const running = api.chat.completions.create({ ...CHAT, stream: true }, { signal: stop.signal });
      await until(() => engine.stats().engine.running === 1, "it runs");
      const metrics = await (await get("/metrics")).text();
      expect(metrics).toContain(`vllm:num_requests_running{engine="0",model_name="${MODEL}"} 1\n`);
      expect(metrics).toMatch(/^vllm:kv_cache_usage_perc\{[^}]*\} 0\.\d+$/m);
      stop.abort();
      await running.catch(() => undefined);
      engine.setAlive(false);
      expect((await get("/health")).status).toBe(503);
      expect(
        (await fetch(`http://127.0.0.1:${engine.port}/v1/completions`, { method: "POST", body: '{"prompt":"a"}' }))
          .status,
      ).toBe(500);
    }));

  test("SGLang, llama.cpp, Ollama", async () => {
    await withServer({ flavor: "sglang" }, async ({ api, get, post }) => {
      expect((await api.models.list()).data[0]).toMatchObject({ owned_by: "sglang" });
      expect(await (await get("/v1/loads")).json()).toMatchObject({
        dp_rank_count: 1,
        loads: [{ num_running_reqs: 0 }],
      });
      expect(await (await get("/get_load")).json()).toMatchObject([{ dp_rank: 0, num_reqs: 0 }]);
      expect(
        await (await post("/v1/chat/completions", { ...CHAT, model: "other", max_tokens: 1 })).json(),
      ).toMatchObject({
        choices: [{ finish_reason: "length", matched_stop: null }],
      });
      expect(await (await post("/v1/completions", {})).json()).toMatchObject({
        object: "error",
        code: 400,
        type: "BadRequest",
      });
    });
    await withServer({ flavor: "llamacpp", maxRunning: 2 }, async ({ api, get, post }) => {
      expect((await api.models.list()).data[0]).toMatchObject({ owned_by: "llamacpp", meta: { n_ctx_train: 40_960 } });
      expect(await (await get("/health")).json()).toEqual({ status: "ok" });
      expect(await (await get("/slots")).json()).toHaveLength(2);
      expect(await (await get("/metrics")).text()).toContain("llamacpp:requests_processing 0\n");
      expect(await (await post("/v1/completions", {})).json()).toMatchObject({
        error: { code: 400, type: "invalid_request_error" },
      });
    });
    await withServer({ flavor: "ollama" }, async ({ api, get }) => {
      expect((await api.models.list()).data[0]).toMatchObject({ owned_by: "library" });
      expect((await get("/health")).status).toBe(404);
      expect(await (await get("/")).text()).toBe("Ollama is running");
    });
  });

  test("a key is asked for on /v1", () =>
    withServer({ apiKey: "sesame" }, async ({ get, url }) => {
      expect((await get("/v1/models")).status).toBe(401);
      expect((await get("/health")).status).toBe(200);
      expect((await fetch(`${url}/v1/models`, { headers: { authorization: "Bearer sesame" } })).status).toBe(200);
    }));
});

describe("HTTP", () => {
  test("a client that leaves frees the engine; one that stops reading holds up itself only", () =>
    withServer({ output: "echo" }, async ({ post, engine }) => {
      const stop = new AbortController();
      const reply = await post(
        "/v1/chat/completions",
        { ...CHAT, max_tokens: 30_000, stream: true },
        { signal: stop.signal },
      );
      const reader = reply.body!.getReader();
      await reader.read();
      const other = await post("/v1/chat/completions", { ...CHAT, max_tokens: 50 });
      expect(await other.json()).toMatchObject({ usage: { completion_tokens: 50 } });
      stop.abort();
      await reader.read().catch(() => undefined);
      await until(() => engine.stats().open === 0, "it is freed");
      expect(engine.stats()).toMatchObject({ abortedByCancel: 1, finished: 1, engine: { running: 0, blocksInUse: 0 } });
    }));

  test("chunked bodies, several requests in one piece, one cut in two, and nonsense", () =>
    withServer({}, async ({ engine }) => {
      let text = "";
      let closed = false;
      const socket = await Bun.connect({
        hostname: "127.0.0.1",
        port: engine.port,
        socket: {
          data: (_socket, chunk) => {
            text += Buffer.from(chunk).toString();
          },
          close: () => {
            closed = true;
          },
        },
      });
      const body = JSON.stringify({ prompt: "a", max_tokens: 1 });
      const half = body.length >> 1;
      const chunks = `${half.toString(16)}\r\n${body.slice(0, half)}\r\n${(body.length - half).toString(16)}\r\n${body.slice(half)}\r\n0\r\n\r\n`;
      const first = `POST /v1/completions HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n${chunks}`;
      const second = `POST /v1/completions HTTP/1.1\r\nContent-Length: ${body.length}\r\nExpect: 100-continue\r\n\r\n`;
      socket.write(`${first}GET /health HTTP/1.1\r\n\r\n${second}`);
      await until(() => text.includes("100 Continue"), "the server wants the body");
      socket.write(body.slice(0, 3));
      await Bun.sleep(5);
      socket.write(body.slice(3));
      await until(() => text.split("HTTP/1.1 200 OK").length === 4, "three answers");
      expect(text.split('"completion_tokens":1').length).toBe(3);
      socket.write("HELO there\r\n\r\n");
      await until(() => closed, "the connection is closed");
      expect(text).toContain("HTTP/1.1 400 Bad Request");
    }));
});

describe("faults", () => {
  const stream = { ...CHAT, max_tokens: 8, stream: true };

  test("before the answer: a status with headers, by its name or number", () =>
    withServer({}, async ({ post, engine }) => {
      engine.setFault({
        fault: { kind: "status", code: "RESOURCE_EXHAUSTED", message: "full", trailers: { "Retry-After": 7 } },
        times: 1,
      });
      const full = await post("/v1/chat/completions", stream);
      expect([full.status, full.headers.get("retry-after")]).toEqual([429, "7"]);
      expect(await full.json()).toMatchObject({ error: { message: "full" } });
      engine.setFault({ fault: { kind: "status", code: 502 }, times: 1 });
      expect((await post("/v1/chat/completions", CHAT)).status).toBe(502);
      expect((await post("/v1/chat/completions", { ...CHAT, max_tokens: 1 })).status).toBe(200);
    }));

  test("amid a stream: an error event, a cut connection, an end without the last event, nonsense, a doubled event", () =>
    withServer({}, async ({ post, engine }) => {
      const play = async (fault: unknown): Promise<string> => {
        engine.setFault({ fault, times: 1 });
        const reply = await post("/v1/chat/completions", stream);
        return reply.text().catch(() => "cut");
      };
      const events = (text: string) => text.split("\n\n").filter(Boolean);
      const failed = events(await play({ kind: "status", code: "UNAVAILABLE", message: "gone", after_tokens: 3 }));
      expect(failed).toHaveLength(5);
      expect(failed[3]).toContain('"message":"gone"');
      expect(failed[4]).toBe("data: [DONE]");
      expect(await play({ kind: "disconnect", after_tokens: 2 })).toBe("cut");
      const open = events(await play("no-complete"));
      expect(open).toHaveLength(8);
      expect(open.join("")).not.toContain("[DONE]");
      const garbled = events(await play({ kind: "garble", after_tokens: 2 }));
      expect(garbled).toHaveLength(11);
      expect(() => JSON.parse(garbled[2]!.slice(6))).toThrow();
      const doubled = events(await play({ kind: "double", after_tokens: 2 }));
      expect(doubled).toHaveLength(11);
      expect(doubled[2]).toBe(doubled[1]!);
      expect((await play({ kind: "oversize", bytes: 100_000, after_tokens: 1 })).length).toBeGreaterThan(100_000);
    }));

  test("whole answers: an empty body, half a body, a connection that is cut", () =>
    withServer({}, async ({ post, engine }) => {
      engine.setFault({ fault: "no-complete", times: 1 });
      expect(await (await post("/v1/chat/completions", CHAT)).text()).toBe("");
      engine.setFault({ fault: "garble", times: 1 });
      const half = await (await post("/v1/chat/completions", CHAT)).text();
      expect(half).toStartWith('{"id":');
      expect(() => JSON.parse(half)).toThrow();
      engine.setFault({ fault: "reset", times: 1 });
      expect(
        await post("/v1/chat/completions", CHAT).then(
          () => "answered",
          () => "cut",
        ),
      ).toBe("cut");
    }));
});
