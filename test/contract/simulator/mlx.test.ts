/** What a real MLX server does, seen with mlx-lm 0.31.3 and servicer 0.14.1, holds for the simulated one. */
import { expect, test } from "bun:test";
import * as grpc from "@grpc/grpc-js";
import { unzipSync } from "fflate";
import type { PlainMessage } from "../../support/proto-package.ts";
import { idsOf, statusOf, withDialect } from "./dialect-client.ts";
import { type Plain, settle, until } from "./harness.ts";

const EOS = 151_645;
const OTHER_EOS = 151_643;
const PROMPT = [151644, 872, 198, 9707, 151645, 198, 151644, 77091, 198];

const ask = (sampling: Plain = {}, rest: Plain = {}): Plain => ({
  request_id: `m-${Math.random().toString(36).slice(2)}`,
  tokenized: { input_ids: PROMPT },
  sampling_params: { temperature: 0, top_p: 1, max_tokens: 6, ...sampling },
  stream: true,
  ...rest,
});

test("one token a chunk, running counts, a Complete without ids", () =>
  withDialect("mlx", { tokensPerMessage: 4, mergeLagging: true }, async (client) => {
    const { chunks, completes, order } = await client.generate(ask());
    expect(order).toEqual([...Array(6).fill("chunk"), "complete"]);
    expect(chunks.map((chunk) => chunk["completion_tokens"])).toEqual([1, 2, 3, 4, 5, 6]);
    expect(completes[0]).toMatchObject({
      output_ids: [],
      finish_reason: "length",
      prompt_tokens: 9,
      completion_tokens: 6,
    });
    const whole = await client.generate(ask({}, { stream: false }));
    expect(whole.order).toEqual(["complete"]);
    expect(whole.completes[0]).toMatchObject({ output_ids: idsOf(chunks), completion_tokens: 6 });
  }));

test("an EOS and a stop id end it and are named; an EOS that only generation_config.json names does not", () =>
  withDialect("mlx", {}, async (client) => {
    const forced = (id: number, more: Plain = {}) => client.generate(ask({ logit_bias: { [id]: 100 }, ...more }));
    const eos = await forced(EOS);
    expect(idsOf(eos.chunks)).toEqual([EOS]);
    expect(eos.completes[0]).toMatchObject({ finish_reason: "stop", matched_stop_token_id: EOS });
    expect(idsOf((await forced(OTHER_EOS)).chunks)).toEqual(Array(6).fill(OTHER_EOS));
    expect(idsOf((await forced(OTHER_EOS, { stop_token_ids: [OTHER_EOS] })).chunks)).toEqual([OTHER_EOS]);
    const ignored = await forced(EOS, { ignore_eos: true, max_tokens: 3 });
    expect(ignored.completes[0]).toMatchObject({ finish_reason: "length", completion_tokens: 3 });
    expect(ignored.completes[0]).not.toHaveProperty("matched_stop_token_id");
  }));

test("logprobs: rows from high to low; a count of 0 gives none at all", () =>
  withDialect("mlx", {}, async (client) => {
    const { chunks, completes } = await client.generate(ask({ logprobs: 3, max_tokens: 2 }));
    const own = chunks[0]!["output_logprobs"] as Record<string, unknown[]>;
    expect(own["token_ids"]).toEqual(chunks[0]!["token_ids"] as unknown[]);
    const values = (own["top_logprobs"]![0] as PlainMessage)["values"] as number[];
    expect(values).toHaveLength(3);
    expect(values).toEqual([...values].sort((a, b) => b - a));
    expect(completes[0]!["output_logprobs"]).toBeNull();
    expect((await client.generate(ask({ logprobs: 0, max_tokens: 1 }))).chunks[0]!["output_logprobs"]).toBeNull();
  }));

test("nothing is checked: no tokens asked for give one, a negative temperature runs, no ids are never answered", () =>
  withDialect("mlx", {}, async (client, engine) => {
    expect((await client.generate(ask({ max_tokens: 0 }))).completes[0]).toMatchObject({ completion_tokens: 1 });
    expect((await client.generate(ask({ temperature: -1 }))).status).toBe(0);
    expect((await client.generate(ask({}, { tokenized: { input_ids: [4_000_000] } }))).status).toBe(0);
    expect(await client.generate({ request_id: "t", text: "Hello", sampling_params: {} })).toMatchObject({
      status: grpc.status.INVALID_ARGUMENT,
      details: "MLX servicer requires tokenized input",
    });
    const never = client.generate(ask({}, { request_id: "never", tokenized: {} }));
    await until(() => engine.stats().open === 1, "it is there");
    expect((await client.generate(ask())).status).toBe(0);
    expect(engine.stats().open).toBe(1);
    await client.call("Abort", { request_ids: ["never"] });
    expect(await never).toMatchObject({ status: 0, order: [] });
  }));

test("an Abort ends a stream with OK and without a Complete; unknown ids are no matter", () =>
  withDialect("mlx", { speed: "1", decodeBaseMs: 2 }, async (client, engine) => {
    for (const stream of [true, false]) {
      let seen = 0;
      const endless = client.generate(
        ask({ max_tokens: 5000, ignore_eos: true }, { request_id: "x", stream }),
        (count) => {
          seen = count;
        },
      );
      await until(() => engine.stats().engine.running === 1, "it runs");
      if (stream) await until(() => seen > 0, "its first chunk");
      else await settle(2);
      expect(await client.call("Abort", { request_ids: ["nobody", "x"] })).toEqual({});
      const { status, completes, chunks } = await endless;
      expect([status, completes]).toEqual([0, []]);
      expect(chunks.length > 0).toBe(stream);
    }
    expect(engine.stats()).toMatchObject({ abortedByRpc: 2, open: 0, unknownAborts: 2 });
  }));

test("information, and calls that it does not have", () =>
  withDialect("mlx", { servedModelName: "another" }, async (client, engine) => {
    expect(await client.call("HealthCheck")).toEqual({ healthy: true, message: "OK" });
    expect(await client.call("GetModelInfo")).toMatchObject({
      model_path: "collie-demo",
      served_model_name: "collie-demo",
      eos_token_ids: [EOS],
      max_context_length: 40_960,
    });
    expect(await client.call("GetServerInfo")).toMatchObject({ server_type: "mlx-grpc", active_requests: 0 });
    const types = { request: "GetServerInfoRequest", reply: "GetServerInfoResponse" };
    for (const method of ["GetLoads", "Embed", "SubscribeKvEvents", "FlushCache"])
      expect(await statusOf(client.call(method, {}, types))).toMatchObject({ code: grpc.status.UNIMPLEMENTED });
    engine.setAlive(false);
    expect(await client.call("HealthCheck")).toMatchObject({ healthy: false });
    // its health service tells of the server alone
    const raw = (bytes: Buffer) => bytes;
    const status = await new Promise((resolve, reject) => {
      client.channel.makeUnaryRequest("/grpc.health.v1.Health/Check", raw, raw, Buffer.alloc(0), (error, reply) =>
        error ? reject(error) : resolve([...(reply ?? [])]),
      );
    });
    expect(status).toEqual([0x08, 1]); // SERVING
  }));

test("the bundle: 64 KiB pieces with the configuration; old ones of 512 KiB without it", async () => {
  for (const [protocol, bytes, names] of [
    ["0.4.28", 65_536, ["config.json", "generation_config.json", "tokenizer.json", "tokenizer_config.json"]],
    ["0.4.14", 524_288, ["tokenizer.json", "tokenizer_config.json"]],
  ] as const)
    await withDialect("mlx", { protocol }, async (client) => {
      const pieces = await client.stream(
        "GetTokenizer",
        {},
        {
          request: "smg.grpc.common.GetTokenizerRequest",
          reply: "smg.grpc.common.GetTokenizerChunk",
        },
      );
      const data = pieces.map(({ data }) => data as Uint8Array);
      expect(data[0]!.length).toBe(bytes);
      expect(Object.keys(unzipSync(Buffer.concat(data))).sort()).toEqual([...names]);
    });
});
