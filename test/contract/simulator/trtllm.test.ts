import { expect, test } from "bun:test";
import * as grpc from "@grpc/grpc-js";
import type { PlainMessage } from "../../support/proto-package.ts";
import { idsOf, statusOf, withDialect } from "./dialect-client.ts";
import { type Plain, until } from "./harness.ts";

const EOS = 151_645;
const PROMPT = [9707, 14990, 1052];

const ask = (request: Plain = {}, sampling: Plain = {}, output: Plain = {}): Plain => ({
  request_id: `n-${Math.random().toString(36).slice(2)}`,
  tokenized: { input_token_ids: PROMPT },
  sampling_config: { beam_width: 1, ...sampling },
  output_config: { exclude_input_from_output: true, ...output },
  max_tokens: 100,
  streaming: true,
  ...request,
});

test("all tokens again in Complete; the stop is stripped unless asked for", () =>
  withDialect("trtllm", { outputTokens: 4, tokensPerMessage: 2 }, async (client) => {
    const { chunks, completes, order } = await client.generate(ask());
    expect(order).toEqual(["chunk", "chunk", "complete"]);
    const ids = idsOf(chunks, 0, "sequence_index");
    expect(ids).toHaveLength(4);
    expect(completes[0]).toMatchObject({
      output_token_ids: ids,
      finish_reason: "stop",
      completion_tokens: 5,
      sequence_index: 0,
    });
    // EOS is not told as a stop.
    expect(completes[0]).not.toHaveProperty("matched_token_id", EOS);
    const kept = await client.generate(ask({ include_stop_token_in_output: true, streaming: false }));
    expect(kept.completes[0]).toMatchObject({ output_token_ids: [...ids, EOS] });
    const stopped = await client.generate(ask({ stop_token_ids: [1079] }));
    expect(stopped.completes[0]).toMatchObject({ output_token_ids: [40], matched_token_id: 1079 });
    const text = await client.generate(ask({ stop: [" simulated"] }));
    expect(text.completes[0]).toMatchObject({ finish_reason: "stop", matched_stop_str: " simulated" });
  }));

test("samples: chunks as they come, all Completes together at the end", () =>
  withDialect("trtllm", {}, async (client) => {
    const { order, completes, chunks } = await client.generate(ask({ max_tokens: 60 }, { num_return_sequences: 3 }));
    expect(order.slice(-3)).toEqual(["complete", "complete", "complete"]);
    expect(order.slice(0, -3).includes("complete")).toBe(false);
    expect(completes.map((complete) => complete["sequence_index"])).toEqual([0, 1, 2]);
    for (const complete of completes)
      expect(complete["output_token_ids"]).toEqual(
        idsOf(chunks, complete["sequence_index"] as number, "sequence_index"),
      );
  }));

test("logprobs: a message a token with all entries of its row; those of the prompt only in Complete", () =>
  withDialect("trtllm", {}, async (client) => {
    const { chunks, completes } = await client.generate(
      ask({ max_tokens: 2 }, {}, { logprobs: 2, prompt_logprobs: 1 }),
    );
    const [entry] = chunks[0]!["logprobs"] as PlainMessage[];
    expect(entry).toMatchObject({ token_id: (chunks[0]!["token_ids"] as number[])[0], top_logprobs: [{}, {}] });
    expect(completes[0]!["logprobs"]).toEqual([
      ...(chunks[0]!["logprobs"] as unknown[]),
      ...(chunks[1]!["logprobs"] as unknown[]),
    ]);
    expect((completes[0]!["prompt_logprobs"] as PlainMessage[]).map(({ token_id }) => token_id)).toEqual(PROMPT);
    const none = await client.generate(ask({ max_tokens: 1 }));
    expect(none.chunks[0]!["logprobs"]).toEqual([]);
  }));

test("guides are read, an empty one is none; what is wrong is refused", () =>
  withDialect("trtllm", {}, async (client, engine) => {
    const guided = async (guided_decoding: Plain) => {
      await client.generate(ask({ guided_decoding, max_tokens: 5 }));
      return engine.requests().at(-1)!.sampling.constraint;
    };
    expect(await guided({ guide_type: "GUIDE_TYPE_JSON_SCHEMA", guide: '{"type":"object"}' })).toMatchObject({
      kind: "json_schema",
    });
    expect(await guided({ guide_type: "GUIDE_TYPE_REGEX", guide: "[a-z]+" })).toMatchObject({ kind: "regex" });
    expect(await guided({ guide_type: "GUIDE_TYPE_EBNF_GRAMMAR", guide: "root ::= 1" })).toMatchObject({
      kind: "grammar",
    });
    expect(await guided({ guide_type: "GUIDE_TYPE_JSON", guide: "" })).toBeUndefined();
    for (const bad of [
      ask({ max_tokens: undefined }),
      ask({ tokenized: undefined }),
      ask({}, { temperature: -1 }),
      ask({}, { beam_width: 4 }),
      ask({ guided_decoding: { guide_type: "GUIDE_TYPE_REGEX", guide: "(" } }),
    ])
      expect((await client.generate(bad)).status).toBe(grpc.status.INVALID_ARGUMENT);
  }));

test("an Abort ends the stream; health is a text; info is sparse; some calls are declared only; no grpc.health.v1", () =>
  withDialect("trtllm", { speed: "1", decodeBaseMs: 2 }, async (client, engine) => {
    const endless = client.generate(ask({ request_id: "x", max_tokens: 5000, ignore_eos: true }));
    await until(() => engine.stats().tokensSent > 2, "it runs");
    expect(await client.call("Abort", { request_id: "x" })).toMatchObject({ success: true });
    expect(await endless).toMatchObject({ status: 0, completes: [] });
    expect(await client.call("Abort", { request_id: "x" })).toMatchObject({ success: false });
    expect(await client.call("HealthCheck")).toEqual({ status: "OK" });
    expect(await client.call("GetModelInfo")).toMatchObject({
      model_id: "collie-demo",
      max_seq_len: 40_960,
      hidden_size: 0,
    });
    expect(await client.call("GetServerInfo")).toMatchObject({ backend: "tensorrt-llm", world_size: 1 });
    expect(await statusOf(client.call("Embed"))).toMatchObject({ code: grpc.status.UNIMPLEMENTED });
    const check = new Promise<number>((resolve) => {
      const raw = (bytes: Buffer) => bytes;
      client.channel.makeUnaryRequest("/grpc.health.v1.Health/Check", raw, raw, Buffer.alloc(0), (error) =>
        resolve(error?.code ?? 0),
      );
    });
    expect(await check).toBe(grpc.status.UNIMPLEMENTED);
    engine.setAlive(false);
    expect((await client.call("HealthCheck"))["status"]).not.toBe("OK");
  }));
