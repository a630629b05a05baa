import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { createHash } from "node:crypto";
import * as grpc from "@grpc/grpc-js";
import { unzipSync } from "fflate";
import type { Simulator } from "../../../src/simulator/simulator.ts";
import { startSimulator } from "../../../src/simulator/simulator.ts";
import { demoModelFiles } from "../../../src/tokenizer/demo-model.ts";
import { loadTokenizer, openTokenizer } from "../../../src/tokenizer/load.ts";
import type { Tokenizer } from "../../../src/tokenizer/tokenizer.ts";
import { ask, type Client, connect, type Plain, settings } from "./harness.ts";

const PROMPT = [151644, 872, 198, 9707, 151645, 198, 151644, 77091, 198];
const EOS = 151645;
const SECOND_EOS = 151643;

let engine: Simulator;
let client: Client;
let tokenizer: Tokenizer;

beforeAll(async () => {
  tokenizer = openTokenizer(await loadTokenizer(await demoModelFiles()));
  engine = await startSimulator(settings({ speed: "instant", contextLength: 12_000, vocabSize: 151_936 }));
  client = connect(engine.port);
});

afterAll(async () => {
  client.close();
  await engine.stop();
});

function text(ids: readonly number[]): string {
  const decoder = tokenizer.decoder({ skipSpecialTokens: true });
  return ids.map((id) => decoder.push(id)).join("") + decoder.end();
}

describe("information", () => {
  test("health, also by grpc.health.v1", async () => {
    expect(
      await client.unary("HealthCheck", "vllm.grpc.engine.HealthCheckRequest", "vllm.grpc.engine.HealthCheckResponse"),
    ).toEqual({
      healthy: true,
      message: "Health",
    });
    const check = (service: string) =>
      new Promise<number[] | grpc.ServiceError>((resolve) => {
        const request = Buffer.from([0x0a, service.length, ...Buffer.from(service)]);
        client.channel.makeUnaryRequest(
          "/grpc.health.v1.Health/Check",
          (b: Buffer) => b,
          (b) => [...b],
          request,
          (error, reply) => resolve(error ?? reply ?? []),
        );
      });
    expect(await check("")).toEqual([8, 1]);
    expect(await check("vllm.grpc.engine.VllmEngine")).toEqual([8, 1]);
    expect(await check("no.such.Service")).toMatchObject({ code: grpc.status.NOT_FOUND });
  });

  test("model and server info", async () => {
    const model = await client.unary(
      "GetModelInfo",
      "vllm.grpc.engine.GetModelInfoRequest",
      "vllm.grpc.engine.GetModelInfoResponse",
    );
    expect(model).toMatchObject({
      is_generation: true,
      max_context_length: 12_000,
      max_req_input_len: 12_000,
      vocab_size: 151_936,
      eos_token_ids: [EOS],
      bos_token_id: SECOND_EOS,
      model_type: "qwen3",
    });
    expect(JSON.parse(String(model["default_sampling_params_json"]))).toEqual({
      temperature: 0.6,
      top_p: 0.95,
      top_k: 20,
    });
    expect(
      await client.unary(
        "GetServerInfo",
        "vllm.grpc.engine.GetServerInfoRequest",
        "vllm.grpc.engine.GetServerInfoResponse",
      ),
    ).toMatchObject({ data_parallel_size: 1, block_size: 16, max_num_seqs: 256 });
  });

  test("loads of an idle engine", async () => {
    const { loads, dp_rank_count } = await client.unary(
      "GetLoads",
      "vllm.grpc.engine.GetLoadsRequest",
      "vllm.grpc.engine.GetLoadsResponse",
      { dp_rank: 7, include: ["nonsense"] },
    );
    expect(dp_rank_count).toBe(1);
    expect((loads as Plain[])[0]).toMatchObject({ max_total_num_tokens: 524_288, max_running_requests: 256 });
  });

  test("the tokenizer bundle in pieces of 64 KiB, its digest on the last", async () => {
    const pieces: { data: Buffer; digest: string }[] = [];
    const stream = client.channel.makeServerStreamRequest(
      "/vllm.grpc.engine.VllmEngine/GetTokenizer",
      (b: Buffer) => b,
      (b: Buffer) => b,
      Buffer.alloc(0),
    );
    for await (const message of stream as AsyncIterable<Buffer>) {
      let at = 1;
      let length = 0;
      for (let shift = 0; ; shift += 7) {
        const byte = message[at++] ?? 0;
        length |= (byte & 0x7f) << shift;
        if (byte < 0x80) break;
      }
      pieces.push({ data: message.subarray(at, at + length), digest: message.subarray(at + length + 2).toString() });
    }
    const zip = Buffer.concat(pieces.map((piece) => piece.data));
    expect(pieces.slice(0, -1).every((piece) => piece.data.length === 65_536 && piece.digest === "")).toBe(true);
    expect(pieces.at(-1)?.digest).toBe(createHash("sha256").update(zip).digest("hex"));
    const files = unzipSync(zip);
    expect(Object.keys(files).sort()).toEqual([
      "config.json",
      "generation_config.json",
      "tokenizer.json",
      "tokenizer_config.json",
    ]);
  });

  test("another dialect's service is unknown", async () => {
    const call = client.unary(
      "/sglang.grpc.scheduler.SglangScheduler/HealthCheck",
      "vllm.grpc.engine.HealthCheckRequest",
      "vllm.grpc.engine.HealthCheckResponse",
    );
    await expect(call).rejects.toMatchObject({ code: grpc.status.UNIMPLEMENTED, details: "Method not found!" });
  });

  test("Embed and the profiler refuse", async () => {
    const embed = client.unary("Embed", "vllm.grpc.engine.EmbedRequest", "vllm.grpc.engine.EmbedResponse", {
      tokenized: { input_ids: PROMPT },
    });
    await expect(embed).rejects.toMatchObject({
      code: grpc.status.INVALID_ARGUMENT,
      details: "This model does not support pooling",
    });
    const profile = client.unary(
      "StartProfile",
      "smg.grpc.common.StartProfileRequest",
      "smg.grpc.common.ProfileResponse",
    );
    await expect(profile).rejects.toMatchObject({ code: grpc.status.INTERNAL });
  });
});

describe("Generate", () => {
  test("streams one token a message; Complete repeats the last", async () => {
    const { chunks, completes, status } = await client.generate(ask(PROMPT, { max_tokens: 8 }));
    expect(status).toBe(0);
    expect(chunks.map((chunk) => chunk["completion_tokens"])).toEqual(Array(8).fill(1));
    expect(chunks.every((chunk) => chunk["prompt_tokens"] === 9)).toBe(true);
    expect(completes).toHaveLength(1);
    expect(completes[0]).toMatchObject({ finish_reason: "length", completion_tokens: 1 });
    expect(completes[0]!["output_ids"]).toEqual(chunks[7]!["token_ids"]);
  });

  test("tells what it saw and ends with EOS; without stream it is the same text", async () => {
    const streamed = await client.generate(ask(PROMPT));
    expect(text(streamed.ids)).toStartWith("I am a simulated engine. Your prompt had 9 tokens, 0 of them cached.");
    expect(streamed.ids.at(-1)).toBe(EOS);
    expect(streamed.completes[0]).toMatchObject({ finish_reason: "stop" });
    expect(streamed.completes[0]).not.toHaveProperty("matched_token_id");
    const whole = await client.generate(ask(PROMPT, {}, { stream: false }));
    expect(whole.chunks).toHaveLength(0);
    expect(whole.completes[0]).toMatchObject({ completion_tokens: streamed.ids.length });
    expect(whole.ids).toEqual(streamed.ids);
  });

  test("a prompt seen before comes from the cache, all but its end", async () => {
    const prompt = Array.from({ length: 40 }, (_, i) => 3000 + i);
    expect((await client.generate(ask(prompt, { max_tokens: 1 }))).completes[0]).toMatchObject({ prompt_tokens: 40 });
    const again = await client.generate(ask(prompt));
    expect(again.completes[0]).toMatchObject({ cached_tokens: 32 });
    expect(text(again.ids)).toContain("Your prompt had 40 tokens, 32 of them cached.");
  });

  test("n samples with a seed: repeatable, different, a Complete each", async () => {
    const run = () => client.generate(ask(PROMPT, { n: 2, temperature: 1, seed: 5, max_tokens: 6 }));
    const [first, second] = [await run(), await run()];
    const idsOf = (index: number) =>
      first.chunks.filter((c) => (c["index"] ?? 0) === index).flatMap((c) => c["token_ids"] as number[]);
    expect(first.completes.map((c) => c["index"] ?? 0).sort()).toEqual([0, 1]);
    expect(idsOf(0)).toHaveLength(6);
    expect(idsOf(1)).not.toEqual(idsOf(0));
    expect(second.chunks).toEqual(first.chunks);
  });

  test("logprobs: the token first, then exactly N - 1 others; prompt logprobs with the first chunk only", async () => {
    const { chunks, completes } = await client.generate(
      ask(PROMPT, { logprobs: 3, prompt_logprobs: 2, max_tokens: 2 }),
    );
    const output = chunks[0]!["output_logprobs"] as Plain;
    const rows = output["top_logprobs"] as { values: number[]; token_ids: number[] }[];
    expect(rows).toHaveLength(1);
    expect(rows[0]!.token_ids).toHaveLength(3);
    expect(rows[0]!.token_ids[0]).toBe((chunks[0]!["token_ids"] as number[])[0]!);
    expect(rows[0]!.values[0]).toBe((output["token_logprobs"] as number[])[0]!);
    const input = chunks[0]!["input_logprobs"] as {
      token_logprobs: Plain[];
      token_ids: number[];
      top_logprobs: Plain[];
    };
    expect(input.token_ids).toEqual(PROMPT);
    expect(input.token_logprobs[0]).toEqual({});
    expect(input.token_logprobs[1]!["value"]).toBeNumber();
    expect(input.top_logprobs[0]).toEqual({ values: [], token_ids: [] });
    expect(chunks[1]).not.toHaveProperty("input_logprobs");
    expect(completes[0]).not.toHaveProperty("input_logprobs");
    expect(completes[0]!["output_logprobs"]).toEqual(chunks[1]!["output_logprobs"]);
    const none = await client.generate(ask(PROMPT, { logprobs: 0, max_tokens: 1 }));
    expect(none.chunks[0]!["output_logprobs"]).toMatchObject({ token_ids: none.ids, top_logprobs: [] });
  });

  test("text input is tokenized by the engine", async () => {
    const { completes } = await client.generate({ request_id: "t", text: "Hello there", stream: true });
    expect(completes[0]).toMatchObject({ prompt_tokens: tokenizer.encode("Hello there").length });
  });
});

describe("stops", () => {
  const forced = (id: number) => ({ logit_bias: { [id]: 100 } });

  test("EOS of config.json is no matched stop, one of generation_config.json is", async () => {
    const plain = await client.generate(ask(PROMPT, { ...forced(EOS), stop_token_ids: [EOS] }));
    expect(plain.ids).toEqual([EOS]);
    expect(plain.completes[0]).toMatchObject({ finish_reason: "stop" });
    expect(plain.completes[0]).not.toHaveProperty("matched_token_id");
    const other = await client.generate(ask(PROMPT, forced(SECOND_EOS)));
    expect(other.completes[0]).toMatchObject({ finish_reason: "stop", matched_token_id: SECOND_EOS });
  });

  test("min_tokens holds it back, ignore_eos goes on", async () => {
    const held = await client.generate(ask(PROMPT, { ...forced(EOS), min_tokens: 3 }));
    expect(held.ids).toHaveLength(4);
    expect(held.ids.indexOf(EOS)).toBe(3);
    const ignored = await client.generate(ask(PROMPT, { ...forced(SECOND_EOS), ignore_eos: true, max_tokens: 3 }));
    expect(ignored.ids).toEqual([SECOND_EOS, SECOND_EOS, SECOND_EOS]);
    expect(ignored.completes[0]).toMatchObject({ finish_reason: "length" });
    const long = await client.generate(ask(PROMPT, { ignore_eos: true, max_tokens: 700 }));
    expect(long.ids).toHaveLength(700);
    expect(long.ids).not.toContain(EOS);
    const least = await client.generate(ask(PROMPT, { min_tokens: 200 }));
    expect(least.ids).toHaveLength(201);
    expect(least.ids.at(-1)).toBe(EOS);
  });

  test("stop ids and stop strings end it and stay in the ids", async () => {
    const { ids } = await client.generate(ask(PROMPT));
    const byId = await client.generate(ask(PROMPT, { stop_token_ids: [ids[4]!] }));
    expect(byId.ids).toEqual(ids.slice(0, 5));
    expect(byId.completes[0]).toMatchObject({ finish_reason: "stop", matched_token_id: ids[4] });
    // "ated en" lies across two tokens.
    const byText = await client.generate(
      ask(PROMPT, { stop: ["nowhere", "ated en"], include_stop_str_in_output: true }),
    );
    expect(byText.completes[0]).toMatchObject({ finish_reason: "stop", matched_stop_str: "ated en" });
    expect(text(byText.ids)).toContain("ated en");
    expect(text(byText.ids.slice(0, -1))).not.toContain("ated en");
  });
});

describe("constraints are met", () => {
  const answer = async (constraint: Plain) =>
    text((await client.generate(ask(PROMPT, { ...constraint, max_tokens: 200 }))).ids);

  test("json_schema, json_object, choice, regex, structural_tag", async () => {
    const schema = {
      type: "object",
      properties: {
        city: { enum: ["Paris", "Rome"] },
        days: { type: "integer", minimum: 2 },
        tags: { $ref: "#/$defs/tags" },
      },
      required: ["city", "days", "tags"],
      $defs: { tags: { type: "array", items: { type: "string", minLength: 12 }, minItems: 2 } },
    };
    expect(JSON.parse(await answer({ json_schema: JSON.stringify(schema) }))).toEqual({
      city: "Paris",
      days: 2,
      tags: ["simulated...", "simulated..."],
    });
    expect(JSON.parse(await answer({ json_object: true }))).toBeObject();
    expect(["left", "right"]).toContain(await answer({ choice: { choices: ["left", "right"] } }));
    expect(await answer({ regex: "(red|green) [0-9]{3}" })).toMatch(/^(red|green) [0-9]{3}$/);
    const tag = {
      type: "tag",
      begin: "<a>",
      content: { type: "json_schema", json_schema: { type: "boolean" } },
      end: "</a>",
    };
    expect(await answer({ structural_tag: JSON.stringify({ type: "structural_tag", format: tag }) })).toBe(
      "<a>true</a>",
    );
  });
});

describe("refusals", () => {
  const cases: readonly [string, Plain, string][] = [
    ["no tokens", ask([]), "The decoder prompt cannot be empty"],
    ["no input", { request_id: "x" }, "The decoder prompt cannot be empty"],
    ["id past the vocabulary", ask([5, 4_000_000]), "Token id 4000000 is out of vocabulary"],
    ["prompt that fills the context", ask(Array(12_000).fill(7)), "plus the number of requested output tokens"],
    ["prompt over the context", ask(Array(12_001).fill(7)), "longer than the maximum model length of 12000"],
    ["max_tokens 0", ask(PROMPT, { max_tokens: 0 }), "max_tokens must be at least 1, got 0."],
    ["temperature below 0", ask(PROMPT, { temperature: -1 }), "temperature must be non-negative, got -1.0."],
    ["temperature above 2", ask(PROMPT, { temperature: 3 }), "temperature must be in [0, 2], got 3.0."],
    ["top_p above 1", ask(PROMPT, { top_p: 1.5 }), "top_p must be in (0, 1], got 1.5."],
    ["min_p above 1", ask(PROMPT, { min_p: 2 }), "min_p must be in [0, 1], got 2.0."],
    ["frequency_penalty", ask(PROMPT, { frequency_penalty: 5 }), "frequency_penalty must be in [-2, 2], got 5.0."],
    ["presence_penalty", ask(PROMPT, { presence_penalty: -3 }), "presence_penalty must be in [-2, 2], got -3.0."],
    ["repetition_penalty", ask(PROMPT, { repetition_penalty: -1 }), "repetition_penalty must be greater than zero"],
    [
      "min_tokens",
      ask(PROMPT, { min_tokens: 9, max_tokens: 3 }),
      "min_tokens must be less than or equal to max_tokens=3",
    ],
    ["empty stop", ask(PROMPT, { stop: [""] }), "stop cannot contain an empty string."],
    ["greedy n", ask(PROMPT, { n: 2 }), "n must be 1 when using greedy sampling, got 2."],
    [
      "logprobs 21",
      ask(PROMPT, { logprobs: 21 }),
      "Requested sample logprobs of 21, which is greater than max allowed: 20",
    ],
    ["logprobs -1", ask(PROMPT, { logprobs: -1 }), "Requested sample logprobs of 151936"],
    [
      "logit_bias",
      ask(PROMPT, { logit_bias: { 4000000: 1 } }),
      "token_id(s) [4000000] in logit_bias contain out-of-vocab",
    ],
    ["stop_token_ids", ask(PROMPT, { stop_token_ids: [4_000_000] }), "token_id(s) [4000000] in stop_token_ids"],
    ["rank", ask(PROMPT, {}, { data_parallel_rank: 3 }), "data_parallel_rank 3 is out of range [0, 1)."],
    [
      "transfer parameters",
      ask(PROMPT, {}, { kv_transfer_params_json: "[1]" }),
      "kv_transfer_params_json must be a JSON object",
    ],
    [
      "tensor type",
      ask(PROMPT, {}, { mm_inputs: { pixel_values: { dtype: "float64" } } }),
      "Unsupported proto tensor dtype: 'float64'",
    ],
    [
      "pixels",
      ask(PROMPT, {}, { mm_inputs: { pixel_values: { dtype: "float32" } } }),
      "pre-allocated encoder cache size 0",
    ],
    ["schema", ask(PROMPT, { json_schema: "{not json" }), "Invalid JSON grammar specification."],
    ["json_object false", ask(PROMPT, { json_object: false }), "structured_outputs.json_object must be True if set"],
    ["no choices", ask(PROMPT, { choice: {} }), "Choice '[]' cannot be an empty list"],
  ];
  for (const [name, request, details] of cases)
    test(name, async () => {
      const reply = await client.generate(request);
      expect(reply.status).toBe(grpc.status.INVALID_ARGUMENT);
      expect(reply.details).toContain(details);
      expect(reply.chunks).toHaveLength(0);
    });

  test("zeros that mean nothing are accepted, and so are padding ids", async () => {
    const zeros = await client.generate(
      ask(PROMPT, { top_p: 0, repetition_penalty: 0, n: 0, max_tokens: 2, seed: -1 }),
    );
    expect(zeros.status).toBe(0);
    expect((await client.generate(ask([151_900, 151_901], { max_tokens: 2 }))).ids).toHaveLength(2);
    expect((await client.generate(ask(Array(11_999).fill(7), { max_tokens: 5 }))).completes[0]).toMatchObject({
      finish_reason: "length",
    });
  });
});
