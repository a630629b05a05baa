import { expect, test } from "bun:test";
import { PROTOS } from "../../../src/engines/protos.ts";
import { AgeFilter, isIn } from "../../../src/simulator/grpc/protocol-age.ts";
import { dialectPackage } from "../../support/proto-package.ts";

test("releases are compared by their numbers", () => {
  expect(isIn("0.4.14", undefined)).toBe(true);
  expect(isIn("0.4.14", "0.4.9")).toBe(true);
  expect(isIn("0.4.14", "0.4.14")).toBe(true);
  expect(isIn("0.4.14", "0.4.15")).toBe(false);
  expect(isIn("0.4.28", "0.4.28")).toBe(true);
  expect(isIn("0.4.28", "0.10.0")).toBe(false);
});

const vllm = dialectPackage("vllm");
const REQUEST = {
  request_id: "r",
  tokenized: { input_ids: [1, 2, 300] },
  sampling_params: {
    temperature: 0.5,
    logit_bias: { 7: 1.5 },
    grammar_from_first_token: true,
    truncate_prompt_tokens: 4,
  },
  stream: true,
  media_refs: { items: [{ modality: "IMAGE", url: "u" }] },
  kv_transfer_params_json: "{}",
};

test("newer fields go, at whatever depth; all else stays byte for byte", () => {
  const filter = new AgeFilter(PROTOS.vllm, "0.4.14");
  const dropped = new Set<string>();
  const { grammar_from_first_token: _, ...sampling_params } = REQUEST.sampling_params;
  const { media_refs: __, ...older } = { ...REQUEST, sampling_params };
  const stripped = filter.strip("GenerateRequest", vllm.encode("GenerateRequest", REQUEST), dropped);
  expect([...stripped]).toEqual([...vllm.encode("GenerateRequest", older)]);
  expect([...dropped].sort()).toEqual(["grammar_from_first_token", "media_refs"]);
});

test("a message with nothing newer is given back as it is", () => {
  const filter = new AgeFilter(PROTOS.vllm, "0.4.14");
  const abort = vllm.encode("AbortRequest", { request_ids: ["a"] });
  expect(filter.strip("AbortRequest", abort)).toBe(abort);
  const plain = vllm.encode("GenerateRequest", { request_id: "r", sampling_params: { temperature: 1 } });
  const dropped = new Set<string>();
  expect(filter.strip("GenerateRequest", plain, dropped)).toBe(plain);
  expect(dropped.size).toBe(0);
  // Fields that nobody knows are none of its business.
  const unknown = Uint8Array.of(0xc2, 0x3e, 1, 7);
  expect(filter.strip("GenerateRequest", unknown)).toBe(unknown);
});

test("the newest age loses nothing", () => {
  const bytes = vllm.encode("GenerateRequest", REQUEST);
  expect(new AgeFilter(PROTOS.vllm, "0.4.28").strip("GenerateRequest", bytes)).toBe(bytes);
});
