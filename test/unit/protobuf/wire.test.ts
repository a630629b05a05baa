import { expect, test } from "bun:test";
import { join } from "node:path";
import protobuf from "protobufjs";
import { WireReader } from "../../../src/protobuf/reader.ts";
import { WireError } from "../../../src/protobuf/wire-error.ts";
import { WireWriter } from "../../../src/protobuf/writer.ts";
import { decodeGenerateRequest } from "../../../src/simulator/dialects/vllm/request.ts";

const root = new protobuf.Root();
root.resolvePath = (_origin, target) => join(import.meta.dir, "../../../proto", target.split("/").at(-1) ?? target);
root.loadSync("vllm_engine.proto", { keepCase: true });
const Request = root.lookupType("vllm.grpc.engine.GenerateRequest");

test("a GenerateRequest as protobufjs writes it", () => {
  const inputIds = Array.from({ length: 3000 }, (_, i) => (i * 2_654_435) % 4_294_967_295);
  const bytes = Request.encode(
    Request.fromObject({
      request_id: "réq",
      tokenized: { original_text: "ignored", input_ids: inputIds },
      sampling_params: {
        temperature: 0.7,
        top_k: 20,
        max_tokens: 0,
        stop: ["a", "ü"],
        stop_token_ids: [1, 300],
        ignore_eos: true,
        n: 2,
        choice: { choices: ["x", "y"] },
        logprobs: -1,
        seed: -5,
        logit_bias: { 7: -1.5, 4000000: 2 },
        truncate_prompt_tokens: 4,
      },
      stream: true,
      kv_transfer_params_json: "{}",
      data_parallel_rank: -1,
    }),
  ).finish();
  const request = decodeGenerateRequest(bytes);
  expect(request).toMatchObject({
    requestId: "réq",
    stream: true,
    kvTransferParamsJson: "{}",
    dataParallelRank: -1,
    text: undefined,
    sampling: {
      temperature: 0.7,
      topP: 1,
      topK: 20,
      repetitionPenalty: 1,
      maxTokens: 0,
      stop: ["a", "ü"],
      stopTokenIds: [1, 300],
      ignoreEos: true,
      n: 2,
      constraint: { kind: "choice", choices: ["x", "y"] },
      logprobs: -1,
      seed: -5,
      logitBias: [
        [7, -1.5],
        [4_000_000, 2],
      ],
      truncatePromptTokens: 4,
    },
  });
  expect([...(request.inputIds ?? [])]).toEqual(inputIds);
  expect(request.sampling).not.toHaveProperty("promptLogprobs");
});

test("broken messages throw WireError, however they are cut", () => {
  const bytes = Request.encode(
    Request.fromObject({ request_id: "abc", tokenized: { input_ids: [1, 2, 300] } }),
  ).finish();
  let thrown = 0;
  for (let length = 1; length < bytes.length; length++) {
    try {
      decodeGenerateRequest(bytes.subarray(0, length));
    } catch (error) {
      expect(error).toBeInstanceOf(WireError);
      thrown++;
    }
  }
  expect(thrown).toBeGreaterThan(bytes.length / 2);
});

test("nested messages of any length get their length in front", () => {
  for (const size of [0, 1, 127, 128, 129, 20_000, 3_000_000]) {
    const writer = new WireWriter();
    const outer = writer.begin(3);
    const inner = writer.begin(1);
    for (let i = 0; i < size; i++) writer.varint(i & 0x7f);
    writer.end(inner);
    writer.uint(2, 2 ** 40 + size);
    writer.end(outer);
    const reader = new WireReader(writer.written());
    expect(reader.next()).toBe(true);
    expect(reader.field).toBe(3);
    const message = reader.message();
    message.next();
    const data = message.block();
    expect(data.length).toBe(size);
    expect(data.every((byte, i) => byte === (i & 0x7f))).toBe(true);
    message.next();
    expect(message.varint64(false)).toBe(2 ** 40 + size);
    expect(reader.next()).toBe(false);
  }
});
