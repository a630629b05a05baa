/** Logprobs of tokens and of the prompt. */
import { expect } from "bun:test";
import type { TokenLogprobs } from "../../../../../src/engines/engine.ts";
import type { Case } from "../case.ts";
import type { Seen } from "../peer.ts";

/** All logprobs of a choice, which must fit its ids, with at most `rows` alternatives each, highest first. */
function checked(seen: Seen, rows: number): TokenLogprobs {
  expect(seen.error).toBeUndefined();
  const parts = seen.chunks.map(({ logprobs }) => logprobs).filter((part) => part !== undefined);
  const joined = {
    tokenIds: parts.flatMap(({ tokenIds }) => tokenIds),
    logprobs: parts.flatMap(({ logprobs }) => logprobs),
    top: parts.flatMap(({ top }) => top),
  };
  expect(joined.tokenIds).toEqual(seen.ids());
  expect(joined.logprobs.every((value) => typeof value === "number" && value <= 0)).toBe(true);
  for (const row of joined.top) {
    expect(row.tokenIds.length).toBeLessThanOrEqual(rows);
    expect(row.tokenIds).toHaveLength(row.logprobs.length);
    expect([...row.logprobs].sort((a, b) => b - a)).toEqual([...row.logprobs]);
  }
  return joined;
}

export const logprobCases: readonly Case[] = [
  {
    id: "logprobs",
    feature: "`logprobs` with alternatives, highest first",
    async run(peer) {
      for (const stream of [true, false]) {
        const { top } = checked(await peer.run("RECITE it", { logprobs: 3 }, { stream }), 3);
        expect(top.every((row) => row.tokenIds.length === 3)).toBe(true);
      }
      return "works";
    },
  },
  {
    id: "logprobs-0",
    feature: "`logprobs` of the tokens alone",
    async run(peer) {
      const { top } = checked(await peer.run("RECITE it", { logprobs: 0 }), 0);
      expect(top.every((row) => row.tokenIds.length === 0)).toBe(true);
      return "works";
    },
  },
  {
    id: "logprobs-none",
    feature: "no logprobs unless asked for",
    async run(peer) {
      const { chunks } = await peer.run("RECITE it");
      expect(
        chunks.every(({ logprobs, promptLogprobs }) => logprobs === undefined && promptLogprobs === undefined),
      ).toBe(true);
      return "works";
    },
  },
  {
    id: "logprobs-n",
    feature: "`logprobs` of several choices",
    async run(peer) {
      const seen = await peer.run("RECITE it", { logprobs: 1, n: 2, temperature: 1 });
      if (seen.error?.kind === "invalid") return { refused: seen.error.message };
      for (const index of [0, 1]) {
        const ids = seen.chunks
          .filter((chunk) => chunk.index === index)
          .flatMap(({ logprobs }) => logprobs?.tokenIds ?? []);
        expect(ids).toEqual(seen.ids(index));
      }
      return "works";
    },
  },
  {
    id: "prompt-logprobs",
    feature: "`prompt_logprobs`",
    async run(peer) {
      const prompt = [...peer.encode("RECITE it")];
      let late = false;
      for (const stream of [true, false]) {
        const seen = await peer.run(prompt, { promptLogprobs: 2 }, { stream });
        if (seen.error?.kind === "invalid") return { refused: seen.error.message };
        const told = seen.chunks.filter(({ promptLogprobs }) => promptLogprobs !== undefined);
        expect(told).toHaveLength(1);
        const { tokenIds, logprobs, top } = told[0]!.promptLogprobs!;
        expect(tokenIds).toEqual(prompt);
        expect(logprobs[0]).toBeNull();
        expect(logprobs.slice(1).every((value) => typeof value === "number")).toBe(true);
        expect(top).toHaveLength(prompt.length);
        expect(top.slice(1).every((row) => row.tokenIds.length === 2)).toBe(true);
        if (seen.chunks[0] !== told[0]) late = true;
        expect(seen.chunks.every(({ logprobs: own }) => own === undefined)).toBe(true);
      }
      return late ? { differs: "they come with the end of the answer" } : "works";
    },
  },
];
