/** The hand-written codec of the vLLM dialect against protobufjs. */
import { describe, expect, test } from "bun:test";
import vllmText from "../../../proto/vllm_engine.proto" with { type: "text" };
import { bestRows, GenerateResponseDecoder } from "../../../src/engines/decode.ts";
import {
  type Constraint,
  EngineError,
  type GenerateRequest,
  type Handover,
  type SamplingParams,
} from "../../../src/engines/engine.ts";
import { encodeGenerateRequest } from "../../../src/engines/vllm/encode.ts";
import { vllmGenerate } from "../../../src/engines/vllm/rules.ts";
import { WireError } from "../../../src/protobuf/wire-error.ts";
import { lazyProtoPackage } from "../../support/proto-package.ts";

const { root } = lazyProtoPackage("vllm.grpc.engine", vllmText);
const RequestType = root.lookupType("vllm.grpc.engine.GenerateRequest");
const ResponseType = root.lookupType("vllm.grpc.engine.GenerateResponse");

/** A small generator of repeatable pseudo-random numbers (xorshift32). */
function randomness(seed: number) {
  let state = seed;
  const next = (): number => {
    state ^= state << 13;
    state ^= state >>> 17;
    state ^= state << 5;
    return state >>> 0;
  };
  return {
    below: (n: number): number => next() % n,
    chance: (): boolean => next() % 2 === 0,
    /** Numbers of every length on the wire. */
    uint32: (): number => next() >>> (next() % 32),
    float: (): number => Math.fround((next() / 2 ** 32) * 4 - 2),
    text: (): string => ["", "a", "stop", "ünï", "思考🙂", "x".repeat(300)][next() % 6]!,
  };
}
type Randomness = ReturnType<typeof randomness>;

function randomConstraint(random: Randomness): [Constraint, Record<string, unknown>] {
  const text = random.text();
  const all: [Constraint, Record<string, unknown>][] = [
    [{ kind: "json_schema", schema: text }, { json_schema: text }],
    [{ kind: "json_object" }, { json_schema: '{"type":"object"}' }],
    [{ kind: "regex", pattern: text }, { regex: text }],
    [{ kind: "grammar", grammar: text }, { grammar: text }],
    [{ kind: "structural_tag", tag: text }, { structural_tag: text }],
    [{ kind: "choice", choices: [text, "b"] }, { choice: { choices: [text, "b"] } }],
  ];
  return all[random.below(all.length)]!;
}

function randomHandover(random: Randomness): [Handover | undefined, Record<string, unknown>] {
  const host = `10.0.0.${random.below(255)}`;
  const port = 1 + random.below(65_535);
  const json = `{"do_remote_prefill":true,"id":"${random.text()}"}`;
  const all: [Handover | undefined, Record<string, unknown>][] = [
    [undefined, {}],
    [{ kind: "transfer", json }, { kv_transfer_params_json: json }],
    [{ kind: "remote", host, port }, { kv_transfer_params: { remote_host: host, remote_port: port } }],
  ];
  return all[random.below(all.length)]!;
}

/** A request in our terms and the same in the terms of the proto. Members that proto3 leaves out when 0 are never 0 here. */
function randomRequest(random: Randomness): [GenerateRequest, Record<string, unknown>] {
  const sampling: { -readonly [K in keyof SamplingParams]: SamplingParams[K] } = {};
  const wire: Record<string, unknown> = {};
  const set = <K extends keyof SamplingParams>(key: K, name: string, value: NonNullable<SamplingParams[K]>): void => {
    if (!random.chance()) return;
    sampling[key] = value;
    wire[name] = value;
  };
  wire["top_p"] = 1;
  wire["repetition_penalty"] = 1;
  wire["skip_special_tokens"] = true;
  wire["spaces_between_special_tokens"] = true;
  wire["n"] = 1;
  set("temperature", "temperature", random.float() + 2);
  set("topP", "top_p", Math.fround(0.5 + random.below(40) / 100));
  set("topK", "top_k", 1 + random.below(1000));
  set("minP", "min_p", Math.fround(0.25));
  set("frequencyPenalty", "frequency_penalty", random.float() || 1);
  set("presencePenalty", "presence_penalty", random.float() || 1);
  set("repetitionPenalty", "repetition_penalty", Math.fround(1.2));
  set("maxTokens", "max_tokens", random.uint32());
  set("minTokens", "min_tokens", 1 + random.below(100));
  set("stop", "stop", ["end", `é${random.below(9)}`]);
  set("stopTokenIds", "stop_token_ids", [random.uint32(), 0, random.uint32()]);
  set("ignoreEos", "ignore_eos", true);
  set("n", "n", 1 + random.below(200));
  set("seed", "seed", random.below(2) === 0 ? -random.below(1000) - 1 : random.below(0x7fffffff));
  set("includeStopStrInOutput", "include_stop_str_in_output", true);
  if (random.chance()) {
    sampling.skipSpecialTokens = false;
    delete wire["skip_special_tokens"];
  }
  if (random.chance()) {
    const rows = random.below(25);
    sampling.logprobs = rows;
    wire["logprobs"] = rows === 0 ? 0 : Math.min(20, rows + 1);
    sampling.promptLogprobs = rows;
    wire["prompt_logprobs"] = wire["logprobs"];
  }
  if (random.chance()) {
    const bias = Array.from({ length: random.below(5) }, (_, i) => [i * 70_000, random.float()] as const);
    sampling.logitBias = new Map(bias);
    wire["logit_bias"] = Object.fromEntries(bias);
  }
  if (random.chance()) {
    const [constraint, fields] = randomConstraint(random);
    sampling.constraint = constraint;
    Object.assign(wire, fields);
  }
  const ids = Uint32Array.from({ length: random.below(3) === 0 ? 0 : random.below(3000) }, () => random.uint32());
  const stream = random.chance();
  const rank = random.chance() ? random.below(8) : undefined;
  const requestId = random.text();
  const [handover, handoverFields] = randomHandover(random);
  return [
    {
      requestId,
      tokenIds: ids,
      sampling,
      stream,
      ...(rank === undefined ? {} : { dataParallelRank: rank }),
      ...(handover === undefined ? {} : { handover }),
    },
    {
      ...(requestId === "" ? {} : { request_id: requestId }),
      tokenized: { input_ids: [...ids] },
      sampling_params: wire,
      ...(stream ? { stream } : {}),
      ...(rank === undefined ? {} : { data_parallel_rank: rank }),
      ...handoverFields,
    },
  ];
}

test("300 random requests are byte for byte what protobufjs writes", () => {
  const random = randomness(12345);
  for (let i = 0; i < 300; i++) {
    const [request, wire] = randomRequest(random);
    const expected = RequestType.encode(RequestType.fromObject(wire)).finish();
    const bytes = encodeGenerateRequest(request);
    if (Buffer.compare(bytes, expected) !== 0)
      expect(RequestType.toObject(RequestType.decode(bytes))).toEqual(
        RequestType.toObject(RequestType.decode(expected)),
      );
    expect(Buffer.compare(bytes, expected)).toBe(0);
    expect(bytes.buffer.byteLength).toBe(bytes.length);
  }
});

test("values are cut to what the engine takes", () => {
  const sampling = (params: SamplingParams): Record<string, unknown> => {
    const bytes = encodeGenerateRequest({
      requestId: "r",
      tokenIds: Uint32Array.of(1),
      sampling: params,
      stream: true,
    });
    return (RequestType.toObject(RequestType.decode(bytes)) as Record<string, Record<string, unknown>>)[
      "sampling_params"
    ]!;
  };
  expect(sampling({ seed: 0x7fffffff })["seed"]).toBe(0x7fffffff);
  expect(sampling({ seed: -5 })["seed"]).toBe(-5);
  // The wire has 32 bits: larger seeds are folded, and stay different.
  const folded = [2 ** 31, 2 ** 32, 2 ** 40, 2 ** 40 + 1, -(2 ** 40), 2 ** 53].map(
    (seed) => sampling({ seed })["seed"],
  );
  expect(new Set(folded).size).toBe(folded.length);
  expect(sampling({ stop: ["", "x"] })["stop"]).toEqual(["x"]);
  expect(sampling({ logprobs: 20 })["logprobs"]).toBe(20);
  expect(sampling({ logprobs: 0 })["logprobs"]).toBe(0);
  expect(sampling({})["logprobs"]).toBeUndefined();
  expect(sampling({ temperature: 0 })["temperature"]).toBe(0);
  expect(sampling({})["temperature"]).toBeUndefined();
  expect(sampling({ topK: 0 })["top_k"]).toBeUndefined();
});

function randomLogprobs(random: Randomness, prompt: boolean): Record<string, unknown> {
  const positions = random.below(6);
  const rows = random.below(4);
  return {
    token_logprobs: Array.from({ length: positions }, (_, i) =>
      prompt ? (i === 0 ? {} : { value: random.float() }) : random.float(),
    ),
    token_ids: Array.from({ length: positions }, () => random.uint32()),
    top_logprobs: Array.from({ length: positions }, () => ({
      values: Array.from({ length: rows }, () => random.float()),
      token_ids: Array.from({ length: rows }, () => random.uint32()),
    })),
  };
}

// biome-ignore lint/suspicious/noExplicitAny: the reference is read by field name
const asOurs = (message: any): unknown =>
  message === null || message === undefined
    ? undefined
    : {
        tokenIds: message.token_ids,
        // biome-ignore lint/suspicious/noExplicitAny: as above
        logprobs: message.token_logprobs.map((v: any) => (typeof v === "number" ? v : (v.value ?? null))),
        // biome-ignore lint/suspicious/noExplicitAny: as above
        top: message.top_logprobs.map((row: any) => ({ tokenIds: row.token_ids, logprobs: row.values })),
      };

test("300 random responses are read as protobufjs reads them, by one reused decoder", () => {
  const random = randomness(777);
  const decoder = new GenerateResponseDecoder(vllmGenerate.layout);
  for (let i = 0; i < 300; i++) {
    const streaming = random.chance();
    const ids = Array.from({ length: random.below(4) === 0 ? random.below(5000) : random.below(4) }, () =>
      random.uint32(),
    );
    const shared = {
      prompt_tokens: random.uint32(),
      completion_tokens: random.uint32(),
      cached_tokens: random.uint32(),
      index: random.below(300),
      ...(random.chance() ? { output_logprobs: randomLogprobs(random, false) } : {}),
      ...(random.chance() ? { input_logprobs: randomLogprobs(random, true) } : {}),
    };
    const [handover, handoverFields] = randomHandover(random);
    const value = streaming
      ? { chunk: { ...shared, token_ids: ids } }
      : {
          complete: {
            ...shared,
            output_ids: ids,
            finish_reason: ["stop", "length", "abort", "", "répétition"][random.below(5)],
            ...[{}, { matched_token_id: random.uint32() }, { matched_stop_str: random.text() }][random.below(3)],
            ...handoverFields,
            // Fields that the decoder does not know must not disturb it.
            spec_accepted_tokens: 9,
          },
        };
    const bytes = ResponseType.encode(ResponseType.fromObject(value)).finish();
    // biome-ignore lint/suspicious/noExplicitAny: the reference is read by field name
    const reference = ResponseType.toObject(ResponseType.decode(bytes), { arrays: true, defaults: true }) as any;
    expect(decoder.decode(bytes)).toBe(streaming ? "chunk" : "complete");
    const { chunk, complete } = decoder;
    const body = streaming ? reference.chunk : reference.complete;
    expect([...chunk.tokenIds.subarray(0, chunk.count)]).toEqual(ids);
    expect(chunk.index).toBe(body.index);
    expect(chunk.promptTokens).toBe(body.prompt_tokens);
    expect(chunk.cachedTokens).toBe(body.cached_tokens);
    expect(chunk.outputLogprobs).toEqual(asOurs(body.output_logprobs) as never);
    expect(chunk.promptLogprobs).toEqual(asOurs(body.input_logprobs) as never);
    if (!streaming) {
      expect(complete.finishReason).toBe(body.finish_reason);
      expect(complete.matchedTokenId).toBe(body.matched_token_id);
      expect(complete.matchedStop).toBe(body.matched_stop_str);
      expect(complete.handover).toEqual(handover);
    }
  }
});

test("what a prefill tells of its cache: the JSON rather than the place, and nothing of what says nothing", () => {
  const decoder = new GenerateResponseDecoder(vllmGenerate.layout);
  const told = (fields: Record<string, unknown>) => {
    decoder.decode(ResponseType.encode(ResponseType.fromObject({ complete: fields })).finish());
    return decoder.complete.handover;
  };
  const place = { remote_host: "10.0.0.7", remote_port: 14_579 };
  expect(told({ kv_transfer_params: place, kv_transfer_params_json: "{}" })).toEqual({ kind: "transfer", json: "{}" });
  expect(told({ kv_transfer_params: place, kv_transfer_params_json: "" })).toEqual({
    kind: "remote",
    host: "10.0.0.7",
    port: 14_579,
  });
  expect(told({ kv_transfer_params: { remote_host: "10.0.0.7" } })).toBeUndefined();
  expect(told({})).toBeUndefined();
});

test("a room to meet in is nothing to vLLM", () => {
  const handover: Handover = { kind: "bootstrap", host: "a", port: 1, room: 1n };
  const request = { requestId: "r", tokenIds: Uint32Array.of(1), sampling: {}, stream: true, handover };
  expect(() => encodeGenerateRequest(request)).toThrow(EngineError);
});

describe("bytes from elsewhere", () => {
  const decoder = new GenerateResponseDecoder(vllmGenerate.layout);
  const whole = ResponseType.encode(
    ResponseType.fromObject({
      chunk: {
        token_ids: [1, 300, 70_000],
        output_logprobs: { token_logprobs: [-1], token_ids: [1], top_logprobs: [{ values: [-1], token_ids: [5] }] },
      },
    }),
  ).finish();

  test("every cut of a message is refused or empty, never misread as a whole one", () => {
    for (let length = 1; length < whole.length; length++)
      expect(() => decoder.decode(whole.subarray(0, length))).toThrow(WireError);
    expect(decoder.decode(whole.subarray(0, 0))).toBe("unknown");
  });

  test("random bytes throw nothing but WireError, and end", () => {
    const random = randomness(99);
    for (let i = 0; i < 3000; i++) {
      const bytes = Uint8Array.from({ length: random.below(60) }, () => random.below(256));
      if (random.chance() && bytes.length > 2) {
        bytes[0] = random.chance() ? 0x0a : 0x12;
        bytes[1] = bytes.length - 2;
      }
      try {
        decoder.decode(bytes);
      } catch (error) {
        expect(error).toBeInstanceOf(WireError);
      }
    }
  });

  test("ids that are not packed are read too", () => {
    expect(decoder.decode(Uint8Array.of(0x0a, 5, 0x08, 5, 0x08, 0xac, 2))).toBe("chunk");
    expect([...decoder.chunk.tokenIds.subarray(0, decoder.chunk.count)]).toEqual([5, 300]);
  });
});

describe("best rows of top logprobs", () => {
  const row = (tokenIds: number[], logprobs: number[]) => ({
    tokenIds: [1],
    logprobs: [-9],
    top: [{ tokenIds, logprobs }],
  });

  test("the sampled token's row goes when it is not among the best", () => {
    expect(bestRows(row([7, 1, 2], [-9, -1, -2]), 2).top[0]).toEqual({ tokenIds: [1, 2], logprobs: [-1, -2] });
  });

  test("the sampled token's row stays, in its place, when it is among the best", () => {
    expect(bestRows(row([7, 1, 2], [-1.5, -1, -2]), 2).top[0]).toEqual({ tokenIds: [1, 7], logprobs: [-1, -1.5] });
  });

  test("fewer rows than asked for", () => {
    expect(bestRows(row([7], [-1]), 5).top[0]).toEqual({ tokenIds: [7], logprobs: [-1] });
  });
});
