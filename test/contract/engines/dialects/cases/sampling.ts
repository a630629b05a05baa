/** What of the sampling arrives, as the engine understood it. */
import { expect } from "bun:test";
import type { SamplingParams } from "../../../../../src/engines/engine.ts";
import type { Case, Verdict } from "../case.ts";
import type { Peer } from "../peer.ts";

/** Runs with the sampling; the engine must have seen `expected`, or never have got the request. */
async function arrives(peer: Peer, sampling: SamplingParams, expected: Record<string, unknown>): Promise<Verdict> {
  const before = peer.simulator.stats().received;
  const { error } = await peer.run("RECITE it", sampling);
  if (error?.kind === "invalid") {
    expect(peer.simulator.stats().received).toBe(before);
    return { refused: error.message };
  }
  expect(error).toBeUndefined();
  expect(peer.last().sampling).toMatchObject(expected);
  return "works";
}

function seeded(seed: number, feature: string, id: string): Case {
  return {
    id,
    feature,
    async run(peer) {
      const before = peer.simulator.stats().received;
      const { error } = await peer.run("RECITE it", { seed });
      if (error?.kind === "invalid") {
        expect(peer.simulator.stats().received).toBe(before);
        return { refused: error.message };
      }
      const got = peer.last().sampling.seed;
      expect(got).toBeDefined();
      if (got === seed) return "works";
      if (got === Number(BigInt.asUintN(64, BigInt(seed)))) return { differs: "as the unsigned number of its 64 bits" };
      expect((await peer.run("RECITE it", { seed: seed + 1 })).error).toBeUndefined();
      expect(peer.last().sampling.seed).not.toBe(got);
      return { differs: "folded to the wire's 32 bits; different seeds stay different" };
    },
  };
}

export const samplingCases: readonly Case[] = [
  {
    id: "neutral",
    feature: "what a request leaves out is neutral",
    async run(peer) {
      const neutral = {
        temperature: 1,
        topP: 1,
        minP: 0,
        frequencyPenalty: 0,
        presencePenalty: 0,
        repetitionPenalty: 1,
      };
      const verdict = await arrives(
        peer,
        {},
        { ...neutral, n: peer.dialect === "mlx" ? 1 : 1, minTokens: 0, logitBias: [] },
      );
      expect(peer.last().sampling.topK).toBeLessThan(1);
      return verdict;
    },
  },
  {
    id: "greedy",
    feature: "temperature 0",
    run: (peer) => arrives(peer, { temperature: 0 }, { temperature: 0 }),
  },
  {
    id: "numbers",
    feature: "`temperature`, `top_p`, `top_k`, `min_p`, penalties",
    run(peer) {
      const numbers = {
        temperature: 0.7,
        topP: 0.9,
        topK: 40,
        minP: 0.05,
        frequencyPenalty: 0.25,
        presencePenalty: -0.5,
        repetitionPenalty: 1.1,
      };
      return arrives(peer, numbers, numbers);
    },
  },
  seeded(12_345, "`seed`", "seed"),
  seeded(-7, "a negative `seed`", "seed-negative"),
  seeded(2 ** 40 + 3, "a `seed` over 32 bits", "seed-large"),
  {
    id: "logit-bias",
    feature: "`logit_bias`",
    run(peer) {
      const bias: [number, number][] = [
        [5, -100],
        [70_000, 2.5],
      ];
      return arrives(peer, { logitBias: new Map(bias) }, { logitBias: bias });
    },
  },
  {
    id: "rank",
    feature: "a pin to a data-parallel rank",
    async run(peer) {
      const before = peer.simulator.stats().received;
      const { error } = await peer.run("RECITE it", {}, { dataParallelRank: 0 });
      if (error?.kind === "invalid") {
        expect(peer.simulator.stats().received).toBe(before);
        return { refused: error.message };
      }
      expect(error).toBeUndefined();
      expect(peer.last().extra["data_parallel_rank"]).toBe(0);
      return "works";
    },
  },
  {
    id: "empty-prompt",
    feature: "a prompt without tokens is refused",
    async run(peer) {
      const { error } = await peer.run([]);
      expect(error?.kind).toBe("invalid");
      return "works";
    },
  },
  {
    id: "past-vocabulary",
    feature: "a token id past the vocabulary is refused",
    async run(peer) {
      const { error } = await peer.run([5, peer.facts.vocabSize]);
      expect(error?.kind).toBe("invalid");
      return "works";
    },
  },
];
