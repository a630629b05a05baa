/** Vectors of the vLLM dialect over both channels: what the engine gets and gives, and how it fails. */
import { afterEach, describe, expect, setDefaultTimeout, test } from "bun:test";
import { connectEngine } from "../../../src/engines/connect.ts";
import { type Engine, EngineError } from "../../../src/engines/engine.ts";
import { type Script, startVllmServer, type VllmServer } from "../../support/vllm-server.ts";
import { until } from "./channels.ts";

setDefaultTimeout(20_000);

const NEVER = new AbortController().signal;
const request = { requestId: "e1", tokenIds: Uint32Array.of(101, 7592, 300_000, 102) };

async function failure(reply: Promise<unknown>): Promise<EngineError> {
  try {
    await reply;
  } catch (error) {
    if (error instanceof EngineError) return error;
    throw error;
  }
  throw new Error("it did not fail");
}

describe.each(["framing", "grpc-js"] as const)("embeddings over %s", (transport) => {
  const open: { close(): void }[] = [];
  afterEach(() => {
    for (const thing of open.splice(0).reverse()) thing.close();
  });
  async function connect(scripts: Record<string, Script>): Promise<{ engine: Engine; server: VllmServer }> {
    const server = await startVllmServer(scripts);
    open.push(server);
    const options = { transport, keepaliveMs: 0, dialect: "vllm" } as const;
    const engine = await connectEngine(`grpc://127.0.0.1:${server.port}`, options);
    open.push(engine);
    return { engine, server };
  }
  const replying = (message: Record<string, unknown>) =>
    connect({
      Embed(call) {
        call.send(message);
        call.end();
      },
    });

  test("ids go out alone, the numbers come back to the bit, with the engine's count", async () => {
    const numbers = [0.25, -1, Math.fround(0.1), 1.401298464324817e-45, 3.4028234663852886e38, 0];
    const { engine, server } = await replying({ embedding: numbers, prompt_tokens: 4, embedding_dim: 6 });
    const { embedding, promptTokens } = await engine.embed(request, NEVER);
    expect(embedding).toBeInstanceOf(Float32Array);
    expect([[...embedding], promptTokens]).toEqual([numbers, 4]);
    expect(server.requests["Embed"]).toEqual([
      { request_id: "e1", tokenized: { input_ids: [101, 7592, 300_000, 102] } },
    ]);
  });

  test("large vectors of long prompts, many at a time, each to its own request", async () => {
    const { engine } = await connect({
      Embed(call) {
        const [first = 0] = (call.request["tokenized"] as { input_ids: number[] }).input_ids;
        call.send({ embedding: Array.from({ length: 4096 }, (_, i) => first + i), prompt_tokens: 8192 });
        setTimeout(() => call.end(), first % 7);
      },
    });
    const replies = await Promise.all(
      Array.from({ length: 200 }, (_, i) => {
        const tokenIds = new Uint32Array(8192).fill(150_000);
        tokenIds[0] = i;
        return engine.embed({ requestId: `e${i}`, tokenIds }, NEVER);
      }),
    );
    for (const [i, { embedding }] of replies.entries())
      expect([embedding.length, embedding[0], embedding[4095]]).toEqual([4096, i, i + 4095]);
  });

  test("numbers that do not come packed, in pieces, and fields that are not known", async () => {
    const { engine } = await connect({
      Embed(call) {
        // 1: 1.5 unpacked; 1: packed [2, -2]; 9: a text; 2: 3
        call.sendBytes(Buffer.from("0d0000c03f0a0800000040000000c04a02686910" + "03", "hex"));
        call.end();
      },
    });
    const { embedding, promptTokens } = await engine.embed(request, NEVER);
    expect([[...embedding], promptTokens]).toEqual([[1.5, 2, -2], 3]);
  });

  test.each([
    ["an empty vector", { prompt_tokens: 4 }, "empty"],
    ["another size than it says", { embedding: [1, 2], embedding_dim: 3 }, "2 numbers of a vector of 3"],
    ["a number that is none", { embedding: [1, Number.NaN], embedding_dim: 2 }, "not finite"],
    ["an infinite number", { embedding: [Number.NEGATIVE_INFINITY] }, "not finite"],
  ])("%s is a failure", async (_, message, words) => {
    const { engine } = await replying(message);
    const error = await failure(engine.embed(request, NEVER));
    expect([error.kind, error.message]).toEqual(["failed", expect.stringContaining(words)]);
  });

  test.each(["0a0500000000", "0a0400000000ff", "0d0000", "0a0300000000"])("bytes %s are a failure", async (hex) => {
    const { engine } = await connect({
      Embed(call) {
        call.sendBytes(Buffer.from(hex, "hex"));
        call.end();
      },
    });
    expect((await failure(engine.embed(request, NEVER))).kind).toBe("failed");
  });

  test.each([
    [3, "This model does not support pooling", "invalid"],
    [8, "full", "overloaded"],
    [12, "", "unimplemented"],
    [13, "crashed", "failed"],
    [1, "", "failed"],
    [14, "going away", "unavailable"],
  ] as const)("status %p is told as what it is", async (status, details, kind) => {
    const { engine } = await connect({ Embed: (call) => call.end(status, details) });
    const error = await failure(engine.embed(request, NEVER));
    expect(error.kind).toBe(kind);
    if (details !== "") expect(error.message).toBe(details);
  });

  test("cancelling ends the call at the engine, and tells it by Abort as well", async () => {
    let gone = false;
    const { engine, server } = await connect({
      async Embed(call) {
        await call.gone;
        gone = true;
      },
      Abort: (call) => call.end(),
    });
    const stop = new AbortController();
    const reply = failure(engine.embed(request, stop.signal));
    await until(() => server.requests["Embed"]?.length === 1);
    stop.abort();
    expect((await reply).kind).toBe("cancelled");
    await until(() => gone && server.requests["Abort"]?.length === 1);
    expect(server.requests["Abort"]).toEqual([{ request_ids: ["e1"] }]);
  });

  test("one that was cancelled before is never sent; cancelling afterwards says nothing", async () => {
    const { engine, server } = await connect({
      Embed(call) {
        call.send({ embedding: [1] });
        call.end();
      },
      Abort: (call) => call.end(),
    });
    expect((await failure(engine.embed(request, AbortSignal.abort()))).kind).toBe("cancelled");
    const stop = new AbortController();
    await engine.embed(request, stop.signal);
    stop.abort();
    await Bun.sleep(30);
    expect([server.requests["Embed"]?.length, server.requests["Abort"]?.length]).toEqual([1, 0]);
  });

  test("an engine that is gone is unavailable", async () => {
    const { engine, server } = await connect({ Embed: () => {} });
    const reply = failure(engine.embed(request, NEVER));
    await until(() => server.requests["Embed"]?.length === 1);
    server.close();
    expect((await reply).kind).toBe("unavailable");
    expect((await failure(engine.embed(request, NEVER))).kind).toBe("unavailable");
  });
});
