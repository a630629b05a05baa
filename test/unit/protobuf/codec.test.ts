import { describe, expect, test } from "bun:test";
import { commonProto, PROTOS } from "../../../src/engines/protos.ts";
import { protoCodec } from "../../../src/protobuf/codec.ts";
import { WireError } from "../../../src/protobuf/wire-error.ts";
import { type DialectName, dialectPackage } from "../../support/proto-package.ts";

const ours = protoCodec(PROTOS.vllm);
const theirs = dialectPackage("vllm");

const MODEL = {
  model_path: "/models/naïve-模型",
  is_generation: true,
  max_context_length: 4_000_000_000,
  vocab_size: 151_936,
  served_model_name: "m",
  architectures: ["A", "", "B"],
  eos_token_ids: [1, -1, 2_147_483_647],
  pad_token_id: -5,
  default_sampling_params_json: "{}",
};
const CASES: readonly [string, Record<string, unknown>][] = [
  ["HealthCheckResponse", {}],
  ["HealthCheckResponse", { healthy: true, message: "Health" }],
  ["GetModelInfoResponse", {}],
  ["GetModelInfoResponse", MODEL],
  [
    "GetServerInfoResponse",
    {
      last_receive_timestamp: 1.5e9 + 0.25,
      uptime_seconds: 0.1,
      data_parallel_size: 2,
      mm_device_do_normalize: true,
      block_size: 16,
      kv_cache_dtype: "auto",
    },
  ],
  [
    "GetLoadsResponse",
    {
      timestamp: "now",
      dp_rank_count: 2,
      loads: [
        { dp_rank: 0, token_usage: 0.5 },
        { dp_rank: 1, num_running_reqs: 7, num_waiting_uncached_tokens: 9600 },
      ],
    },
  ],
  ["smg.grpc.common.GetTokenizerChunk", { data: new Uint8Array([0, 1, 255]), sha256: "abc" }],
  ["smg.grpc.common.ProfileResponse", { success: true, message: "x" }],
];

describe("control messages against protobufjs", () => {
  for (const [message, value] of CASES) {
    test(`${message} ${JSON.stringify(value).slice(0, 40)} decodes alike`, () => {
      const bytes = theirs.encode(message, value);
      const expected = theirs.decode(message, bytes) as Record<string, unknown>;
      const decoded = ours.decode(message, bytes);
      expect(plain(decoded)).toEqual(plain(expected));
    });

    test(`${message} ${JSON.stringify(value).slice(0, 40)} cut anywhere is an error or a shorter message, never a crash`, () => {
      const bytes = theirs.encode(message, value);
      for (let end = 0; end < bytes.length; end++) {
        try {
          ours.decode(message, bytes.subarray(0, end));
        } catch (error) {
          expect(error).toBeInstanceOf(WireError);
        }
      }
    });
  }

  test("what a newer peer adds is skipped", () => {
    const bytes = Buffer.concat([
      theirs.encode("HealthCheckResponse", { healthy: true }),
      Buffer.from([0xfa, 0x3f, 2, 1, 2, 0xf8, 0x3f, 9]),
    ]);
    expect(ours.decode("HealthCheckResponse", bytes)).toEqual({ healthy: true, message: "" });
  });

  test("requests encode byte for byte", () => {
    const abort = { request_ids: ["a", "ünïque-😀"] };
    expect(Buffer.from(ours.encode("AbortRequest", abort))).toEqual(Buffer.from(theirs.encode("AbortRequest", abort)));
    for (const name of ["HealthCheckRequest", "GetModelInfoRequest", "GetServerInfoRequest"])
      expect(ours.encode(name, {})).toHaveLength(0);
  });

  test("every message of every text is found; without bytes it has the defaults that protobufjs gives it", () => {
    for (const [dialect, text] of Object.entries(PROTOS)) {
      const codec = protoCodec(text);
      const reference = dialectPackage(dialect as DialectName);
      for (const each of [text, commonProto]) {
        for (const name of each.messageNames()) {
          const full = `${each.packageName}.${name}`;
          const empty = codec.decode(full, new Uint8Array(0));
          const expected = reference.decode(full, new Uint8Array(0));
          const set = Object.fromEntries(Object.entries(empty).filter(([, value]) => value !== undefined));
          const theirSet = Object.entries(expected).filter(([, value]) => value !== null);
          expect(plain(set)).toEqual(plain(Object.fromEntries(theirSet)));
        }
      }
    }
  });

  test("maps, enums, oneofs, presence, structs and times, both ways", () => {
    const codec = protoCodec(PROTOS.sglang);
    const reference = dialectPackage("sglang");
    const bytes = codec.encode("GenerateRequest", {
      request_id: "r",
      sampling_params: {
        logit_bias: new Map([
          ["7", -1.5],
          ["40000", 2],
        ]),
        json_schema: "{}",
        max_new_tokens: 0,
        custom_params: { a: [1, null, { b: true }], c: "d" },
      },
      timestamp: 1_700_000_000.5,
      data_parallel_rank: -1,
    });
    expect(reference.decode("GenerateRequest", bytes)).toMatchObject({
      request_id: "r",
      sampling_params: {
        logit_bias: { 7: -1.5, 40000: 2 },
        json_schema: "{}",
        max_new_tokens: 0,
      },
      timestamp: { seconds: 1_700_000_000, nanos: 500_000_000 },
      data_parallel_rank: -1,
    });
    const back = codec.decode("GenerateRequest", bytes);
    expect(back["timestamp"]).toBe(1_700_000_000.5);
    const sampling = back["sampling_params"] as Record<string, unknown>;
    expect(sampling["custom_params"]).toEqual({ a: [1, null, { b: true }], c: "d" });
    expect(sampling["logit_bias"]).toEqual(
      new Map([
        ["7", -1.5],
        ["40000", 2],
      ]),
    );
    expect(sampling["regex"]).toBeUndefined();
    expect(sampling["stream_interval"]).toBeUndefined();
    const trtllm = protoCodec(PROTOS.trtllm);
    const guided = { guide_type: "GUIDE_TYPE_REGEX", guide: "a+" };
    expect(trtllm.decode("GuidedDecodingParams", trtllm.encode("GuidedDecodingParams", guided))).toEqual(guided);
    expect(
      dialectPackage("trtllm").decode("GuidedDecodingParams", trtllm.encode("GuidedDecodingParams", guided)),
    ).toEqual(guided);
  });

  test("of the members of a oneof the last one counts", () => {
    const both = Buffer.concat([
      theirs.encode("GenerateComplete", { matched_token_id: 7 }),
      theirs.encode("GenerateComplete", { matched_stop_str: "x" }),
    ]);
    const decoded = ours.decode("GenerateComplete", both);
    expect([decoded["matched_token_id"], decoded["matched_stop_str"]]).toEqual([undefined, "x"]);
  });

  test("a struct as another writer has it, and one that is nested without end", () => {
    const reference = dialectPackage("sglang");
    const bytes = reference.encode("GetServerInfoResponse", {
      server_args: {
        fields: {
          tp_size: { numberValue: 2 },
          names: { listValue: { values: [{ stringValue: "a" }, { boolValue: false }, { nullValue: "NULL_VALUE" }] } },
          inner: { structValue: { fields: { x: { numberValue: 0.5 } } } },
        },
      },
    });
    expect(protoCodec(PROTOS.sglang).decode("GetServerInfoResponse", bytes)["server_args"]).toEqual({
      tp_size: 2,
      names: ["a", false, null],
      inner: { x: 0.5 },
    });
    let deep = new Uint8Array(0);
    for (let i = 0; i < 200; i++) {
      const value = Buffer.concat([Buffer.from([0x2a]), lengthOf(deep), deep]);
      const entry = Buffer.concat([Buffer.from([0x12]), lengthOf(value), value]);
      deep = new Uint8Array(Buffer.concat([Buffer.from([0x0a]), lengthOf(entry), entry]));
    }
    const nested = Buffer.concat([Buffer.from([0x0a]), lengthOf(deep), deep]);
    expect(() => protoCodec(PROTOS.sglang).decode("GetServerInfoResponse", nested)).toThrow(WireError);
  });
});

function lengthOf({ length }: Uint8Array): Uint8Array {
  return length < 128 ? Uint8Array.of(length) : Uint8Array.of((length & 127) | 128, length >> 7);
}

/** Maps as objects, bytes as lists. */
function plain(value: unknown): unknown {
  if (value instanceof Uint8Array) return [...value];
  if (value instanceof Map) return plain(Object.fromEntries(value));
  if (Array.isArray(value)) return value.map(plain);
  if (typeof value !== "object" || value === null) return value;
  return Object.fromEntries(Object.entries(value).map(([key, item]) => [key, plain(item)]));
}
