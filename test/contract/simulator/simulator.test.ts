import { expect, test } from "bun:test";
import { startSimulator, startSimulators } from "../../../src/simulator/simulator.ts";
import { ask, connect, settings, until, withEngine } from "./harness.ts";

test("/stats and /requests show what the engine saw", () =>
  withEngine({ output: "echo", speed: "instant" }, async (client, engine) => {
    await client.generate(
      ask([7, 8, 9], { max_tokens: 4, temperature: 0.25, stop: ["x"], seed: 3 }, { request_id: "one" }),
    );
    await client.generate(ask([], {}, { request_id: "two" }));
    const get = async (path: string) => (await fetch(`http://127.0.0.1:${engine.statsPort}${path}`)).json();
    expect(await get("/stats")).toMatchObject({
      dialect: "vllm",
      received: 2,
      finished: 1,
      refused: 1,
      tokensSent: 4,
      promptTokens: 3,
      open: 0,
      connections: 1,
      calls: { Generate: 2, Abort: 0 },
      engine: { running: 0, blocksInUse: 0, blocksTotal: 32_768 },
    });
    expect(await get("/requests?ids=1")).toMatchObject([
      {
        requestId: "one",
        promptTokens: 3,
        promptIds: [7, 8, 9],
        stream: true,
        outcome: "finished",
        tokensSent: 4,
        sampling: { maxTokens: 4, temperature: 0.25, stop: ["x"], seed: 3, ignoreEos: false },
      },
      { requestId: "two", outcome: "refused", details: "The decoder prompt cannot be empty" },
    ]);
    const [last] = (await get("/requests?last=1")) as Record<string, unknown>[];
    expect(last).toMatchObject({ requestId: "two" });
    expect(last).not.toHaveProperty("promptIds");
  }));

test("echo repeats the prompt's ids without specials, exactly max_tokens of them", () =>
  withEngine({ output: "echo", speed: "instant", outputTokens: 5 }, async (client) => {
    const { ids, completes } = await client.generate(ask([151644, 7, 8, 9, 151645], { max_tokens: 7 }));
    expect(ids).toEqual([7, 8, 9, 7, 8, 9, 7]);
    expect(completes[0]).toMatchObject({ finish_reason: "length" });
    expect((await client.generate(ask([1]))).ids).toEqual([1, 1, 1, 1, 1]);
  }));

test("time is kept: a token per decode step, a chunk of prompt per prefill step", () =>
  withEngine({ output: "echo", decodeBaseMs: 20, decodePerReqMs: 0 }, async (client) => {
    const started = performance.now();
    await client.generate(ask([1, 2, 3], { max_tokens: 10 }));
    const decode = performance.now() - started;
    expect(decode).toBeGreaterThan(195);
    expect(decode).toBeLessThan(600);
    const again = performance.now();
    // 4,096 tokens at 8,000 a second in two chunks.
    await client.generate(
      ask(
        Array.from({ length: 4096 }, (_, i) => i),
        { max_tokens: 1 },
      ),
    );
    expect(performance.now() - again).toBeGreaterThan(505);
  }));

test("a drain lets running calls finish and refuses new ones", async () => {
  const engine = await startSimulator(settings({ output: "echo", shutdownGracePeriodSecs: 5, decodeBaseMs: 10 }));
  const client = connect(engine.port);
  const running = client.generate(ask([1, 2, 3], { max_tokens: 20 }));
  await until(() => engine.stats().open === 1, "the call runs");
  const stopped = engine.stop();
  expect(await running).toMatchObject({ status: 0 });
  await stopped;
  expect(await client.generate(ask([1]))).toMatchObject({ status: 14 });
  client.close();
});

test("a drain ends hanging calls when the grace period is over", async () => {
  const engine = await startSimulator(settings({ output: "echo", shutdownGracePeriodSecs: 0.1 }));
  const client = connect(engine.port);
  const running = client.generate(ask([1, 2, 3], { max_tokens: 20_000 }));
  await until(() => engine.stats().open === 1, "the call runs");
  const started = performance.now();
  await engine.stop();
  expect(performance.now() - started).toBeLessThan(3000);
  expect(await running).toMatchObject({ status: 14 });
  expect(engine.stats().open).toBe(0);
  client.close();
});

test("an engine core that died: the server listens on, unhealthy, and generation fails", () =>
  withEngine({ output: "echo" }, async (client, engine) => {
    const set = (value: boolean) =>
      fetch(`http://127.0.0.1:${engine.statsPort}/alive?value=${value}`, { method: "POST" });
    const health = () =>
      client.unary("HealthCheck", "vllm.grpc.engine.HealthCheckRequest", "vllm.grpc.engine.HealthCheckResponse");
    await set(false);
    expect(await health()).toEqual({ message: "Engine is not alive" });
    const failed = await client.generate(ask([1], { max_tokens: 1 }));
    expect(failed.status).toBe(13);
    expect(failed.details).toStartWith("EngineCore encountered an issue.");
    await set(true);
    expect(await health()).toMatchObject({ healthy: true });
    expect((await client.generate(ask([1], { max_tokens: 1 }))).status).toBe(0);
  }));

test("a context that the cache can't hold in whole blocks is cut to what it can, so that no request gets stuck", () =>
  withEngine({ output: "echo", speed: "instant", kvTokens: 100, contextLength: 1000 }, async (client) => {
    const info = await client.unary(
      "GetModelInfo",
      "vllm.grpc.engine.GetModelInfoRequest",
      "vllm.grpc.engine.GetModelInfoResponse",
    );
    expect(info).toMatchObject({ max_context_length: 96 });
    const replies = await Promise.all(
      [95, 60, 20].map((length) => client.generate(ask(Array(length).fill(5), { max_tokens: 76 }))),
    );
    expect(replies.map((reply) => reply.ids.length)).toEqual([1, 36, 76]);
    await expect(startSimulator(settings({ kvTokens: 16, blockSize: 16 }))).rejects.toThrow("kv-tokens");
  }));

test("a script that can not be used stops the start", async () => {
  await expect(startSimulator(settings({ script: "no/such/file.yaml" }))).rejects.toThrow("no/such/file.yaml");
});

test("several engines in one process have ports, caches and counts of their own", async () => {
  const engines = await startSimulators(
    settings({ output: "echo", speed: "instant", instances: 3, kvConnector: "nixl", engineId: "e" }),
  );
  try {
    expect(new Set(engines.flatMap(({ port, statsPort }) => [port, statsPort])).size).toBe(6);
    expect(engines.map((engine) => engine.stats().pairing?.engineId)).toEqual(["e", "e-1", "e-2"]);
    const client = connect(engines[1]!.port);
    await client.generate(ask(Array.from({ length: 32 }, (_, i) => i)));
    client.close();
    expect(engines.map((engine) => engine.stats().received)).toEqual([0, 1, 0]);
    expect(engines.map((engine) => engine.blocks()[0]!.blocks.length > 0)).toEqual([false, true, false]);
    // The second of them meets a port that is taken.
    const port = engines[2]!.port - 1;
    expect(startSimulators(settings({ output: "echo", instances: 2, port }))).rejects.toThrow("Failed to listen");
  } finally {
    await Promise.all(engines.map((engine) => engine.stop()));
  }
});
