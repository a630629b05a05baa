/** Prefill at one engine and decode at another, against simulated engines that check the hand-over. */
import { describe, expect, setDefaultTimeout, test } from "bun:test";
import type { EngineError } from "../../../src/engines/engine.ts";
import type { Simulator } from "../../../src/simulator/simulator.ts";
import { until } from "../simulator/harness.ts";
import { ANSWER, type Kind, nameOf, type Pairs, withPairs } from "./pairs-world.ts";

setDefaultTimeout(30_000);

const KINDS: readonly Kind[] = (["0.4.14", "0.4.28"] as const).flatMap((protocol) => [
  { dialect: "sglang", protocol },
  { dialect: "tokenspeed", protocol },
  { dialect: "vllm", protocol, kvConnector: "nixl" },
  { dialect: "vllm", protocol, kvConnector: "mooncake" },
]);
const NEW = KINDS.filter(({ protocol }) => protocol === "0.4.28");
const each = (kinds: readonly Kind[]) => kinds.map((kind) => [nameOf(kind), kind] as const);

const words = (count: number) => Array.from({ length: count }, (_, i) => `word${i}`).join(" ");
/** Some hundred tokens, of which blocks can be cached. */
const PROMPT = `RECITE ${words(100)}`;
const handovers = (simulators: readonly Simulator[]) => simulators.map((simulator) => simulator.stats().handover);

describe.each(each(KINDS))("%s", (_, kind) => {
  test("an answer comes from the engine that decodes, after the other has prefilled, streamed and whole", () =>
    withPairs(kind, { prefill: { speed: "instant" }, decode: { speed: "instant" } }, async (pairs) => {
      for (const stream of [true, false]) {
        const { error, ids, finishes } = await pairs.run(PROMPT, { stream });
        expect(error).toBeUndefined();
        expect(ids).toEqual(ANSWER);
        expect(finishes).toMatchObject([{ index: 0, reason: "stop" }]);
        await pairs.quiet();
      }
      expect(handovers(pairs.prefills)).toMatchObject([{ given: 2, failed: 0, expired: 0, dropped: 0 }]);
      expect(handovers(pairs.decodes)).toMatchObject([{ taken: 2, failed: 0, recomputed: 0 }]);
      expect(pairs.states()).toEqual(["closed", "closed"]);
    }));

  test("the cached tokens that are shown are those of the prefill", () =>
    withPairs(kind, { prefill: { speed: "instant" }, decode: { speed: "instant" } }, async (pairs) => {
      const first = await pairs.run(PROMPT);
      const again = await pairs.run(PROMPT);
      const prefilled = pairs.prefills[0]!.requests().map(({ cachedTokens }) => cachedTokens);
      expect(prefilled[0]).toBe(0);
      expect(prefilled[1]).toBeGreaterThan(100);
      expect([first, again].map(({ finishes }) => finishes[0]!.cachedTokens)).toEqual(prefilled);
      expect(again.finishes[0]!.promptTokens).toBeGreaterThan(prefilled[1]!);
    }));
});

describe.each(each(NEW))("%s", (_, kind) => {
  const isRelay = kind.dialect === "vllm";
  /** For what fails before it has fetched the blocks: then these stay until their lease is over. */
  const prefill = { kvLeaseSecs: 1 };

  /** A request in a phase of its life, at both engines. */
  const PHASES = {
    "waits at the engine that prefills": {
      options: {},
      prompt: PROMPT,
      before: ({ prefills: [prefill] }: Pairs) => prefill!.setFault({ contains: "RECITE", delay_ms: 20_000 }),
      isThere: ({ prefills: [prefill] }: Pairs) => prefill!.stats().open === 1,
    },
    "is prefilled": {
      options: { prefill: { prefillTps: 200 } },
      prompt: PROMPT,
      before: () => {},
      isThere: ({ prefills: [prefill] }: Pairs) => prefill!.stats().engine.running === 1,
    },
    "goes over": {
      options: {},
      prompt: PROMPT,
      before: ({ decodes: [decode] }: Pairs) =>
        decode!.setFault({ contains: "RECITE", fault: { kind: "transfer-slow", ms: 20_000 } }),
      isThere: ({ prefills: [prefill], decodes: [decode] }: Pairs) =>
        decode!.stats().open === 1 && prefill!.stats().pairing!.offers === 1 && prefill!.stats().engine.running === 0,
    },
    "is decoded": {
      options: {},
      prompt: "SLOWLY",
      before: () => {},
      isThere: ({ decodes: [decode] }: Pairs) => decode!.stats().tokensSent > 3,
    },
  };

  test.each(Object.entries(PHASES))("a client that leaves while the request %s frees both engines", (_name, phase) =>
    withPairs(kind, phase.options, async (pairs) => {
      phase.before(pairs);
      const { call, done } = pairs.start(phase.prompt);
      await until(() => phase.isThere(pairs), "the phase");
      call.cancel();
      expect((await done).error?.kind).toBe("cancelled");
      await pairs.quiet();
      expect(handovers(pairs.prefills)).toMatchObject([{ expired: 0 }]);
      expect(pairs.states()).toEqual(["closed", "closed"]);
      for (const simulator of [...pairs.prefills, ...pairs.decodes]) simulator.clearFaults();
      expect((await pairs.run(PROMPT)).ids).toEqual(ANSWER);
    }),
  );

  test("a client that leaves at any moment leaves nothing behind", () =>
    withPairs(kind, { prefill: { prefillTps: 20_000 }, decode: { decodeBaseMs: 2 } }, async (pairs) => {
      for (let ms = 0; ms < 40; ms += 2) {
        const { call, done } = pairs.start(`${PROMPT} ${ms}`);
        await Bun.sleep(ms);
        call.cancel();
        await done;
      }
      await pairs.quiet();
      expect(handovers(pairs.prefills)).toMatchObject([{ expired: 0 }]);
      expect(pairs.states()).toEqual(["closed", "closed"]);
    }));

  test.each(["prefill", "decode"] as const)("the breaker of the engine that fails counts, and no other: %s", (leg) =>
    withPairs(kind, { prefill }, async (pairs) => {
      const [failing] = leg === "prefill" ? pairs.prefills : pairs.decodes;
      failing!.setFault({ contains: "RECITE", fault: { kind: "status", code: "INTERNAL", message: "boom" } });
      const { error, chunks } = await pairs.run(PROMPT);
      expect([error?.kind, error?.message, chunks]).toEqual(["failed", "boom", []]);
      await pairs.quiet();
      expect(pairs.states()).toEqual(leg === "prefill" ? ["open", "closed"] : ["closed", "open"]);
    }),
  );

  test.each(["prefill", "decode"] as const)("another pair takes over before anything has come: %s", (leg) =>
    withPairs(kind, { prefills: 2, decodes: 2, prefill }, async (pairs) => {
      const engines = leg === "prefill" ? pairs.prefills : pairs.decodes;
      for (const engine of engines)
        engine.setFault({
          contains: "RECITE",
          times: 1,
          fault: { kind: "status", code: "UNAVAILABLE", message: "no" },
        });
      engines[1]!.clearFaults();
      for (let i = 0; i < 4; i++) {
        const { error, ids } = await pairs.run(`${PROMPT} ${i}`);
        expect([error, ids]).toEqual([undefined, ANSWER]);
      }
      await pairs.quiet();
      const failed = pairs.states().filter((state) => state !== "closed");
      expect(failed.length).toBeLessThanOrEqual(1);
      const at = (leg === "prefill" ? 0 : 2) + 1;
      expect(pairs.states().filter((_, i) => i !== at - 1)).toEqual(["closed", "closed", "closed"]);
    }),
  );

  test("an engine that dies while it decodes is its own fault", () =>
    withPairs(kind, {}, async (pairs) => {
      const { done, came } = pairs.start("SLOWLY");
      await until(() => came() > 3, "some tokens");
      await pairs.decodes[0]!.restart();
      expect((await done).error?.kind).toBe("unavailable");
      expect(pairs.states()).toEqual(["closed", "open"]);
      expect(pairs.board.bookings()).toBe(0);
    }));

  test("an engine that dies when it has prefilled harms nobody", () =>
    withPairs(kind, {}, async (pairs) => {
      const { done, came } = pairs.start("SLOWLY", { sampling: { maxTokens: 30 } });
      await until(() => came() > 3, "some tokens");
      await pairs.prefills[0]!.restart();
      const { error, ids } = await done;
      expect([error, ids.length, pairs.states()]).toEqual([undefined, 30, ["closed", "closed"]]);
      await pairs.quiet();
    }));

  test("a KV that does not get over is a failure of the one that fetches", () =>
    withPairs(kind, {}, async (pairs) => {
      const fault = { kind: "transfer-fail", message: "link down" };
      pairs.decodes[0]!.setFault({ contains: "RECITE", fault });
      const { error } = await pairs.run(PROMPT);
      expect(error).toMatchObject({ kind: "failed", message: expect.stringContaining("link down") });
      await pairs.quiet();
      if (isRelay) expect(pairs.states()).toEqual(["closed", "open"]);
      else expect(pairs.states().filter((state) => state === "open")).toHaveLength(1); // both hear of it: the first to tell counts
    }));

  test("many at once find their partners", () =>
    withPairs(kind, { prefills: 2, decodes: 2, prefill: { speed: "20" }, decode: { speed: "20" } }, async (pairs) => {
      const answers = await Promise.all(
        Array.from({ length: 40 }, (_, i) => pairs.run(`RECITE ${i} ${words(20 + i)}`)),
      );
      for (const { error, ids } of answers) expect([error, ids]).toEqual([undefined, ANSWER]);
      await pairs.quiet();
      const given = handovers(pairs.prefills).map((counts) => counts.given);
      expect(given.reduce((a, b) => a + b)).toBe(40);
      for (const count of given) expect(count).toBeGreaterThan(0);
      for (const { taken } of handovers(pairs.decodes)) expect(taken).toBeGreaterThan(0);
    }));

  test("several choices", () =>
    withPairs(kind, { prefill: { speed: "instant" }, decode: { speed: "instant" } }, async (pairs) => {
      const { error, finishes } = await pairs.run(PROMPT, { sampling: { n: 2, temperature: 1 } });
      expect([error, finishes.map(({ index }) => index).toSorted()]).toEqual([undefined, [0, 1]]);
      await pairs.quiet();
    }));
});

describe("where the engines meet", () => {
  test.each(["sglang", "tokenspeed"] as const)("a wrong port is an error of theirs, and both are free: %s", (dialect) =>
    withPairs(
      { dialect, protocol: "0.4.28" },
      {
        prefill: { handoverTimeoutSecs: 0.3 },
        decode: { handoverTimeoutSecs: 0.3 },
        worker: ({ role }) => (role === "prefill" ? { bootstrapPort: 1 } : {}),
      },
      async (pairs) => {
        const { error, chunks } = await pairs.run(PROMPT);
        expect([error?.kind, chunks]).toEqual(["failed", []]);
        await pairs.quiet();
      },
    ),
  );

  test.each(["sglang", "tokenspeed"] as const)("halves in two rooms do not find each other: %s", (dialect) =>
    withPairs(
      { dialect, protocol: "0.4.28" },
      { prefill: { handoverTimeoutSecs: 0.3 }, decode: { handoverTimeoutSecs: 0.3 } },
      async ({ view, prefills, quiet }) => {
        const { prefill, decode } = view.leasePair(view.model("m"));
        const errors = [prefill, decode].map(({ engine }, i) => {
          const handover = { kind: "bootstrap", host: "127.0.0.1", port: prefills[0]!.bootstrapPort! } as const;
          return new Promise((resolve) => {
            engine.generate(
              {
                requestId: "r",
                tokenIds: Uint32Array.of(1, 2),
                sampling: {},
                stream: true,
                handover: { ...handover, room: BigInt(i) },
              },
              { onChunk() {}, onFinish() {}, onIdle() {}, onEnd: resolve },
            );
          });
        });
        expect((await Promise.all(errors)).map((error) => (error as EngineError | undefined)?.kind)).toEqual([
          "failed",
          "failed",
        ]);
        for (const place of [prefill, decode]) place.done("neutral");
        await quiet();
      },
    ),
  );

  test("SGLang's engine tells its port", () =>
    withPairs({ dialect: "sglang", protocol: "0.4.28" }, {}, async ({ workers, prefills }) => {
      expect(workers.map(({ bootstrapPort }) => bootstrapPort)).toEqual([undefined, undefined]);
      expect(workers[0]!.labels!["disaggregation_bootstrap_port"]).toBe(String(prefills[0]!.bootstrapPort));
      expect(workers.map(({ facts }) => facts!.role)).toEqual(["prefill", "decode"]);
    }));

  test("vLLM's engines tell their roles by their connectors", () =>
    withPairs({ dialect: "vllm", protocol: "0.4.28", kvConnector: "nixl" }, {}, async ({ workers }) => {
      expect(workers.map(({ facts }) => facts!.role)).toEqual(["prefill", "decode"]);
    }));

  test("Mooncake whose engine is not known gets along with its address", () =>
    withPairs(
      { dialect: "vllm", protocol: "0.4.28", kvConnector: "mooncake" },
      { worker: ({ labels }) => ({ labels: { ...labels, kv_engine_id: "" } }) },
      async (pairs) => {
        expect((await pairs.run(PROMPT)).ids).toEqual(ANSWER);
        await pairs.quiet();
        expect(handovers(pairs.decodes)).toMatchObject([{ taken: 1, recomputed: 0 }]);
      },
    ));
});

describe("data-parallel ranks of a pair", () => {
  test.each(each(NEW))("%s: each half is at the rank that was chosen", (_, kind) =>
    withPairs(
      kind,
      { prefill: { dataParallelSize: 4 }, decode: { dataParallelSize: 4 }, worker: () => ({ rank: 3 }) },
      async (pairs) => {
        for (let i = 0; i < 3; i++) expect((await pairs.run(`${PROMPT} ${i}`)).ids).toEqual(ANSWER);
        await pairs.quiet();
        expect(pairs.prefills[0]!.requests().map(({ rank }) => rank)).toEqual([3, 3, 3]);
        // SGLang's servicer passes no rank on: only the room tells, and that to the one that prefills
        if (kind.dialect !== "sglang") expect(pairs.decodes[0]!.requests().map(({ rank }) => rank)).toEqual([3, 3, 3]);
        expect(handovers(pairs.decodes)).toMatchObject([{ taken: 3, failed: 0, recomputed: 0 }]);
      },
    ),
  );
});

test("logprobs of the prompt come from the one that prefills", async () => {
  for (const kind of NEW) {
    if (kind.dialect === "tokenspeed") continue; // it has none
    await withPairs(kind, { prefill: { speed: "instant" }, decode: { speed: "instant" } }, async (pairs) => {
      const { chunks, ids, error } = await pairs.run("RECITE it", { sampling: { promptLogprobs: 1, logprobs: 1 } });
      expect([error, ids]).toEqual([undefined, ANSWER]);
      expect(chunks[0]!.prompt?.tokenIds.length).toBeGreaterThan(1);
      expect(chunks.slice(1).every(({ prompt }) => prompt === undefined)).toBe(true);
    });
  }
});
