/** What ends an answer before its length. */
import { expect } from "bun:test";
import type { Case } from "../case.ts";
import { ANSWER } from "../peer.ts";

const STOP = ANSWER[4]!;

export const stopCases: readonly Case[] = [
  {
    id: "stop-token",
    feature: "`stop_token_ids`",
    async run(peer) {
      const seen = await peer.run("RECITE it", { stopTokenIds: [STOP] });
      const trimmed = seen.ids().length === 4;
      expect(seen.ids()).toEqual(ANSWER.slice(0, trimmed ? 4 : 5));
      expect(seen.finishes).toMatchObject([{ reason: "stop" }]);
      const { matchedTokenId } = seen.finishes[0]!;
      if (matchedTokenId !== undefined) expect(matchedTokenId).toBe(STOP);
      if (!trimmed) {
        expect(matchedTokenId).toBe(STOP);
        return "works";
      }
      return {
        differs: `the engine leaves the stop token out${matchedTokenId === undefined ? ", and does not name it" : ""}`,
      };
    },
  },
  {
    id: "stop-string",
    feature: "`stop`",
    async run(peer) {
      const seen = await peer.run("COUNT", { stop: ["three"], n: 1, maxTokens: 50 });
      expect(seen.error).toBeUndefined();
      const all = (await peer.run("COUNT", { maxTokens: 50 })).ids().length;
      if (seen.ids().length === all) {
        expect(peer.simulator.requests().at(-2)!.sampling.stop).toEqual([]);
        return { differs: "the gateway finds the stop and ends the generation" };
      }
      expect(seen.ids().length).toBeLessThan(all);
      expect(seen.finishes).toMatchObject([{ reason: "stop" }]);
      return "works";
    },
  },
  {
    id: "other-eos",
    feature: "an EOS that only generation_config.json names ends the answer",
    async run(peer) {
      const eosTokenIds = [151_645, 151_643];
      const seen = await peer.run("OTHER END", {}, { eosTokenIds });
      expect(seen.error).toBeUndefined();
      expect(seen.ids().slice(0, 2)).toEqual([1000, 1007]);
      expect(seen.finishes).toMatchObject([{ reason: "stop" }]);
      if (peer.last().sampling.stopTokenIds.length === 0) return "works";
      expect([...peer.last().sampling.stopTokenIds].sort()).toEqual([...eosTokenIds].sort());
      return { differs: "the gateway sends the model's EOS ids as `stop_token_ids`" };
    },
  },
  {
    id: "ignore-eos",
    feature: "`ignore_eos`",
    async run(peer) {
      const seen = await peer.run("tell me", { ignoreEos: true, maxTokens: 200 }, { eosTokenIds: [151_645] });
      expect(seen.ids()).toHaveLength(200);
      expect(seen.finishes).toMatchObject([{ reason: "length" }]);
      expect(peer.last().sampling).toMatchObject({ ignoreEos: true, stopTokenIds: [] });
      return "works";
    },
  },
  {
    id: "min-tokens",
    feature: "`min_tokens`",
    async run(peer) {
      const seen = await peer.run("RECITE it", { minTokens: 3, maxTokens: 20 });
      if (seen.error?.kind === "invalid") return { refused: seen.error.message };
      expect(peer.last().sampling.minTokens).toBe(3);
      return "works";
    },
  },
];
