/** What a GetLoadsResponse means, and what of its zeros means nothing. */
import { expect, test } from "bun:test";
import { rankLoads } from "../../../src/engines/loads.ts";
import { PROTOS } from "../../../src/engines/protos.ts";
import { protoCodec } from "../../../src/protobuf/codec.ts";
import { dialectPackage } from "../../support/proto-package.ts";

const loads = (dialect: "vllm" | "sglang" | "tokenspeed", tellsUncached: boolean, ranks: Record<string, unknown>[]) =>
  rankLoads(
    protoCodec(PROTOS[dialect]).decode(
      "GetLoadsResponse",
      dialectPackage(dialect).encode("GetLoadsResponse", { timestamp: "now", version: "v", loads: ranks }),
    ),
    tellsUncached,
  );
const FULL = {
  dp_rank: 1,
  num_running_reqs: 3,
  num_waiting_reqs: 2,
  num_total_reqs: 5,
  num_used_tokens: 100,
  max_total_num_tokens: 400,
  token_usage: 0.25,
  gen_throughput: 12.5,
  cache_hit_rate: 0.5,
  utilization: 0.75,
  max_running_requests: 64,
};

test.each(["vllm", "sglang", "tokenspeed"] as const)("%s: every rank, every figure, by its own numbers", (dialect) => {
  const full = {
    rank: 1,
    running: 3,
    waiting: 2,
    waitingUncachedTokens: 600,
    usedTokens: 100,
    capacityTokens: 400,
    tokenUsage: 0.25,
    throughput: 12.5,
    cacheHitRate: 0.5,
    utilization: 0.75,
    maxRunning: 64,
  };
  const told = loads(dialect, true, [{}, { ...FULL, num_waiting_uncached_tokens: 600 }]);
  expect(told).toHaveLength(2);
  expect(told[1]).toEqual(full);
  expect(told[0]).toMatchObject({ rank: 0, running: 0, waiting: 0, waitingUncachedTokens: 0 });
});

test("an old vLLM tells four figures: the rest is not known", () => {
  const [load] = loads("vllm", false, [
    { num_running_reqs: 3, num_waiting_reqs: 2, num_total_reqs: 5, token_usage: 0.25 },
  ]);
  expect(load).toEqual({
    rank: 0,
    running: 3,
    waiting: 2,
    waitingUncachedTokens: undefined,
    usedTokens: undefined,
    capacityTokens: undefined,
    tokenUsage: 0.25,
    throughput: undefined,
    cacheHitRate: undefined,
    utilization: undefined,
    maxRunning: undefined,
  });
});

test("a zero of what waits uncached counts where nothing waits, or from one that tells it", () => {
  const uncached = (tells: boolean, waiting: number) =>
    loads("sglang", tells, [{ ...FULL, num_waiting_reqs: waiting }])[0]!.waitingUncachedTokens;
  expect([uncached(false, 0), uncached(false, 2), uncached(true, 2)]).toEqual([0, undefined, 0]);
});

test("no rank while the engine knows none", () => {
  expect(loads("tokenspeed", false, [])).toEqual([]);
});
