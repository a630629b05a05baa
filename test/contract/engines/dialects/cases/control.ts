/** Health, loads, cache, profiles, files, vectors. */
import { expect } from "bun:test";
import { until } from "../../channels.ts";
import { type Case, failureOf, type Verdict } from "../case.ts";

/** A call that the engine has not is told as unimplemented. */
async function offered(call: () => Promise<Verdict>): Promise<Verdict> {
  try {
    return await call();
  } catch (error) {
    const { kind } = error as { kind?: string };
    if (kind !== "unimplemented") throw error;
    return { refused: "the engine has no such call" };
  }
}

export const controlCases: readonly Case[] = [
  {
    id: "health",
    feature: "the engine's own health check",
    async run(peer) {
      const healthy = await peer.engine.health(3000);
      expect(healthy.healthy).toBe(true);
      peer.simulator.setAlive(false);
      try {
        const dead = await peer.engine.health(3000);
        expect([dead.healthy, dead.message === ""]).toEqual([false, false]);
      } finally {
        peer.simulator.setAlive(true);
      }
      return peer.dialect === "sglang" || peer.dialect === "tokenspeed" ? { differs: "it generates a token" } : "works";
    },
  },
  {
    id: "health-service",
    feature: "`grpc.health.v1`",
    async run(peer) {
      const said = await peer.engine.serving(3000);
      if (said === "unimplemented") return { refused: "the engine has no such service" };
      expect(said).toBe("serving");
      return "works";
    },
  },
  {
    id: "model-info",
    feature: "model, context and vocabulary are told",
    async run(peer) {
      const info = await peer.engine.modelInfo(3000);
      expect(info.servedModelName).not.toBe("");
      expect(info.vocabSize).toBe(151_936);
      expect(info.contextLength).toBeGreaterThan(1000);
      expect(info.contextLength).toBe(peer.facts.contextLength);
      expect(info.isGeneration).toBe(true);
      if (info.eosTokenIds.length > 0) return "works";
      return { differs: "without EOS ids, which come from the model's files" };
    },
  },
  {
    id: "server-info",
    feature: "requests that run at once are told",
    async run(peer) {
      expect(peer.facts.dataParallelSize).toBe(1);
      return peer.facts.maxRunningRequests > 0 ? "works" : { differs: "not told" };
    },
  },
  {
    id: "tokenizer",
    feature: "the tokenizer's files",
    run: (peer) =>
      offered(async () => {
        const files = await peer.engine.tokenizerBundle(20_000);
        expect(files.has("tokenizer.json")).toBe(true);
        return files.has("config.json") ? "works" : { differs: "without config.json and generation_config.json" };
      }),
  },
  {
    id: "loads",
    feature: "loads",
    run: (peer) =>
      offered(async () => {
        const [rank, ...others] = await peer.engine.loads(3000);
        expect(others).toEqual([]);
        expect(rank).toMatchObject({ rank: 0, running: 0, waiting: 0, waitingUncachedTokens: 0 });
        let busy = rank;
        await peer.run(
          "SLOWLY",
          { maxTokens: 300 },
          {
            afterChunks: 2,
            during: (call) =>
              void peer.engine.loads(3000).then((loads) => {
                busy = loads[0];
                call.cancel();
              }),
          },
        );
        await until(() => peer.simulator.stats().open === 0);
        expect(busy).toMatchObject({ rank: 0, running: 1, waiting: 0 });
        expect(busy!.tokenUsage).toBeGreaterThan(0);
        return busy!.capacityTokens === undefined
          ? { differs: "requests and usage, but neither capacity nor speed" }
          : "works";
      }),
  },
  {
    id: "flush",
    feature: "the cache can be flushed",
    run: (peer) =>
      offered(async () => {
        const outcome = await peer.engine.flushCache(0, 3000);
        expect(outcome.success).toBe(true);
        expect(outcome.message).not.toBe("");
        return "works";
      }),
  },
  {
    id: "profile",
    feature: "profiles",
    run: (peer) =>
      offered(async () => {
        const started = await peer.engine.startProfile({}, 3000).catch((error: { kind: string }) => error);
        if ("kind" in started && started.kind === "unimplemented") throw started;
        if ("kind" in started) {
          expect(started.kind).toBe("failed");
          return { differs: "only where the engine was started with its profiler" };
        }
        expect(started.success).toBe(true);
        expect((await peer.engine.stopProfile(3000)).success).toBe(true);
        return "works";
      }),
  },
  {
    id: "embed-refused",
    feature: "vectors of a model that generates are refused",
    async run(peer) {
      const ask = { requestId: crypto.randomUUID(), tokenIds: peer.encode("a text") };
      const { kind } = await failureOf(peer.engine.embed(ask, new AbortController().signal));
      expect(kind).toBe("invalid");
      return "works";
    },
  },
];
