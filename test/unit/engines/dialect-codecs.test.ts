/** The hand-written codecs of SGLang, TokenSpeed, TensorRT-LLM and MLX against protobufjs. */
import { describe, expect, test } from "bun:test";
import { GenerateResponseDecoder } from "../../../src/engines/decode.ts";
import { type Dialect, dialectByName, unknownFacts } from "../../../src/engines/dialects.ts";
import {
  type Constraint,
  EngineError,
  type GenerateRequest,
  type SamplingParams,
} from "../../../src/engines/engine.ts";
import type { EngineFacts } from "../../../src/engines/facts.ts";
import { WireError } from "../../../src/protobuf/wire-error.ts";
import { type DialectName, dialectPackage, type ProtoPackage } from "../../support/proto-package.ts";

type Plain = Record<string, unknown>;
const IDS = [0, 1, 127, 128, 151_643, 4_000_000_000];

function world(name: DialectName, known: Partial<EngineFacts> = {}) {
  const dialect = dialectByName(name) as Dialect;
  const facts = { ...unknownFacts(dialect), ...known };
  const proto = dialectPackage(name);
  const bytes = (sampling: SamplingParams, more: Partial<GenerateRequest> = {}): Uint8Array =>
    dialect.generate.encode(
      { requestId: "réq-1", tokenIds: Uint32Array.from(IDS), sampling, stream: true, ...more },
      facts,
    );
  /** What is on the wire, without defaults. */
  const sent = (sampling: SamplingParams, more: Partial<GenerateRequest> = {}): Plain => {
    const type = proto.root.lookupType(`${proto.packageName}.GenerateRequest`);
    return type.toObject(type.decode(bytes(sampling, more)), { longs: String, enums: String }) as Plain;
  };
  return { dialect, proto, bytes, sent };
}

/** Floats as they are after the wire. */
const f = Math.fround;
const FULL: SamplingParams = {
  temperature: f(0.7),
  topP: f(0.9),
  topK: 40,
  minP: f(0.05),
  frequencyPenalty: f(0.5),
  presencePenalty: f(-0.5),
  repetitionPenalty: f(1.1),
  maxTokens: 300,
  minTokens: 4,
  stop: ["", "END", "ünï"],
  stopTokenIds: [5, 70_000],
  ignoreEos: true,
  n: 3,
  logprobs: 2,
  promptLogprobs: 4,
  logitBias: new Map([
    [7, f(-1.5)],
    [70_000, 2],
  ]),
  includeStopStrInOutput: true,
};
const BIAS = { 7: f(-1.5), 70000: 2 };

describe("SGLang", () => {
  const { sent } = world("sglang", { waitsForReasoning: true });

  test("scalars without presence are all sent, and no prompt logprobs asked for by their absence", () => {
    expect(sent({})).toEqual({
      request_id: "réq-1",
      tokenized: { input_ids: IDS },
      sampling_params: {
        temperature: 1,
        top_p: 1,
        top_k: -1,
        repetition_penalty: 1,
        skip_special_tokens: true,
        spaces_between_special_tokens: true,
        n: 1,
      },
      logprob_start_len: -1,
      stream: true,
    });
    expect((sent({ temperature: 0 })["sampling_params"] as Plain)["temperature"] ?? 0).toBe(0);
  });

  test("every parameter; string stops stay with the gateway", () => {
    expect(sent(FULL, { stream: false })).toEqual({
      request_id: "réq-1",
      tokenized: { input_ids: IDS },
      sampling_params: {
        temperature: f(0.7),
        top_p: f(0.9),
        top_k: 40,
        min_p: f(0.05),
        frequency_penalty: f(0.5),
        presence_penalty: f(-0.5),
        repetition_penalty: f(1.1),
        max_new_tokens: 300,
        min_new_tokens: 4,
        stop_token_ids: [5, 70_000],
        skip_special_tokens: true,
        spaces_between_special_tokens: true,
        n: 3,
        ignore_eos: true,
        no_stop_trim: true,
        logit_bias: BIAS,
      },
      return_logprob: true,
      logprob_start_len: 0,
      top_logprobs_num: 4,
    });
  });

  test("logprobs of the tokens alone", () => {
    expect(sent({ logprobs: 0 })).toMatchObject({ return_logprob: true, logprob_start_len: -1 });
    expect(sent({ logprobs: 5 })).toMatchObject({ return_logprob: true, logprob_start_len: -1, top_logprobs_num: 5 });
  });

  test("the place and the room of a pair", () => {
    const meeting = { kind: "bootstrap", host: "10.0.0.7", port: 8998 } as const;
    expect(sent({}, { handover: { ...meeting, room: 2n ** 31n - 2n } })["disaggregated_params"]).toEqual({
      bootstrap_host: "10.0.0.7",
      bootstrap_port: 8998,
      bootstrap_room: 2 ** 31 - 2,
    });
    expect(sent({}, { handover: { ...meeting, room: 0n } })["disaggregated_params"]).toMatchObject({
      bootstrap_room: 0,
    });
    expect(() => sent({}, { handover: { kind: "transfer", json: "{}" } })).toThrow(EngineError);
  });

  test("that the prompt ends in reasoning is said to those that wait for its end", () => {
    expect(sent({}, { startsInReasoning: true })["require_reasoning"]).toBe(true);
    expect(world("sglang").sent({}, { startsInReasoning: true })["require_reasoning"]).toBeUndefined();
  });
});

describe("TokenSpeed", () => {
  const { sent, bytes } = world("tokenspeed");

  test("what is absent would be the engine's own default: every number is sent", () => {
    expect(sent({})).toEqual({
      request_id: "réq-1",
      tokenized: { input_ids: IDS },
      sampling_params: {
        temperature: 1,
        top_p: 1,
        top_k: -1,
        min_p: 0,
        frequency_penalty: 0,
        presence_penalty: 0,
        repetition_penalty: 1,
        skip_special_tokens: true,
        spaces_between_special_tokens: true,
        n: 1,
      },
      stream: true,
    });
  });

  test("every parameter", () => {
    expect(sent({ ...FULL, seed: 2 ** 40 }, { dataParallelRank: 0, stream: false })).toEqual({
      request_id: "réq-1",
      tokenized: { input_ids: IDS },
      sampling_params: {
        temperature: f(0.7),
        top_p: f(0.9),
        top_k: 40,
        min_p: f(0.05),
        frequency_penalty: f(0.5),
        presence_penalty: f(-0.5),
        repetition_penalty: f(1.1),
        max_new_tokens: 300,
        min_new_tokens: 4,
        stop: ["END", "ünï"],
        stop_token_ids: [5, 70_000],
        ignore_eos: true,
        skip_special_tokens: true,
        spaces_between_special_tokens: true,
        n: 3,
        logit_bias: BIAS,
        no_stop_trim: true,
        sampling_seed: String(2 ** 40),
      },
      return_logprob: true,
      top_logprobs_num: 2,
      data_parallel_rank: 0,
    });
    expect((sent({ seed: -1 })["sampling_params"] as Plain)["sampling_seed"]).toBe("18446744073709551615");
  });

  test("the place and the room of a pair", () => {
    const handover = { kind: "bootstrap", host: "10.0.0.7", port: 8998, room: 2n ** 63n - 1n } as const;
    expect(sent({}, { handover })["kv_bootstrap_info"]).toEqual({
      bootstrap_host: "10.0.0.7",
      bootstrap_port: 8998,
      bootstrap_room: String(2n ** 63n - 1n),
    });
    expect(() => bytes({}, { handover: { kind: "remote", host: "a", port: 1 } })).toThrow(EngineError);
  });

  test("an empty prompt is refused", () => {
    expect(() => bytes({}, { tokenIds: new Uint32Array(0) })).toThrow(EngineError);
  });
});

describe("TensorRT-LLM", () => {
  const { sent, bytes } = world("trtllm", { contextLength: 1000 });

  test("the length is required, the prompt's ids are not wanted back", () => {
    expect(sent({})).toEqual({
      request_id: "réq-1",
      tokenized: { input_token_ids: IDS },
      sampling_config: { beam_width: 1, num_return_sequences: 1, top_p: 1, temperature: 1, repetition_penalty: 1 },
      output_config: { exclude_input_from_output: true },
      max_tokens: 1000 - IDS.length,
      streaming: true,
    });
    expect(world("trtllm").sent({})["max_tokens"]).toBe(2048);
    expect(world("trtllm", { contextLength: 3 }).sent({})["max_tokens"]).toBe(2048);
  });

  test("every parameter", () => {
    const { logitBias: _, ignoreEos: __, ...rest } = FULL;
    expect(sent({ ...rest, seed: 9 }, { stream: false, eosTokenIds: [5, 151_645] })).toEqual({
      request_id: "réq-1",
      tokenized: { input_token_ids: IDS },
      sampling_config: {
        beam_width: 1,
        num_return_sequences: 3,
        top_k: 40,
        top_p: f(0.9),
        seed: "9",
        temperature: f(0.7),
        min_tokens: 4,
        repetition_penalty: f(1.1),
        presence_penalty: f(-0.5),
        frequency_penalty: f(0.5),
        min_p: f(0.05),
      },
      output_config: { logprobs: 2, prompt_logprobs: 4, exclude_input_from_output: true },
      max_tokens: 300,
      stop: ["END", "ünï"],
      stop_token_ids: [5, 70_000, 151_645],
      include_stop_token_in_output: true,
    });
  });

  test("ignoring the EOS, its ids are no stops either", () => {
    const request = sent({ ignoreEos: true }, { eosTokenIds: [151_645] });
    expect([request["ignore_eos"], request["stop_token_ids"]]).toEqual([true, undefined]);
  });

  test("an empty guide would be none, and a request over 32 MiB breaks the connection: both are refused", () => {
    expect(() => bytes({ constraint: { kind: "regex", pattern: "" } })).toThrow(EngineError);
    expect(() => bytes({}, { tokenIds: new Uint32Array(7_000_000).fill(4_000_000_000) })).toThrow(
      "more than the engine takes",
    );
  });
});

describe("MLX", () => {
  const { sent, bytes } = world("mlx", { vocabSize: 4_000_000_001 });

  test("what is absent stays so, where the engine's default is neutral", () => {
    expect(sent({})).toEqual({
      request_id: "réq-1",
      tokenized: { input_ids: IDS },
      sampling_params: { top_p: 1, repetition_penalty: 1 },
      stream: true,
    });
  });

  test("every parameter that it has", () => {
    const { ignoreEos: _, ...rest } = FULL;
    expect(sent({ ...rest, seed: -3 }, { stream: false, eosTokenIds: [151_643] })).toEqual({
      request_id: "réq-1",
      tokenized: { input_ids: IDS },
      sampling_params: {
        temperature: f(0.7),
        top_p: f(0.9),
        top_k: 40,
        min_p: f(0.05),
        repetition_penalty: f(1.1),
        frequency_penalty: f(0.5),
        presence_penalty: f(-0.5),
        logit_bias: BIAS,
        max_tokens: 300,
        stop_token_ids: [5, 70_000, 151_643],
        logprobs: 2,
        seed: -3,
      },
    });
    expect((sent({ logprobs: 0 })["sampling_params"] as Plain)["logprobs"]).toBe(1);
  });

  test.each([
    ["no tokens", {}, { tokenIds: new Uint32Array(0) }],
    ["a token past the vocabulary", {}, { tokenIds: Uint32Array.of(4_000_000_001) }],
    ["no length", { maxTokens: 0 }, {}],
    ["a negative temperature", { temperature: -1 }, {}],
    ["a stop past the vocabulary", { stopTokenIds: [4_000_000_001] }, {}],
    ["a bias past the vocabulary", { logitBias: new Map([[4_000_000_001, 1]]) }, {}],
  ] as const)("the engine checks nothing: %s is refused", (_, sampling, more) => {
    expect(() => bytes(sampling, more)).toThrow(EngineError);
  });
});

describe("constraints", () => {
  const all: readonly [Constraint, Plain, string][] = [
    [{ kind: "json_schema", schema: "{}" }, { json_schema: "{}" }, "JSON_SCHEMA"],
    [{ kind: "json_object" }, { json_schema: '{"type":"object"}' }, "JSON_SCHEMA"],
    [{ kind: "regex", pattern: "a+" }, { regex: "a+" }, "REGEX"],
    [{ kind: "choice", choices: ["a.b", "[c]"] }, { regex: "(a\\.b|\\[c\\])" }, "REGEX"],
    [{ kind: "grammar", grammar: "root ::= x" }, { ebnf_grammar: "root ::= x" }, "EBNF_GRAMMAR"],
    [{ kind: "structural_tag", tag: "{}" }, { structural_tag: "{}" }, "STRUCTURAL_TAG"],
  ];

  test.each(["sglang", "tokenspeed"] as const)("%s", (dialect) => {
    for (const [constraint, fields] of all)
      expect(world(dialect).sent({ constraint })["sampling_params"]).toMatchObject(fields);
  });

  test("TensorRT-LLM", () => {
    for (const [constraint, fields, type] of all)
      expect(world("trtllm").sent({ constraint })["guided_decoding"]).toEqual({
        guide_type: `GUIDE_TYPE_${type}`,
        guide: Object.values(fields)[0],
      });
  });
});

describe("responses", () => {
  const lists = {
    token_logprobs: [f(-0.1), f(-0.2)],
    token_ids: [5, 6],
    top_logprobs: [
      { values: [f(-0.1), -3], token_ids: [5, 9] },
      { values: [], token_ids: [] },
    ],
  };
  const ours = {
    tokenIds: [5, 6],
    logprobs: [f(-0.1), f(-0.2)],
    top: [
      { tokenIds: [5, 9], logprobs: [f(-0.1), -3] },
      { tokenIds: [], logprobs: [] },
    ],
  };
  const prompt = { ...lists, token_logprobs: [{}, { value: f(-0.2) }] };
  const oursPrompt = { ...ours, logprobs: [null, f(-0.2)] };
  const entries = [
    {
      token_id: 5,
      logprob: f(-0.1),
      top_logprobs: [
        { token_id: 5, logprob: f(-0.1) },
        { token_id: 9, logprob: -3 },
      ],
    },
    { token_id: 6, logprob: f(-0.2) },
  ];
  const counts = { prompt_tokens: 300, cached_tokens: 128, completion_tokens: 2 };
  const noise = { spec_accepted_tokens: 3, spec_draft_tokens: 4 };

  const CASES: readonly [DialectName, Plain, Plain, boolean][] = [
    [
      "sglang",
      {
        request_id: "r",
        chunk: {
          ...counts,
          token_ids: IDS,
          output_logprobs: lists,
          input_logprobs: prompt,
          index: 2,
          reasoning_tokens: 7,
          hidden_states: [1, 2],
        },
      },
      {
        request_id: "r",
        complete: {
          ...counts,
          ...noise,
          output_ids: IDS,
          finish_reason: "stop",
          output_logprobs: lists,
          input_logprobs: prompt,
          matched_token_id: 151_645,
          index: 2,
          reasoning_tokens: 1,
        },
      },
      true,
    ],
    [
      "tokenspeed",
      { request_id: "r", chunk: { ...counts, token_ids: IDS, output_logprobs: lists, index: 2, weight_version: "w" } },
      {
        request_id: "r",
        complete: {
          ...counts,
          ...noise,
          output_ids: IDS,
          finish_reason: "stop",
          output_logprobs: lists,
          matched_token_id: 151_645,
          index: 2,
          weight_version: "w",
        },
      },
      false,
    ],
    [
      "trtllm",
      { request_id: "r", chunk: { ...counts, token_ids: IDS, logprobs: entries, sequence_index: 2 } },
      {
        request_id: "r",
        complete: {
          ...counts,
          ...noise,
          output_token_ids: IDS,
          finish_reason: "stop",
          logprobs: entries,
          prompt_logprobs: entries,
          matched_token_id: 151_645,
          sequence_index: 2,
          perf_metrics: { kv_cache_size: 5 },
        },
      },
      true,
    ],
    [
      "mlx",
      { chunk: { ...counts, token_ids: IDS, output_logprobs: lists, index: 2 } },
      {
        complete: {
          ...counts,
          output_ids: IDS,
          finish_reason: "stop",
          output_logprobs: lists,
          matched_stop_token_id: 151_645,
          index: 2,
        },
      },
      false,
    ],
  ];

  test.each(CASES)(
    "%s: a chunk and a Complete as protobufjs writes them",
    (name, chunkMessage, completeMessage, hasPrompt) => {
      const { proto, dialect } = world(name);
      const decoder = new GenerateResponseDecoder(dialect.generate.layout);
      const { chunk, complete } = decoder;
      const expectChunk = () => {
        expect([...chunk.tokenIds.subarray(0, chunk.count)]).toEqual(IDS);
        expect([chunk.index, chunk.promptTokens, chunk.cachedTokens]).toEqual([2, 300, 128]);
        expect(chunk.outputLogprobs).toEqual(ours);
      };
      expect(decoder.decode(encoded(proto, chunkMessage))).toBe("chunk");
      expectChunk();
      expect(decoder.decode(encoded(proto, completeMessage))).toBe("complete");
      expectChunk();
      expect(complete).toEqual({
        finishReason: "stop",
        completionTokens: 2,
        matchedTokenId: 151_645,
        matchedStop: undefined,
        handover: undefined,
      });
      if (hasPrompt) expect(chunk.promptLogprobs).toEqual(name === "trtllm" ? ours : oursPrompt);
      else expect(chunk.promptLogprobs).toBeUndefined();
      // Nothing of it is left for the next.
      expect(decoder.decode(encoded(proto, { complete: {} }))).toBe("complete");
      expect([chunk.count, chunk.index, chunk.promptTokens, chunk.outputLogprobs, chunk.promptLogprobs]).toEqual([
        0,
        0,
        0,
        undefined,
        undefined,
      ]);
      expect(complete).toEqual({
        finishReason: "",
        completionTokens: 0,
        matchedTokenId: undefined,
        matchedStop: undefined,
        handover: undefined,
      });
    },
  );

  test.each(CASES)("%s: cut anywhere it is an error or nothing", (name, chunkMessage, completeMessage) => {
    const { proto, dialect } = world(name);
    const decoder = new GenerateResponseDecoder(dialect.generate.layout);
    for (const message of [chunkMessage, completeMessage]) {
      const whole = encoded(proto, message);
      for (let length = 1; length < whole.length; length++) {
        try {
          expect(decoder.decode(whole.subarray(0, length))).toBe("unknown");
        } catch (error) {
          expect(error).toBeInstanceOf(WireError);
        }
      }
    }
  });

  test.each(["sglang", "tokenspeed", "trtllm"] as const)("%s: a matched stop string", (name) => {
    const { proto, dialect } = world(name);
    const decoder = new GenerateResponseDecoder(dialect.generate.layout);
    decoder.decode(encoded(proto, { complete: { matched_stop_str: "END", finish_reason: "stop" } }));
    expect(decoder.complete).toMatchObject({ matchedStop: "END", matchedTokenId: undefined });
  });
});

const encoded = (proto: ProtoPackage, message: Plain): Uint8Array => proto.encode("GenerateResponse", message);
