import { describe, expect, test } from "bun:test";
import commonText from "../../../proto/common.proto" with { type: "text" };
import vllmText from "../../../proto/vllm_engine.proto" with { type: "text" };
import { protoPackage } from "../../../src/engines/proto.ts";
import { WireError } from "../../../src/protobuf/wire-error.ts";
import { lazyProtoPackage } from "../../support/proto-package.ts";

const ours = protoPackage("vllm.grpc.engine", vllmText);
const theirs = lazyProtoPackage("vllm.grpc.engine", vllmText);

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
      expect(JSON.parse(JSON.stringify(decoded))).toEqual(
        JSON.parse(JSON.stringify(expected, (_, v) => (v instanceof Uint8Array ? new Uint8Array(v) : v))),
      );
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

  test("every message of both texts is found, with each of its plain fields", () => {
    for (const [text, prefix] of [
      [vllmText, "vllm.grpc.engine"],
      [commonText, "smg.grpc.common"],
    ] as const) {
      for (const [, name] of text.matchAll(/^message (\w+)/gm)) {
        const full = `${prefix}.${name}`;
        const plain = theirs.root
          .lookupType(full)
          .fieldsArray.filter((field) => !field.map)
          .map((field) => field.name);
        expect(Object.keys(ours.decode(full, new Uint8Array(0))).sort()).toEqual(plain.sort());
      }
    }
  });
});
