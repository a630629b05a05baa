/** The vLLM dialect over both channels: what the engine sends, and what the gateway gets to see. */
import { afterEach, describe, expect, setDefaultTimeout, test } from "bun:test";
import { createHash } from "node:crypto";
import { zipSync } from "fflate";
import type { ConnectOptions } from "../../../src/engines/connect.ts";
import { connectEngine } from "../../../src/engines/connect.ts";
import type {
  ChoiceFinish,
  Engine,
  EngineError,
  GenerateCall,
  GenerateRequest,
  TokenLogprobs,
} from "../../../src/engines/engine.ts";
import { type Script, startVllmServer, type VllmServer } from "../../support/vllm-server.ts";
import { sleep, until } from "./channels.ts";
import observed from "./vllm-observed.json";

setDefaultTimeout(20_000);

interface ObservedMessage {
  chunk?: { token_ids?: number[]; index?: number };
  complete?: { output_ids?: number[]; index?: number; finish_reason?: string; matched_token_id?: number };
}

interface SeenChunk {
  index: number;
  ids: number[];
  outputLogprobs: TokenLogprobs | undefined;
  promptLogprobs: TokenLogprobs | undefined;
}
interface Seen {
  chunks: SeenChunk[];
  finishes: ChoiceFinish[];
  ends: (EngineError | undefined)[];
  idles: number;
  call: GenerateCall;
  done: Promise<EngineError | undefined>;
}

function generate(engine: Engine, request: Partial<GenerateRequest> = {}, onChunk?: (seen: Seen) => void): Seen {
  let finish: (error: EngineError | undefined) => void = () => {};
  const done = new Promise<EngineError | undefined>((resolve) => {
    finish = resolve;
  });
  const seen: Seen = {
    chunks: [],
    finishes: [],
    ends: [],
    idles: 0,
    done,
    call: { cancel() {}, pause() {}, resume() {} },
  };
  seen.call = engine.generate(
    { requestId: "r1", tokenIds: Uint32Array.of(5, 6, 7), sampling: {}, stream: true, ...request },
    {
      onChunk(chunk) {
        seen.chunks.push({
          index: chunk.index,
          ids: [...chunk.tokenIds.subarray(0, chunk.count)],
          outputLogprobs: chunk.outputLogprobs,
          promptLogprobs: chunk.promptLogprobs,
        });
        onChunk?.(seen);
      },
      onFinish: (choice) => seen.finishes.push(choice),
      onIdle() {
        seen.idles++;
      },
      onEnd(error) {
        seen.ends.push(error);
        finish(error);
      },
    },
  );
  return seen;
}

const chunk = (ids: number[], more: Record<string, unknown> = {}) => ({
  chunk: { token_ids: ids, prompt_tokens: 3, completion_tokens: ids.length, ...more },
});
const complete = (ids: number[], more: Record<string, unknown> = {}) => ({
  complete: {
    output_ids: ids,
    finish_reason: "stop",
    prompt_tokens: 3,
    cached_tokens: 2,
    completion_tokens: ids.length,
    ...more,
  },
});

describe.each(["framing", "grpc-js"] as const)("vLLM dialect over %s", (transport) => {
  const open: { close(): void }[] = [];
  afterEach(() => {
    for (const thing of open.splice(0).reverse()) thing.close();
  });
  const connect = async (scripts: Record<string, Script>): Promise<{ engine: Engine; server: VllmServer }> => {
    const server = await startVllmServer(scripts);
    open.push(server);
    const options: ConnectOptions = { transport, keepaliveMs: 0, dialect: "vllm" };
    const engine = await connectEngine(`grpc://127.0.0.1:${server.port}`, options);
    open.push(engine);
    return { engine, server };
  };

  test("streaming: tokens come from chunks, the Complete's repetition and its count do not count", async () => {
    const { engine } = await connect({
      Generate(call) {
        call.send(chunk([11]));
        call.send(chunk([12, 13]));
        call.send(complete([12, 13], { matched_token_id: 13 }));
        call.end();
      },
    });
    const seen = generate(engine);
    expect(await seen.done).toBeUndefined();
    expect(seen.chunks.map((c) => c.ids)).toEqual([[11], [12, 13]]);
    expect(seen.finishes).toEqual([
      {
        index: 0,
        reason: "stop",
        rawReason: "stop",
        promptTokens: 3,
        cachedTokens: 2,
        completionTokens: 3,
        matchedTokenId: 13,
      },
    ]);
    expect(seen.ends).toHaveLength(1);
  });

  test("streaming, several choices: each has its own end, and the stream is read to the last", async () => {
    const { engine, server } = await connect({
      Generate(call) {
        call.send(chunk([1], { index: 0 }));
        call.send(chunk([2], { index: 1 }));
        call.send(chunk([3], { index: 0 }));
        call.send(complete([3], { index: 0, finish_reason: "length" }));
        call.send(chunk([4, 5], { index: 1 }));
        call.send(complete([4, 5], { index: 1, matched_stop_str: "end" }));
        call.end();
      },
    });
    const seen = generate(engine, { sampling: { n: 2 } });
    expect(await seen.done).toBeUndefined();
    expect(seen.chunks.map((c) => [c.index, ...c.ids])).toEqual([
      [0, 1],
      [1, 2],
      [0, 3],
      [1, 4, 5],
    ]);
    expect(seen.finishes.map((f) => [f.index, f.reason, f.completionTokens, f.matchedStop])).toEqual([
      [0, "length", 2, undefined],
      [1, "stop", 3, "end"],
    ]);
    expect(server.requests["Generate"]?.[0]).toMatchObject({ sampling_params: { n: 2 }, stream: true });
  });

  test("not streaming: each Complete is its choice's tokens and its end; stray chunks are ignored", async () => {
    const { engine } = await connect({
      Generate(call) {
        call.send(chunk([99]));
        call.send(complete([1, 2, 3], { index: 1 }));
        call.send(complete([4], { index: 0 }));
        call.end();
      },
    });
    const seen = generate(engine, { stream: false, sampling: { n: 2 } });
    expect(await seen.done).toBeUndefined();
    expect(seen.chunks.map((c) => [c.index, ...c.ids])).toEqual([
      [1, 1, 2, 3],
      [0, 4],
    ]);
    expect(seen.finishes.map((f) => [f.index, f.completionTokens])).toEqual([
      [1, 3],
      [0, 1],
    ]);
  });

  test.each([
    ["stop", "stop"],
    ["", "stop"],
    ["repetition", "stop"],
    ["length", "length"],
    ["abort", "abort"],
    ["error", "error"],
    ["something new", "error"],
  ])("finish reason %p is %p", async (raw, reason) => {
    const { engine } = await connect({
      Generate(call) {
        call.send(chunk([1]));
        call.send(complete([1], { finish_reason: raw }));
        call.end();
      },
    });
    const seen = generate(engine);
    expect(await seen.done).toBeUndefined();
    expect(seen.finishes.map((f) => [f.rawReason, f.reason])).toEqual([[raw, reason]] as never);
  });

  test("an abort at the engine: the empty chunk before it is not shown", async () => {
    const { engine } = await connect({
      Generate(call) {
        call.send(chunk([1]));
        call.send(chunk([]));
        call.send(complete([], { finish_reason: "abort" }));
        call.end();
      },
    });
    const seen = generate(engine);
    expect(await seen.done).toBeUndefined();
    expect(seen.chunks.map((c) => c.ids)).toEqual([[1]]);
    expect(seen.finishes[0]).toMatchObject({ reason: "abort", completionTokens: 1 });
  });

  test.each([
    [1, true],
    [2, true],
    [2, false],
  ])("OK without all Completes is a failure (n %d, stream %p)", async (n, stream) => {
    const { engine } = await connect({
      Generate(call) {
        call.send(chunk([1]));
        if (n > 1) call.send(complete([1]));
        call.end();
      },
    });
    const error = await generate(engine, { stream, sampling: { n } }).done;
    expect(error?.kind).toBe("failed");
    expect(error?.message).toContain("before the end");
  });

  test("an error after all Completes changes nothing", async () => {
    const { engine } = await connect({
      Generate(call) {
        call.send(chunk([1]));
        call.send(complete([1]));
        setTimeout(() => call.end(13, "too late"), 20);
      },
    });
    const seen = generate(engine);
    expect(await seen.done).toBeUndefined();
    expect(seen.finishes).toHaveLength(1);
  });

  test.each([
    [3, "invalid"],
    [9, "invalid"],
    [11, "invalid"],
    [5, "not_found"],
    [8, "overloaded"],
    [14, "unavailable"],
    [4, "timeout"],
    [12, "unimplemented"],
    [1, "failed"],
    [13, "failed"],
    [10, "failed"],
    [16, "failed"],
  ])("status %d before the first message is %p", async (code, kind) => {
    const { engine } = await connect({ Generate: (call) => call.end(code, "top_p must be in (0, 1]") });
    const error = await generate(engine).done;
    expect(error?.kind as string).toBe(kind);
    if (code === 3) expect(error?.message).toBe("top_p must be in (0, 1]");
  });

  test("top logprobs: one row more is asked for, and the true best are given", async () => {
    const logprobs = {
      token_logprobs: [-7, -1],
      token_ids: [70, 1],
      top_logprobs: [
        { values: [-7, -1, -2], token_ids: [70, 1, 2] },
        { values: [-1, -0.5, -3], token_ids: [1, 8, 9] },
      ],
    };
    const { engine, server } = await connect({
      Generate(call) {
        call.send(
          chunk([70, 1], {
            output_logprobs: logprobs,
            input_logprobs: {
              token_logprobs: [{}, { value: -4 }],
              token_ids: [5, 6],
              top_logprobs: [{}, { values: [-4, -1], token_ids: [6, 3] }],
            },
          }),
        );
        call.send(complete([70, 1], { output_logprobs: logprobs }));
        call.end();
      },
    });
    const seen = generate(engine, { sampling: { logprobs: 2, promptLogprobs: 1 } });
    expect(await seen.done).toBeUndefined();
    expect(server.requests["Generate"]?.[0]).toMatchObject({ sampling_params: { logprobs: 3, prompt_logprobs: 2 } });
    expect(seen.chunks).toHaveLength(1);
    expect(seen.chunks[0]?.outputLogprobs).toEqual({
      tokenIds: [70, 1],
      logprobs: [-7, -1],
      top: [
        { tokenIds: [1, 2], logprobs: [-1, -2] },
        { tokenIds: [8, 1], logprobs: [-0.5, -1] },
      ],
    });
    expect(seen.chunks[0]?.promptLogprobs).toEqual({
      tokenIds: [5, 6],
      logprobs: [null, -4],
      top: [
        { tokenIds: [], logprobs: [] },
        { tokenIds: [3], logprobs: [-1] },
      ],
    });
  });

  test.each(observed.exchanges.map((exchange) => [exchange.probe, exchange] as const))(
    "as a real engine answered: %s",
    async (_probe, { request, response }) => {
      const { engine } = await connect({
        Generate(call) {
          for (const message of response) call.send(message as Record<string, unknown>);
          call.end();
        },
      });
      const params = request.sampling_params as { n?: number; logprobs?: number; prompt_logprobs?: number };
      const { n = 1, logprobs, prompt_logprobs: promptLogprobs } = params;
      const stream = "stream" in request;
      const seen = generate(engine, {
        stream,
        sampling: {
          temperature: 1,
          n,
          ...(logprobs === undefined ? {} : { logprobs }),
          ...(promptLogprobs === undefined ? {} : { promptLogprobs }),
        },
      });
      expect(await seen.done).toBeUndefined();
      for (let index = 0; index < n; index++) {
        const messages = response.map((message) => message as ObservedMessage);
        const chunks = messages.flatMap((m) =>
          m.chunk !== undefined && (m.chunk.index ?? 0) === index ? [m.chunk] : [],
        );
        const end = messages.find((m) => m.complete !== undefined && (m.complete.index ?? 0) === index)?.complete;
        const ids = stream ? chunks.flatMap((c) => c.token_ids ?? []) : (end?.output_ids ?? []);
        const ours = seen.chunks.filter((c) => c.index === index);
        expect(ours.flatMap((c) => c.ids)).toEqual(ids);
        const finish = seen.finishes.find((f) => f.index === index);
        expect(finish?.rawReason).toBe(end?.finish_reason as never);
        expect(finish?.completionTokens).toBe(ids.length);
        expect(finish?.matchedTokenId).toBe(end?.matched_token_id as never);
        if (logprobs === undefined) continue;
        expect(ours.flatMap((c) => c.outputLogprobs?.tokenIds ?? [])).toEqual(ids);
        for (const row of ours.flatMap((c) => c.outputLogprobs?.top ?? []))
          expect(row.logprobs).toEqual([...row.logprobs].sort((a, b) => b - a));
      }
    },
  );

  test.each([true, false])(
    "several greedy samples, which the engine refuses, are copies of one (stream %p)",
    async (stream) => {
      const { engine, server } = await connect({
        Generate(call) {
          if (stream) {
            call.send(chunk([1]));
            call.send(chunk([2]));
          }
          call.send(complete(stream ? [2] : [1, 2], { finish_reason: "length" }));
          call.end();
        },
      });
      const seen = generate(engine, { stream, sampling: { n: 3, temperature: 0 } });
      expect(await seen.done).toBeUndefined();
      expect(server.requests["Generate"]?.[0]).toMatchObject({ sampling_params: { n: 1 } });
      for (let index = 0; index < 3; index++)
        expect(seen.chunks.filter((c) => c.index === index).flatMap((c) => c.ids)).toEqual([1, 2]);
      expect(seen.finishes.map((f) => [f.index, f.completionTokens])).toEqual([
        [0, 2],
        [1, 2],
        [2, 2],
      ]);
    },
  );

  test("a Complete without a chunk before it brings its own tokens", async () => {
    const { engine } = await connect({
      Generate(call) {
        call.send(complete([8, 9]));
        call.end();
      },
    });
    const seen = generate(engine);
    expect(await seen.done).toBeUndefined();
    expect(seen.chunks.map((c) => c.ids)).toEqual([[8, 9]]);
    expect(seen.finishes[0]?.completionTokens).toBe(2);
  });

  test("cancelled by the receiver of the last tokens: nothing comes after the end", async () => {
    const { engine } = await connect({
      Generate(call) {
        call.send(complete([1, 2]));
        call.end();
      },
      Abort: (call) => call.end(),
    });
    const seen = generate(engine, { stream: false, sampling: { n: 2, temperature: 0 } }, (s) => s.call.cancel());
    expect((await seen.done)?.kind).toBe("cancelled");
    await sleep(20);
    expect([seen.chunks.length, seen.finishes.length, seen.ends.length]).toEqual([1, 0, 1]);
  });

  test("cancel: the stream is reset, an Abort names the request, and the end comes once", async () => {
    let gone = false;
    const { engine, server } = await connect({
      async Generate(call) {
        call.send(chunk([1]));
        await call.gone;
        gone = true;
      },
      Abort: (call) => call.end(),
    });
    const seen = generate(engine, { requestId: "to-cancel" });
    await until(() => seen.chunks.length === 1);
    seen.call.cancel();
    expect(seen.ends.map((e) => e?.kind)).toEqual(["cancelled"]);
    seen.call.cancel();
    await until(() => gone && server.requests["Abort"]?.length === 1);
    expect(server.requests["Abort"]).toEqual([{ request_ids: ["to-cancel"] }]);
    await sleep(30);
    expect(seen.ends).toHaveLength(1);
  });

  test("cancel from inside a chunk stops the chunks", async () => {
    const { engine } = await connect({
      Generate(call) {
        for (let i = 0; i < 50; i++) call.send(chunk([i]));
        call.send(complete([49]));
        call.end();
      },
      Abort: (call) => call.end(12, "no abort here"),
    });
    const seen = generate(engine, {}, (s) => s.chunks.length === 3 && s.call.cancel());
    expect((await seen.done)?.kind).toBe("cancelled");
    await sleep(50);
    expect(seen.chunks).toHaveLength(3);
    expect(seen.ends).toHaveLength(1);
  });

  test("cancel after the end does nothing", async () => {
    const { engine, server } = await connect({
      Generate(call) {
        call.send(chunk([1]));
        call.send(complete([1]));
        call.end();
      },
      Abort: (call) => call.end(),
    });
    const seen = generate(engine);
    await seen.done;
    seen.call.cancel();
    await sleep(50);
    expect(server.requests["Abort"]).toEqual([]);
    expect(seen.ends).toHaveLength(1);
  });

  test.each([
    ["a choice that was not asked for", (call: Parameters<Script>[0]) => call.send(chunk([1], { index: 1 }))],
    ["bytes that are no message", (call: Parameters<Script>[0]) => call.sendBytes(Uint8Array.of(0x0a, 200, 1, 2))],
  ])("%s: a failure, and the stream is reset", async (_what, send) => {
    let gone = false;
    const { engine } = await connect({
      async Generate(call) {
        send(call);
        await call.gone;
        gone = true;
      },
    });
    const seen = generate(engine);
    expect((await seen.done)?.kind).toBe("failed");
    expect(seen.chunks).toHaveLength(0);
    await until(() => gone);
  });

  test("the connection is lost in the middle", async () => {
    const { engine, server } = await connect({
      Generate: (call) => call.send(chunk([1])),
    });
    const seen = generate(engine);
    await until(() => seen.chunks.length === 1);
    server.close();
    const error = await seen.done;
    expect(error?.kind).toBe("unavailable");
    expect(error?.message).not.toMatch(/127\.0\.0\.1|:\d{4,5}/);
  });

  test("trace context travels as metadata", async () => {
    let trace: unknown;
    const { engine } = await connect({
      Generate(call) {
        trace = call.metadata.get("traceparent")[0];
        call.send(chunk([1]));
        call.send(complete([1]));
        call.end();
      },
    });
    await generate(engine, { metadata: { traceparent: "00-1-2-01" }, dataParallelRank: 0 }).done;
    expect(trace).toBe("00-1-2-01");
  });

  test("health, model info and server info", async () => {
    const { engine } = await connect({
      HealthCheck(call) {
        call.send({ healthy: false, message: "Engine is not alive" });
        call.end();
      },
      GetModelInfo(call) {
        call.send({
          model_path: "/m/q",
          served_model_name: "q",
          tokenizer_path: "/m/q",
          model_type: "qwen3",
          architectures: ["Qwen3ForCausalLM"],
          is_generation: true,
          max_context_length: 40960,
          vocab_size: 151936,
          eos_token_ids: [151645],
          default_sampling_params_json: '{"temperature":0.6,"top_k":20,"other":1,"top_p":"x"}',
        });
        call.end();
      },
      GetServerInfo(call) {
        call.send({ data_parallel_size: 2, block_size: 32, max_num_seqs: 128, kv_cache_dtype: "auto" });
        call.end();
      },
    });
    expect(await engine.health(2000)).toEqual({ healthy: false, message: "Engine is not alive" });
    expect(await engine.modelInfo(2000)).toEqual({
      modelPath: "/m/q",
      servedModelName: "q",
      tokenizerPath: "/m/q",
      modelType: "qwen3",
      architectures: ["Qwen3ForCausalLM"],
      isGeneration: true,
      supportsVision: false,
      contextLength: 40960,
      vocabSize: 151936,
      eosTokenIds: [151645],
      defaultSampling: { temperature: 0.6, top_k: 20 },
    });
    const info = await engine.serverInfo(2000);
    expect(info).toMatchObject({ dataParallelSize: 2, blockSize: 32, maxRunningRequests: 128 });
    expect(info.labels["kv_cache_dtype"]).toBe("auto");
    expect(info.labels["kv_role"]).toBeUndefined();
  });

  test("a deadline of a control call", async () => {
    const { engine } = await connect({ HealthCheck: () => {} });
    expect(await engine.health(150).catch((e: EngineError) => e.kind)).toBe("timeout");
  });

  test("the tokenizer bundle, whole and with a wrong digest", async () => {
    const zip = zipSync({ "tokenizer.json": new TextEncoder().encode("{}".repeat(5000)) }, { level: 0 });
    let digest = createHash("sha256").update(zip).digest("hex");
    const { engine } = await connect({
      GetTokenizer(call) {
        for (let at = 0; at < zip.length; at += 1000)
          call.send({ data: zip.subarray(at, at + 1000), sha256: at + 1000 >= zip.length ? digest : "" });
        call.end();
      },
    });
    const files = await engine.tokenizerBundle(5000);
    expect(files.get("tokenizer.json")).toHaveLength(10_000);
    digest = "0".repeat(64);
    expect(await engine.tokenizerBundle(5000).catch((e: EngineError) => e.message)).toContain("digest differs");
  });
});
