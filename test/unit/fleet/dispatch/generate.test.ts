import { describe, expect, test } from "bun:test";
import { EngineError, type EngineErrorKind } from "../../../../src/engines/engine.ts";
import { encode } from "../../generation/demo-tokenizer.ts";
import { MODEL } from "../../server/gateway.ts";
import { world } from "./world.ts";

const UNAVAILABLE = new EngineError("unavailable", "gone");
const sum = (numbers: readonly number[]) => numbers.reduce((a, b) => a + b, 0);

describe("a worker that cannot be reached", () => {
  test("costs the client nothing as long as another can, and is avoided afterwards", () => {
    const { asked, running, board, workers, fleet, generate, told, clock } = world(3);
    const { seen } = generate();
    expect(sum(running())).toBe(1);
    asked[0]!.end(UNAVAILABLE);
    expect(asked.map(({ request }) => request.requestId)).toEqual(["r", "r-2"]);
    expect(sum(running())).toBe(1);
    asked[1]!.chunk(encode("a")).finish({ completionTokens: 1 }).end();
    expect(seen).toEqual({ chunks: 1, finishes: 1, ends: [undefined] });
    expect(sum(running())).toBe(0);
    expect(told).toEqual(["retried generate"]);
    const avoided = workers.filter(({ slot }) => board.isAvoided(slot, clock.now()));
    expect(avoided).toHaveLength(1);
    for (let i = 0; i < 6; i++) {
      const lease = fleet.lease(fleet.model(MODEL));
      expect(lease.worker.slot).not.toBe(avoided[0]!.slot);
      lease.done("ok");
    }
  });

  test("is an error when there is no other, each worker asked once", () => {
    const { asked, running, generate, workerOf, told } = world(2);
    const { seen } = generate();
    asked[0]!.end(UNAVAILABLE);
    expect(seen.ends).toEqual([]);
    asked[1]!.end(UNAVAILABLE);
    expect(seen.ends).toEqual([UNAVAILABLE]);
    expect(new Set(asked.map(workerOf)).size).toBe(2);
    expect(sum(running())).toBe(0);
    expect(told).toEqual(["retried generate", "exhausted generate"]);
  });

  test("is an error once something has come back: a token is never given twice", () => {
    const { asked, generate } = world(2);
    const { seen } = generate();
    asked[0]!.chunk(encode("a")).end(UNAVAILABLE);
    expect(seen).toEqual({ chunks: 1, finishes: 0, ends: [UNAVAILABLE] });
    expect(asked).toHaveLength(1);
  });

  test("alone, it is tried again with the next request", () => {
    const { asked, generate, fleet } = world(1);
    const { seen } = generate();
    asked[0]!.end(UNAVAILABLE);
    expect(seen.ends).toEqual([UNAVAILABLE]);
    fleet.lease(fleet.model(MODEL)).done("ok");
  });
});

describe("other failures", () => {
  test("that another worker may not have are tried there, the inner ones after a pause", async () => {
    for (const [kind, pauseMs] of [
      ["overloaded", 0],
      ["timeout", 0],
      ["failed", 50],
    ] as const) {
      const { asked, generate, clock, running } = world(2);
      const { seen } = generate();
      asked[0]!.end(new EngineError(kind, "no"));
      if (pauseMs > 0) {
        expect(sum(running())).toBe(0);
        await clock.pass(pauseMs - 1);
        expect(asked).toHaveLength(1);
        await clock.pass(1);
      }
      expect(asked).toHaveLength(2);
      asked[1]!.chunk(encode("a")).finish({ completionTokens: 1 }).end();
      expect([kind, seen.ends]).toEqual([kind, [undefined]]);
    }
  });

  test("of the request itself are told as they are", () => {
    for (const kind of ["invalid", "constraint", "not_found", "unimplemented"] satisfies EngineErrorKind[]) {
      const { asked, generate, running } = world(2);
      const { seen } = generate();
      const refused = new EngineError(kind, "no");
      asked[0]!.end(refused);
      expect(seen.ends).toEqual([refused]);
      expect([asked.length, sum(running())]).toEqual([1, 0]);
    }
  });

  test("pauses grow, and a request is tried as often as is set", async () => {
    const { asked, generate, clock, told } = world(5, { rules: { attempts: 4 } });
    const { seen } = generate();
    const failed = new EngineError("failed", "boom");
    for (let i = 0; i < 4; i++) {
      asked[i]!.end(failed);
      await clock.pass(1000);
    }
    expect(asked).toHaveLength(4);
    expect(seen.ends).toEqual([failed]);
    expect(told.filter((what) => what.startsWith("paused"))).toEqual(["paused 1 50", "paused 2 75", "paused 3 113"]);
    expect(told.at(-1)).toBe("exhausted generate");
  });

  test("an engine that gives a request up before anything came has failed; later its end is told", () => {
    const { asked, generate } = world(2, { rules: { initialBackoffMs: 0 } });
    const { seen } = generate();
    asked[0]!.finish({ reason: "abort", completionTokens: 0 });
    expect([asked[0]!.cancelled, asked.length, seen.finishes]).toEqual([1, 2, 0]);
    asked[1]!.chunk(encode("a")).finish({ reason: "abort", completionTokens: 1 }).end();
    expect(seen).toEqual({ chunks: 1, finishes: 1, ends: [undefined] });
  });
});

test.each(["overloaded", "unavailable"] as const)(
  "a worker that asks for a pause is left alone for so long, and others are not: %s",
  (kind) => {
    const { asked, generate, board, workers, clock, workerOf } = world(2);
    generate();
    asked[0]!.end(new EngineError(kind, "not now", { retryAfterMs: 4000 }));
    const full = workers[workerOf(asked[0]!)]!.slot;
    const now = clock.now();
    expect(asked).toHaveLength(2);
    expect([board.isAvoided(full, now + 3000), board.isAvoided(full, now + 5000)]).toEqual([true, false]);
    expect(clock.waits).toBe(0);
  },
);

test("no more is sent again than the budget allows", () => {
  let left = 1;
  let deposits = 0;
  const budget = { deposit: () => void deposits++, retryToken: () => left-- > 0 };
  const { asked, generate, running, told } = world(3, { budget });
  const { seen } = generate();
  asked[0]!.end(UNAVAILABLE);
  asked[1]!.end(UNAVAILABLE);
  expect(seen.ends).toEqual([UNAVAILABLE]);
  expect([asked.length, deposits, sum(running())]).toEqual([2, 1, 0]);
  expect(told).toEqual(["retried generate", "denied", "exhausted generate"]);
});

describe("a client that leaves", () => {
  test("ends its request where it is, and its place is given back", () => {
    const { asked, generate, running } = world(2);
    const { call, seen } = generate();
    call.cancel();
    expect(asked.map(({ cancelled }) => cancelled)).toEqual([1]);
    expect(seen.ends.map((error) => error?.kind)).toEqual(["cancelled"]);
    expect(sum(running())).toBe(0);
  });

  test("in the pause before another try ends it at once", async () => {
    const { asked, generate, clock } = world(2);
    const { call, seen } = generate();
    asked[0]!.end(new EngineError("failed", "boom"));
    call.cancel();
    expect(seen.ends.map((error) => error?.kind)).toEqual(["cancelled"]);
    await clock.pass(1000);
    expect([asked.length, clock.waits]).toEqual([1, 0]);
  });
});

test("a pause holds over to the next worker", () => {
  const { asked, generate } = world(2);
  const { call } = generate();
  call.pause();
  asked[0]!.end(UNAVAILABLE);
  expect(asked[1]!.paused).toBe(1);
});

test("a worker that is found not to move loses what has not begun, and nothing else", () => {
  const { asked, generate, fleet, workers, workerOf } = world(2);
  const first = generate();
  const slot = workers[workerOf(asked[0]!)]!.slot;
  fleet.lost.lost(slot);
  expect([asked[0]!.cancelled, asked.length]).toEqual([1, 2]);
  asked[1]!.chunk(encode("a"));
  fleet.lost.lost(workers[workerOf(asked[1]!)]!.slot);
  asked[1]!.finish({ completionTokens: 1 }).end();
  expect(first.seen).toEqual({ chunks: 1, finishes: 1, ends: [undefined] });
});

describe("circuit breakers", () => {
  const breaker = { failures: 2, rate: 0.5, successes: 1, timeoutMs: 60_000, windowMs: 60_000 };
  const stateAfter = (end: (w: ReturnType<typeof world>) => void) => {
    const w = world(1, { breaker });
    for (let i = 0; i < 2; i++) end(w);
    return w.board.breaker.state(w.workers[0]!.slot);
  };

  test("count streams that break off", () => {
    const after = (error: EngineError) =>
      stateAfter(({ generate, asked }) => {
        generate();
        asked.at(-1)!.chunk(encode("a")).end(error);
      });
    expect(after(UNAVAILABLE)).toBe("open");
    expect(after(new EngineError("failed", "boom"))).toBe("open");
  });

  test("count choices that the engine gave up", () => {
    const state = stateAfter(({ generate, asked }) => {
      generate();
      asked.at(-1)!.chunk(encode("a")).finish({ reason: "error", completionTokens: 1 }).end();
    });
    expect(state).toBe("open");
  });

  test("count them, too, where whoever takes the answer cancels it then", () => {
    const state = stateAfter(({ generate, asked }) => {
      const { call } = generate();
      asked.at(-1)!.chunk(encode("a")).finish({ reason: "abort", completionTokens: 1 });
      call.cancel();
    });
    expect(state).toBe("open");
  });

  test("do not count what is the request's fault, or the client's, or a matter of room", () => {
    for (const kind of ["invalid", "constraint", "not_found", "unimplemented", "overloaded"] as const) {
      const state = stateAfter(({ generate, asked }) => {
        generate();
        asked.at(-1)!.end(new EngineError(kind, "no"));
      });
      expect([kind, state]).toEqual([kind, "closed"]);
    }
    const left = stateAfter(({ generate, asked }) => {
      const { call } = generate();
      asked.at(-1)!.chunk(encode("a"));
      call.cancel();
    });
    expect(left).toBe("closed");
  });

  test("count as good what was ended here as it had all that was wanted", () => {
    const { generate, asked, board, workers } = world(1, { breaker });
    for (let i = 0; i < 5; i++) {
      const { call } = generate();
      asked.at(-1)!.chunk(encode("a"));
      call.cancel(true);
    }
    for (let i = 0; i < 3; i++) {
      generate();
      asked.at(-1)!.end(UNAVAILABLE);
    }
    expect(board.breaker.state(workers[0]!.slot)).toBe("closed"); // 3 of 8
  });
});
