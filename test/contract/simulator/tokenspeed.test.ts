import { expect, test } from "bun:test";
import * as grpc from "@grpc/grpc-js";
import type { PlainMessage } from "../../support/proto-package.ts";
import { type DialectClient, idsOf, statusOf, withDialect } from "./dialect-client.ts";
import { type Plain, until } from "./harness.ts";

const EOS = 151_645;
const PROMPT = [9707, 14990, 1052];

const ask = (sampling: Plain = {}, rest: Plain = {}): Plain => ({
  request_id: `t-${Math.random().toString(36).slice(2)}`,
  tokenized: { input_ids: PROMPT },
  sampling_params: sampling,
  stream: true,
  ...rest,
});

test("the stop token is trimmed off and yet counted, unless it shall stay", () =>
  withDialect("tokenspeed", { outputTokens: 4, tokensPerMessage: 3 }, async (client) => {
    const trimmed = await client.generate(ask());
    expect(trimmed.order).toEqual(["chunk", "chunk", "complete"]);
    expect(idsOf(trimmed.chunks)).toHaveLength(4);
    expect(trimmed.chunks.map((chunk) => chunk["completion_tokens"])).toEqual([3, 5]);
    expect(trimmed.completes[0]).toMatchObject({
      output_ids: idsOf(trimmed.chunks).slice(3),
      completion_tokens: 5,
      finish_reason: "stop",
      matched_token_id: EOS,
    });
    const kept = await client.generate(ask({ no_stop_trim: true }));
    expect(idsOf(kept.chunks)).toEqual([...idsOf(trimmed.chunks), EOS]);
    const whole = await client.generate(ask({}, { stream: false }));
    expect(whole.completes[0]).toMatchObject({ output_ids: idsOf(trimmed.chunks), completion_tokens: 5 });
  }));

test("a chunk of which trimming leaves nothing is not sent, unless it is the first", () =>
  withDialect("tokenspeed", { outputTokens: 2 }, async (client) => {
    const { chunks, completes } = await client.generate(ask());
    expect(chunks.map((chunk) => (chunk["token_ids"] as number[]).length)).toEqual([1, 1]);
    expect(completes[0]).toMatchObject({ output_ids: chunks[1]!["token_ids"], completion_tokens: 3 });
    const only = await client.generate(ask({ logit_bias: { [EOS]: 100 } }));
    expect(only.order).toEqual(["chunk", "complete"]);
    expect(only.chunks[0]).toMatchObject({ token_ids: [], completion_tokens: 1 });
    expect(only.completes[0]).toMatchObject({ output_ids: [], completion_tokens: 1, matched_token_id: EOS });
  }));

test("samples are indexed, streamed and whole; logprobs are cut like the ids", () =>
  withDialect("tokenspeed", {}, async (client) => {
    for (const stream of [true, false]) {
      const { completes } = await client.generate(ask({ n: 2, max_new_tokens: 3 }, { stream }));
      expect(completes.map((complete) => complete["index"]).sort()).toEqual([0, 1]);
    }
    const { completes } = await client.generate(
      ask({ stop_token_ids: [1079] }, { stream: false, return_logprob: true, top_logprobs_num: 2 }),
    );
    const logprobs = completes[0]!["output_logprobs"] as Record<string, unknown[]>;
    expect(completes[0]).toMatchObject({ output_ids: [40], completion_tokens: 2, matched_token_id: 1079 });
    expect(logprobs["token_ids"]).toEqual([40]);
    expect((logprobs["top_logprobs"]![0] as PlainMessage)["values"]).toHaveLength(2);
  }));

test("what is absent is the engine's own default; zeros are zeros", () =>
  withDialect("tokenspeed", {}, async (client, engine) => {
    await client.generate(ask({ max_new_tokens: 1 }));
    expect(engine.requests().at(-1)!.sampling).toMatchObject({
      temperature: 1,
      topP: 1,
      topK: -1,
      repetitionPenalty: 1,
    });
    await client.generate(ask({ max_new_tokens: 1, temperature: 0, sampling_seed: 5 }));
    expect(engine.requests().at(-1)!.sampling).toMatchObject({ temperature: 0, seed: 5 });
    for (const bad of [ask({}, { tokenized: {} }), ask({ temperature: -1 }), ask({}, { data_parallel_rank: 1 })])
      expect((await client.generate(bad)).status).toBe(grpc.status.INVALID_ARGUMENT);
  }));

test("an Abort is a status, also by the id of a sample; what is not there is told", () =>
  withDialect("tokenspeed", { speed: "1", decodeBaseMs: 2 }, async (client, engine) => {
    const endless = client.generate(ask({ n: 2, max_new_tokens: 5000, ignore_eos: true }, { request_id: "x" }));
    await until(() => engine.stats().tokensSent > 4, "it runs");
    expect(await client.call("Abort", { request_id: "y" })).toMatchObject({ success: false });
    expect(await client.call("Abort", { request_id: "x-n1" })).toMatchObject({ success: true });
    expect(await endless).toMatchObject({ status: grpc.status.INTERNAL, completes: [] });
    expect(engine.stats()).toMatchObject({ abortedByRpc: 1, open: 0, engine: { running: 0 } });
  }));

test("loads, flush, weight version: new and old", async () => {
  const types = { request: "smg.grpc.common.FlushCacheRequest", reply: "smg.grpc.common.FlushCacheResponse" };
  await withDialect("tokenspeed", { kvTokens: 50_000 }, async (client) => {
    const [load] = (await client.call("GetLoads"))["loads"] as PlainMessage[];
    expect(load).toMatchObject({
      max_total_num_tokens: 50_000,
      max_running_requests: 256,
      num_waiting_uncached_tokens: 0,
      gen_throughput: 0,
    });
    expect(await client.call("FlushCache", { timeout_s: 0 }, types)).toMatchObject({ success: true });
    expect(await statusOf(client.call("FlushCache", { timeout_s: -1 }, types))).toMatchObject({
      code: grpc.status.INVALID_ARGUMENT,
    });
    const { chunks, completes } = await client.generate(ask({ max_new_tokens: 1 }));
    expect([chunks[0]!["weight_version"], completes[0]!["weight_version"]]).toEqual(["default", "default"]);
    expect(await client.call("GetModelInfo")).toMatchObject({ weight_version: "default" });
    expect(await client.call("GetServerInfo")).toMatchObject({ constrained_decoding: "requested" });
  });
  await withDialect("tokenspeed", { protocol: "0.4.14" }, async (client) => {
    const [load] = (await client.call("GetLoads"))["loads"] as PlainMessage[];
    expect(load).toMatchObject({ max_running_requests: 0 });
    const { chunks, completes } = await client.generate(ask({ max_new_tokens: 1 }));
    expect([chunks[0]!["weight_version"], completes[0]!["weight_version"]]).toEqual([undefined, undefined]);
  });
});

test("ranks: a pin is taken where there are several, and only there the engine names their number", async () => {
  const named = async (client: DialectClient) => {
    const { fields } = (await client.call("GetServerInfo"))["server_args"] as { fields: Record<string, Plain> };
    return fields["dp_size"];
  };
  await withDialect("tokenspeed", { dataParallelSize: 4 }, async (client, engine) => {
    expect(await named(client)).toMatchObject({ numberValue: 4 });
    expect((await client.generate(ask({ max_new_tokens: 1 }, { data_parallel_rank: 3 }))).status).toBe(0);
    expect(engine.requests().at(-1)!.extra).toEqual({ data_parallel_rank: 3 });
    expect((await client.generate(ask({}, { data_parallel_rank: 4 }))).status).toBe(grpc.status.INVALID_ARGUMENT);
  });
  await withDialect("tokenspeed", {}, async (client) => expect(await named(client)).toBeUndefined());
});
