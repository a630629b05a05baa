/** Pairs that have failed where nobody can tell which half did it. */
import { describe, expect, test } from "bun:test";
import { EngineError } from "../../../../src/engines/engine.ts";
import type { WorkerEntry } from "../../../../src/fleet/snapshot.ts";
import { type WorldOptions, world } from "./world.ts";

const BROKEN = new EngineError("failed", "KV transfer failed");
const BREAKER = { failures: 1, rate: 0, successes: 1, timeoutMs: 60_000, windowMs: 60_000 };
const HANDOVER = { kind: "transfer", json: '{"remote_block_ids":[1]}' } as const;

type Side = Pick<WorkerEntry, "role" | "priority">;
const P: Side = { role: "prefill" };
const D: Side = { role: "decode" };

function fleetOf(dialect: string, sides: readonly Side[], options: WorldOptions = {}) {
  const workers = sides.map((side) => ({ dialect, labels: { kv_connector: "NixlConnector" }, ...side }));
  const w = world(sides.length, { rules: { initialBackoffMs: 0 }, ...options, workers });
  const states = () => w.workers.map(({ slot }) => w.board.breaker.state(slot));
  /** Whom the tries so far went to. */
  const pairs = () => w.asked.map(w.workerOf);
  return { ...w, states, pairs };
}

describe("engines that follow each other: a cache that did not get over", () => {
  const prefilled = (w: ReturnType<typeof fleetOf>) =>
    w.asked.at(-1)!.finish({ completionTokens: 1, handover: HANDOVER }).end();
  const lost = (w: ReturnType<typeof fleetOf>) => {
    prefilled(w);
    w.asked.at(-1)!.end(BROKEN);
  };
  const answered = (w: ReturnType<typeof fleetOf>) => {
    prefilled(w);
    w.asked.at(-1)!.chunk([7]).finish({ completionTokens: 1 }).end();
  };

  test("another decodes; when that fails, too, the next pair is without the one that prefilled", () => {
    const w = fleetOf("vllm", [{ ...P, priority: 90 }, P, D, D]);
    const { seen } = w.generate();
    lost(w);
    lost(w);
    answered(w);
    const [, decode, , other] = w.pairs();
    expect(w.pairs().filter((_, at) => at % 2 === 0)).toEqual([0, 0, 1]);
    expect(other).toBe(5 - decode!);
    expect([seen.ends, w.board.bookings()]).toEqual([[undefined], 0]);
  });

  test.each([
    ["prefill", [P, D, D], 2],
    ["decode", [P, P, D], 2],
  ] as const)("with one worker to %s the other half is replaced until all have had their turn", (_, sides, tries) => {
    const w = fleetOf("vllm", sides);
    const { seen } = w.generate();
    for (let i = 0; i < tries; i++) lost(w);
    expect(new Set(w.pairs()).size).toBe(3);
    expect([seen.ends, w.asked.length, w.board.bookings()]).toEqual([[BROKEN], 2 * tries, 0]);
  });

  test("is charged to who has told of it, and to nobody else when the other does well with another", () => {
    const one = fleetOf("vllm", [P, D], { breaker: BREAKER });
    one.generate();
    lost(one);
    expect(one.states()).toEqual(["closed", "open"]);
    const decodes = fleetOf("vllm", [P, D, D], { breaker: BREAKER });
    decodes.generate();
    lost(decodes);
    answered(decodes);
    expect(decodes.states().filter((state) => state === "open")).toHaveLength(1);
    expect(decodes.states()[0]).toBe("closed");
  });

  test("the one that prefilled has done well when the other begins, and not before", () => {
    const rules = { failures: 3, rate: 0.6, successes: 1, timeoutMs: 60_000, windowMs: 60_000 };
    const w = fleetOf("vllm", [{ ...P, priority: 90 }, P, D, D, D, D], { breaker: rules });
    for (let i = 0; i < 2; i++) {
      w.generate();
      lost(w);
      lost(w);
      answered(w);
    }
    // four caches of it were not to be had, and none was
    expect(w.states().map((state) => state === "open")).toEqual([true, false, false, false, false, false]);
  });

  test("a worker that is away, or had nothing to fetch, has failed alone", () => {
    for (const [told, error] of [
      [HANDOVER, new EngineError("unavailable", "gone")],
      [undefined, BROKEN],
    ] as const) {
      const w = fleetOf("vllm", [P, P, D, D], { breaker: BREAKER });
      w.generate();
      w.asked[0]!.finish({ completionTokens: 1, ...(told && { handover: told }) }).end();
      w.asked[1]!.end(error);
      answered(w);
      const [, decode] = w.pairs();
      expect(
        w
          .states()
          .map((state, at) => (state === "open" ? at : -1))
          .filter((at) => at >= 0),
      ).toEqual([decode!]);
    }
  });
});

describe("engines that meet", () => {
  const answered = (w: ReturnType<typeof fleetOf>) => {
    const [prefill, decode] = w.asked.slice(-2);
    prefill!.finish({ completionTokens: 1 }).end();
    decode!.chunk([7]).finish({ completionTokens: 1 }).end();
  };

  test("when all is prefilled it is the one that decodes that fails", () => {
    const w = fleetOf("sglang", [P, D, D]);
    w.generate();
    w.asked[0]!.finish({ completionTokens: 1 }).end();
    w.asked[1]!.end(BROKEN);
    const [prefill, decode, next, last] = w.pairs();
    expect([next, last]).toEqual([prefill, 3 - decode!]);
  });

  test("with one worker to prefill, one that does not begin to decode is replaced, and charged when the other does", async () => {
    const w = fleetOf("sglang", [P, D, D], { limits: { firstTokenMs: 1000 }, breaker: BREAKER });
    const { seen } = w.generate();
    await w.clock.pass(1300);
    const [prefill, decode, next, last] = w.pairs();
    expect([next, last]).toEqual([prefill, 3 - decode!]);
    expect(w.states()).toEqual(["closed", "closed", "closed"]);
    answered(w);
    expect(w.states().map((state) => state === "open")).toEqual([false, decode === 1, decode === 2]);
    expect([seen.ends, w.board.bookings()]).toEqual([[undefined], 0]);
  });

  test("with one worker to decode, one that does not prefill is replaced, and charged when the other does", async () => {
    const w = fleetOf("sglang", [P, P, D], { limits: { firstTokenMs: 1000 }, breaker: BREAKER });
    const { seen } = w.generate();
    await w.clock.pass(1300);
    const [prefill, decode, next, last] = w.pairs();
    expect([next, last]).toEqual([1 - prefill!, decode]);
    answered(w);
    expect(w.states().map((state) => state === "open")).toEqual([prefill === 0, prefill === 1, false]);
    expect([seen.ends, w.board.bookings()]).toEqual([[undefined], 0]);
  });

  test.each([0, 1])(
    "a pair that has failed, as half %d says, is tried with another to decode, then with both others",
    (teller) => {
      const w = fleetOf("sglang", [P, P, D, D, D]);
      const { seen } = w.generate();
      w.asked[teller]!.end(BROKEN);
      w.asked[2 + teller]!.end(BROKEN);
      const [first, one, second, two, third, three] = w.pairs();
      expect(new Set([one, two, three]).size).toBe(3);
      if (second === first) expect(third).not.toBe(first);
      answered(w);
      expect([seen.ends, w.board.bookings()]).toEqual([[undefined], 0]);
    },
  );
});
