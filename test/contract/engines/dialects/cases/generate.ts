/** What comes back: deltas, Completes, counts, choices, ends. */
import { expect } from "bun:test";
import type { Case, Verdict } from "../case.ts";
import { ANSWER, type Peer, type Seen } from "../peer.ts";

/** Dialects whose engine takes a final EOS off the ids. */
const TRIMS_EOS: ReadonlySet<string> = new Set(["tokenspeed", "trtllm"]);
const EOS = 151_645;

function refusal({ error, chunks }: Seen): Verdict | undefined {
  if (error?.kind !== "invalid") return undefined;
  expect(chunks).toEqual([]);
  return { refused: error.message };
}

/** The scripted answer, whole or in pieces, with or without the EOS behind it. */
function expectAnswer({ dialect }: Peer, seen: Seen, index = 0): void {
  expect(seen.error).toBeUndefined();
  const ids = seen.ids(index);
  expect(ids).toEqual(TRIMS_EOS.has(dialect) ? ANSWER : [...ANSWER, EOS]);
  const finish = seen.finishes.find((each) => each.index === index);
  expect(finish).toMatchObject({ reason: "stop" });
  // A trimmed EOS may be counted.
  expect([ANSWER.length, ANSWER.length + 1]).toContain(finish!.completionTokens);
  expect(finish!.completionTokens).toBeGreaterThanOrEqual(ids.length);
}

export const generateCases: readonly Case[] = [
  {
    id: "stream",
    feature: "streaming: each token once, with right counts",
    async run(peer) {
      const seen = await peer.run("RECITE it");
      expectAnswer(peer, seen);
      expect(seen.chunks.length).toBeGreaterThan(3);
      expect(seen.finishes).toHaveLength(1);
      expect(seen.finishes[0]!.promptTokens).toBe(peer.encode("RECITE it").length);
      return "works";
    },
  },
  {
    id: "whole",
    feature: "not streaming: all tokens at once",
    async run(peer) {
      const seen = await peer.run("RECITE it", {}, { stream: false });
      expectAnswer(peer, seen);
      expect(seen.chunks).toHaveLength(1);
      return "works";
    },
  },
  {
    id: "length",
    feature: "`max_tokens`",
    async run(peer) {
      for (const stream of [true, false]) {
        const seen = await peer.run("RECITE it", { maxTokens: 4 }, { stream });
        expect(seen.ids()).toEqual(ANSWER.slice(0, 4));
        expect(seen.finishes).toMatchObject([{ index: 0, reason: "length", completionTokens: 4 }]);
      }
      return "works";
    },
  },
  {
    id: "no-length",
    feature: "without `max_tokens` an answer may fill the context",
    async run(peer) {
      expectAnswer(peer, await peer.run("RECITE it"));
      const { maxTokens } = peer.last().sampling;
      if (maxTokens === undefined) return "works";
      expect(maxTokens).toBe(peer.facts.contextLength - peer.encode("RECITE it").length);
      return { differs: "the gateway names what the context leaves, as the engine has no default" };
    },
  },
  {
    id: "n-stream",
    feature: "`n` choices, streaming",
    async run(peer) {
      const seen = await peer.run("RECITE it", { n: 3, temperature: 1 });
      const refused = refusal(seen);
      if (refused !== undefined) return refused;
      for (let index = 0; index < 3; index++) expectAnswer(peer, seen, index);
      expect(seen.finishes).toHaveLength(3);
      return "works";
    },
  },
  {
    id: "n-whole",
    feature: "`n` choices, not streaming",
    async run(peer) {
      const seen = await peer.run("RECITE it", { n: 3, temperature: 1 }, { stream: false });
      const refused = refusal(seen);
      if (refused !== undefined) return refused;
      for (let index = 0; index < 3; index++) expectAnswer(peer, seen, index);
      expect(seen.finishes.map(({ index }) => index).sort()).toEqual([0, 1, 2]);
      return "works";
    },
  },
  {
    id: "n-greedy",
    feature: "`n` choices at temperature 0",
    async run(peer) {
      const seen = await peer.run("RECITE it", { n: 2, temperature: 0 });
      const refused = refusal(seen);
      if (refused !== undefined) return refused;
      for (let index = 0; index < 2; index++) expectAnswer(peer, seen, index);
      if (peer.last().sampling.n === 2) return "works";
      return { differs: "the gateway asks for one and gives it out as each" };
    },
  },
  {
    id: "cached-tokens",
    feature: "tokens of the prompt that came from the cache are told",
    async run(peer) {
      const prompt = `${"a long prompt that fills some blocks ".repeat(20)} RECITE it`;
      await peer.run(prompt);
      const seen = await peer.run(prompt);
      const { cachedTokens, promptTokens } = seen.finishes[0]!;
      expect(promptTokens).toBe(peer.encode(prompt).length);
      if (cachedTokens > 0) return "works";
      expect(peer.last().cachedTokens).toBe(0);
      return { differs: "the engine has no prefix cache to tell of" };
    },
  },
  {
    id: "no-complete",
    feature: "a stream that ends before its end is an error",
    async run(peer) {
      const { error, finishes } = await peer.run("LOST END");
      expect([error?.kind, finishes]).toEqual(["failed", []]);
      return "works";
    },
  },
  {
    id: "late-status",
    feature: "a status in mid-stream is an error, without addresses",
    async run(peer) {
      const { error, chunks } = await peer.run("BROKEN");
      expect(chunks.length).toBeGreaterThan(0);
      expect(error).toMatchObject({ kind: "failed", message: "CUDA error at [address]" });
      return "works";
    },
  },
  {
    id: "retry-after",
    feature: "a full engine's pause is passed on",
    async run(peer) {
      const { error } = await peer.run("FULL");
      expect(error).toMatchObject({ kind: "overloaded", message: "queue is full", retryAfterMs: 2000 });
      return "works";
    },
  },
];
