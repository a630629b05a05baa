import { expect, test } from "bun:test";
import * as grpc from "@grpc/grpc-js";
import type { PlainMessage } from "../../support/proto-package.ts";
import { idsOf, statusOf, withDialect } from "./dialect-client.ts";
import { type Plain, settle, until } from "./harness.ts";

const EOS = 151_645;
const PROMPT = [9707, 14990, 1052];
/** What a client has to send: nothing here has presence. */
const NEUTRAL = { temperature: 1, top_p: 1, top_k: -1, repetition_penalty: 1 };

const ask = (sampling: Plain = {}, rest: Plain = {}): Plain => ({
  request_id: `s-${Math.random().toString(36).slice(2)}`,
  tokenized: { input_ids: PROMPT },
  sampling_params: { ...NEUTRAL, ...sampling },
  logprob_start_len: -1,
  stream: true,
  ...rest,
});

test("a stream: deltas, running counts, the last chunk again in Complete; EOS is named", () =>
  withDialect("sglang", { outputTokens: 5, tokensPerMessage: 2 }, async (client) => {
    const { chunks, completes, order } = await client.generate(ask());
    expect(order).toEqual(["chunk", "chunk", "chunk", "complete"]);
    expect(chunks.map((chunk) => chunk["completion_tokens"])).toEqual([2, 4, 6]);
    const ids = idsOf(chunks);
    expect(ids.at(-1)).toBe(EOS);
    expect(completes[0]).toMatchObject({
      output_ids: ids.slice(-2),
      finish_reason: "stop",
      prompt_tokens: 3,
      completion_tokens: 6,
      matched_token_id: EOS,
      index: 0,
    });
  }));

test("the id is echoed", () =>
  withDialect("sglang", {}, async (client) => {
    const [message] = await client.stream("Generate", ask({ max_new_tokens: 1 }, { request_id: "me" }), {
      request: "GenerateRequest",
      reply: "GenerateResponse",
    });
    expect(message).toMatchObject({ request_id: "me" });
  }));

test("samples: indexed in a stream, all of them number 0 otherwise, in order and at the end", () =>
  withDialect("sglang", {}, async (client) => {
    const streamed = await client.generate(ask({ n: 3, max_new_tokens: 3 }));
    expect(streamed.completes.map((complete) => complete["index"]).sort()).toEqual([0, 1, 2]);
    const whole = await client.generate(ask({ n: 3, max_new_tokens: 3 }, { stream: false }));
    expect(whole.order).toEqual(["complete", "complete", "complete"]);
    expect(whole.completes.map((complete) => complete["index"])).toEqual([0, 0, 0]);
    expect(whole.completes.map((complete) => complete["output_ids"])).toEqual(
      [0, 1, 2].map((i) => idsOf(streamed.chunks, i)),
    );
  }));

test("absent numbers are zeros: new servicers put neutral ones for some, old ones for none", async () => {
  for (const [protocol, seen] of [
    ["0.4.28", { temperature: 0, topP: 1, topK: -1, repetitionPenalty: 1 }],
    ["0.4.14", { temperature: 0, topP: 0, topK: 0, repetitionPenalty: 0 }],
  ] as const)
    await withDialect("sglang", { protocol }, async (client, engine) => {
      await client.generate({
        request_id: "z",
        tokenized: { input_ids: PROMPT },
        sampling_params: { max_new_tokens: 1 },
        stream: true,
      });
      expect(engine.requests().at(-1)!.sampling).toMatchObject(seen);
      // Without -1 the prompt's logprobs are asked for, as soon as any are.
      const { chunks } = await client.generate({
        request_id: "z",
        tokenized: { input_ids: PROMPT },
        sampling_params: { max_new_tokens: 2 },
        return_logprob: true,
        stream: true,
      });
      const logprobs = chunks[0]!["input_logprobs"] as { token_ids: number[]; token_logprobs: Plain[] };
      expect(logprobs.token_ids).toEqual(PROMPT);
      expect(logprobs.token_logprobs[0]).toEqual({});
      expect(logprobs.token_logprobs[1]).toEqual({ value: expect.any(Number) });
      expect(chunks[1]!["input_logprobs"]).toBeNull();
    });
});

test("logprobs with their rows, and rows for given ids where the protocol has them", async () => {
  for (const protocol of ["0.4.28", "0.4.14"] as const)
    await withDialect("sglang", { protocol }, async (client) => {
      const logprobs = { return_logprob: true, top_logprobs_num: 3, token_ids_logprob: [7, 8] };
      const { chunks } = await client.generate(ask({ max_new_tokens: 2 }, logprobs));
      const first = chunks[0]!["output_logprobs"] as Record<string, PlainMessage[]>;
      expect(first).toMatchObject({ token_ids: chunks[0]!["token_ids"], token_logprobs: [expect.any(Number)] });
      const [row] = first["top_logprobs"]!;
      const values = row!["values"] as number[];
      expect(values).toHaveLength(3);
      expect(values).toEqual([...values].sort((a, b) => b - a));
      expect(first["token_ids_logprobs"]!.map(({ token_ids }) => token_ids)).toEqual(
        protocol === "0.4.28" ? [[7, 8]] : [],
      );
    });
});

test("stop strings are matched, but fail the request on an engine without tokenizer; stop ids work on both", async () => {
  await withDialect("sglang", {}, async (client) => {
    const { completes } = await client.generate(ask({ stop: [" simulated"] }, { stream: false }));
    expect(completes[0]).toMatchObject({ finish_reason: "stop", matched_stop_str: " simulated" });
  });
  await withDialect("sglang", { noTokenizer: true }, async (client) => {
    expect(await client.generate(ask({ stop: [" simulated"] }))).toMatchObject({
      status: grpc.status.INTERNAL,
      order: [],
    });
    const { completes, chunks } = await client.generate(ask({ stop_token_ids: [1079] }));
    expect(completes[0]).toMatchObject({ matched_token_id: 1079, completion_tokens: 2 });
    expect(idsOf(chunks).at(-1)).toBe(1079);
  });
});

test("constraints, bad values, a prompt that is missing", () =>
  withDialect("sglang", { contextLength: 64 }, async (client, engine) => {
    const said = await client.generate(ask({ regex: "[0-9]{4}" }, { stream: false }));
    expect(said.status).toBe(0);
    for (const [sampling, kind] of [
      [{ json_schema: '{"type":"object"}' }, "json_schema"],
      [{ ebnf_grammar: 'root ::= "a"' }, "grammar"],
      [{ structural_tag: '{"format":{"type":"const_string","value":"x"}}' }, "structural_tag"],
    ] as const) {
      expect((await client.generate(ask({ ...sampling, max_new_tokens: 20 }))).status).toBe(0);
      expect(engine.requests().at(-1)!.sampling.constraint).toMatchObject({ kind });
    }
    for (const bad of [
      ask({ temperature: -1 }),
      ask({ top_p: 2 }),
      ask({ regex: "(" }),
      ask({ json_schema: "{" }),
      ask({}, { tokenized: { input_ids: Array.from({ length: 64 }, () => 5) } }),
      ask({}, { tokenized: { input_ids: [9_000_000] } }),
      ask({}, { tokenized: undefined }),
      ask({}, { return_hidden_states: true }),
    ])
      expect((await client.generate(bad)).status).toBe(grpc.status.INVALID_ARGUMENT);
  }));

test("an Abort: a running request is silent from then on, a waiting one ends with INTERNAL", () =>
  withDialect("sglang", { speed: "1", decodeBaseMs: 5, maxRunning: 1 }, async (client, engine) => {
    let seen = 0;
    let cancel = () => {};
    const endless = { max_new_tokens: 2000, ignore_eos: true };
    const running = client.generate(ask(endless, { request_id: "a" }), (count, stop) => {
      seen = count;
      cancel = stop;
    });
    await until(() => seen > 2, "it runs");
    const waiting = client.generate(ask(endless, { request_id: "b" }));
    await until(() => engine.stats().engine.waiting === 1, "the other waits");
    expect(await client.call("Abort", { request_id: "b", reason: "gone" })).toMatchObject({ success: true });
    expect(await waiting).toMatchObject({ status: grpc.status.INTERNAL, details: "Request aborted" });
    expect(await client.call("Abort", { request_id: "a" })).toMatchObject({ success: true });
    expect(await client.call("Abort", { request_id: "HEALTH_CHECK_1" })).toMatchObject({ success: false });
    expect(await client.call("Abort", { request_id: "nobody" })).toMatchObject({ success: true });
    await until(() => engine.stats().engine.running === 0, "the engine is free");
    await settle(2); // what it had sent by then may still be on its way
    const after = seen;
    await Bun.sleep(30);
    expect(seen).toBe(after);
    cancel();
    expect((await running).status).toBe(grpc.status.CANCELLED);
    expect(engine.stats()).toMatchObject({ abortedByRpc: 2, abortedByCancel: 0, open: 0 });
  }));

test("health is a generation: half a second, a second for old servicers; at once unhealthy when dead", async () => {
  for (const [protocol, least] of [
    ["0.4.28", 480],
    ["0.4.14", 980],
  ] as const)
    await withDialect("sglang", { protocol }, async (client, engine) => {
      const before = performance.now();
      expect(await client.call("HealthCheck")).toMatchObject({ healthy: true });
      expect(performance.now() - before).toBeGreaterThan(least);
      engine.setAlive(false);
      expect(await client.call("HealthCheck")).toMatchObject({ healthy: false });
      expect((await client.generate(ask())).status).toBe(grpc.status.INTERNAL);
      expect(engine.stats()).toMatchObject({ received: 1, open: 0 });
    });
});

test("information: launch arguments as a struct, the cache's size as context length, loads by section", () =>
  withDialect("sglang", { contextLength: 4096, kvTokens: 100_000, waitsForReasoning: true }, async (client) => {
    expect(await client.call("GetModelInfo")).toMatchObject({
      served_model_name: "collie-demo",
      is_generation: true,
      max_context_length: 100_000,
      max_req_input_len: 4095,
      eos_token_ids: [EOS],
    });
    const info = await client.call("GetServerInfo");
    const { fields } = info["server_args"] as { fields: Record<string, Plain> };
    expect(fields["context_length"]).toMatchObject({ numberValue: 4096 });
    expect(fields["is_embedding"]).toMatchObject({ boolValue: false });
    expect(fields["constrained_decoding_start"]).toMatchObject({ stringValue: "after_reasoning" });
    const started = Number((info["start_time"] as Plain)["seconds"]);
    expect(Math.abs(started - Date.now() / 1000)).toBeLessThan(30);
    expect(await client.call("GetLoads")).toMatchObject({
      dp_rank_count: 1,
      loads: [
        {
          num_running_reqs: 0,
          max_total_num_tokens: 100_000,
          queues: { waiting: 0 },
          memory: { token_capacity: 100_000 },
        },
      ],
      aggregate: { total_reqs: 0 },
    });
    const core = (await client.call("GetLoads", { include: ["core"] }))["loads"] as PlainMessage[];
    expect(core[0]!["queues"]).toBeUndefined();
    expect((await client.call("GetLoads", { dp_rank: 3 }))["loads"]).toEqual([]);
    expect(await statusOf(client.call("GetLoads", { include: ["nonsense"] }))).toMatchObject({
      code: grpc.status.INVALID_ARGUMENT,
    });
  }));

test("flush, profiles, bundle, LoRA calls that are only declared", () =>
  withDialect("sglang", {}, async (client) => {
    const common = (name: string) => ({
      request: `smg.grpc.common.${name}Request`,
      reply: `smg.grpc.common.${name === "FlushCache" ? "FlushCache" : "Profile"}Response`,
    });
    expect(await client.call("FlushCache", { timeout_s: 0 }, common("FlushCache"))).toMatchObject({ success: true });
    const profile = (name: string) => client.call(name, {}, common(name));
    expect(await profile("StopProfile")).toMatchObject({ success: false });
    expect(await profile("StartProfile")).toMatchObject({ success: true });
    expect(await profile("StartProfile")).toMatchObject({ success: false });
    expect(await profile("StopProfile")).toMatchObject({ success: true });
    const pieces = await client.stream(
      "GetTokenizer",
      {},
      {
        request: "smg.grpc.common.GetTokenizerRequest",
        reply: "smg.grpc.common.GetTokenizerChunk",
      },
    );
    expect((pieces[0]!["data"] as Uint8Array).length).toBe(65_536);
    expect(await statusOf(client.call("ListLoadedLoRAAdapters"))).toMatchObject({ code: grpc.status.UNIMPLEMENTED });
  }));

test("vectors", () =>
  withDialect("sglang", { poolingDim: 16 }, async (client) => {
    const reply = await client.call("Embed", { request_id: "e", tokenized: { input_ids: PROMPT } });
    expect(reply).toMatchObject({ embedding_dim: 16, prompt_tokens: 3 });
    const length = Math.hypot(...(reply["embedding"] as number[]));
    expect(length).toBeCloseTo(1, 4);
    expect(await client.call("GetModelInfo")).toMatchObject({ is_generation: false });
    expect((await client.generate(ask())).status).toBe(grpc.status.INVALID_ARGUMENT);
  }));

test("a rank is not read, and the log says so", () =>
  withDialect("sglang", {}, async (client, engine) => {
    await client.generate(ask({ max_new_tokens: 1 }, { data_parallel_rank: 2 }));
    expect(engine.requests().at(-1)!.extra).toMatchObject({ ignored: ["data_parallel_rank"] });
  }));

test("a constraint waits for the end of a thought, where there is a reasoning parser and the request says so", () =>
  withDialect("sglang", { waitsForReasoning: true }, async (client) => {
    // <think>, and then </think>
    const [open, close] = [151_667, 151_668];
    const said = async (prompt: number[], require_reasoning: boolean) =>
      (
        await client.generate(
          ask(
            { json_schema: '{"type":"object"}' },
            { tokenized: { input_ids: prompt }, require_reasoning, stream: false },
          ),
        )
      ).completes[0]!["output_ids"] as number[];
    const bare = await said([9707], true);
    const thought = await said([9707, open], true);
    expect(thought).toContain(close);
    expect(thought.slice(-bare.length)).toEqual(bare);
    expect(await said([9707, open], false)).toEqual(bare);
    expect(await said([9707, open, close], true)).toEqual(bare);
  }));

test("what compiles constraints is told, and its limits hold", async () => {
  for (const [grammarBackend, regex, grammar] of [
    ["outlines", 0, grpc.status.INVALID_ARGUMENT],
    ["none", grpc.status.INVALID_ARGUMENT, grpc.status.INVALID_ARGUMENT],
  ] as const)
    await withDialect("sglang", { grammarBackend }, async (client) => {
      const { fields } = (await client.call("GetServerInfo"))["server_args"] as { fields: Record<string, Plain> };
      expect(fields["grammar_backend"]).toMatchObject({ stringValue: grammarBackend });
      expect((await client.generate(ask({ regex: "[0-9]", max_new_tokens: 2 }))).status).toBe(regex);
      expect((await client.generate(ask({ ebnf_grammar: "root ::= 1", max_new_tokens: 2 }))).status).toBe(grammar);
    });
});
