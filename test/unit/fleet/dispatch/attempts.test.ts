import { describe, expect, test } from "bun:test";
import { EngineError, type EngineErrorKind } from "../../../../src/engines/engine.ts";
import { backoffMs, pauseBeforeNext } from "../../../../src/fleet/dispatch/attempts.ts";
import { outcomeOf } from "../../../../src/fleet/dispatch/outcome.ts";

const rules = { attempts: 3, initialBackoffMs: 100, maxBackoffMs: 300, multiplier: 2, jitter: 0.5 };
const error = (kind: EngineErrorKind) => new EngineError(kind, "no");

describe("another try", () => {
  test("is made of what another worker may do better", () => {
    const pauses = (
      [
        "unavailable",
        "overloaded",
        "timeout",
        "failed",
        "invalid",
        "constraint",
        "not_found",
        "unimplemented",
        "cancelled",
      ] as const
    ).map((kind) => [kind, pauseBeforeNext(error(kind), 1, rules, 0.5)]);
    expect(pauses).toEqual([
      ["unavailable", 0],
      ["overloaded", 0],
      ["timeout", 0],
      ["failed", 100],
      ["invalid", undefined],
      ["constraint", undefined],
      ["not_found", undefined],
      ["unimplemented", undefined],
      ["cancelled", undefined],
    ]);
    expect(pauseBeforeNext(new Error("a defect"), 1, rules, 0.5)).toBeUndefined();
  });

  test("is made as often as is set, the first one counted", () => {
    const made = [1, 2, 3, 4].map((tries) => pauseBeforeNext(error("unavailable"), tries, rules, 0.5));
    expect(made).toEqual([0, 0, undefined, undefined]);
  });
});

test("pauses grow to their longest, with a share of chance", () => {
  expect([1, 2, 3, 4].map((made) => backoffMs(made, rules, 0.5))).toEqual([100, 200, 300, 300]);
  expect([0, 1].map((random) => backoffMs(1, rules, random))).toEqual([50, 150]);
  expect([0, 1].map((random) => backoffMs(3, rules, random))).toEqual([150, 300]);
});

test("of a worker speak the failures that are its own", () => {
  const said = (kind: EngineErrorKind) => outcomeOf(error(kind));
  expect(outcomeOf(undefined)).toBe("ok");
  for (const kind of ["unavailable", "timeout", "failed"] as const) expect(said(kind)).toBe("failure");
  for (const kind of ["invalid", "constraint", "not_found", "unimplemented", "overloaded", "cancelled"] as const)
    expect(said(kind)).toBe("neutral");
  expect(outcomeOf(new TypeError("not an engine's"))).toBe("failure");
});
