import { describe, expect, test } from "bun:test";
import { bulkGroup, type Group, pacedGroup } from "../../../bench/lab/cells.ts";
import { readCommandLine } from "../../../bench/loadgen/options.ts";
import { type LoadResult, loadResult, Tally } from "../../../bench/loadgen/result.ts";
import { compareAll, comparisonTable, type Life, problems, type Side } from "../../../bench/peer/compare.ts";

const group: Group = pacedGroup(false);

/** A result of 100 tokens at `us` each. */
function result(us: number, failed = false, textBytes = 500): LoadResult {
  const tally = new Tally();
  tally.done = 1;
  tally.outputTokens = 100;
  tally.textBytes = textBytes;
  tally.times(0, 30, [10, 20]);
  if (failed) tally.error("status", "503");
  return loadResult(tally, {
    seed: 1,
    requests: 1,
    wallMs: 100,
    clientCpuNs: 0,
    watched: { cpuNs: us * 100 * 1000, peakBytes: 200e6, idleMsPerSecond: 5 },
  });
}

function life(round: number, side: Side, readyMs: number, paced64: readonly LoadResult[]): Life {
  const session = {
    readyMs,
    firstMs: 5,
    idle: { cpu_ms_per_s: 1, rss_mb: 100 },
    cells: new Map([["paced64", paced64]]),
  };
  return { round, side, group, session };
}

describe("comparison", () => {
  const lives = [
    life(1, "peer", 1000, [result(20)]),
    life(1, "own", 100, [result(10), result(12), result(50)]),
    life(2, "peer", 2000, [result(10)]),
    life(2, "own", 100, [result(9)]),
    life(3, "peer", 1000, [result(10)]),
    life(3, "own", 100, [result(1, true)]),
  ];
  const all = compareAll(lives, [group]);
  const byId = (id: string) => all.find((c) => c.figure.id === id)!;

  test("pairs the rounds, takes medians of repeats, and leaves out cells with errors", () => {
    const paced = byId("paced64");
    expect(paced.peer).toEqual([20, 10, 10]);
    expect(paced.own).toEqual([12, 9]);
    expect(paced.ratios).toEqual([0.6, 0.9]);
    expect(byId("ready").ratios).toEqual([0.1, 0.05, 0.1]);
  });

  test("says what was met, missed and not measured", () => {
    const rows = comparisonTable(all, "A", "B").split("\n");
    expect(rows.find((r) => r.includes("paced, 64"))).toBe(
      "| CPU per token, paced, 64 streams (us) | 10.00 (10.00–20.00) | 10.50 (9.00–12.00) | 0.75 (0.60–0.90) | ≤ 0.75: met |",
    );
    expect(rows.find((r) => r.includes("paced, 256"))).toContain("| – | – | – | ≤ 0.65: not measured |");
    const slow = compareAll([life(1, "peer", 9, [result(10)]), life(1, "own", 9, [result(9)])], [group]);
    expect(comparisonTable(slow, "A", "B")).toContain("≤ 0.75: **missed**");
  });

  test("tells errors and texts that differ", () => {
    expect(problems(lives)).toEqual(["round 3, paced64, own: not counted, 1 errors (status: 503)"]);
    const held = [life(1, "own", 1, [{ ...result(1), coalesced_share: 0.2 }])];
    expect(problems(held)).toEqual([
      "round 1, paced64, own: not counted, 20 % of the tokens came late, together with the next",
    ]);
    expect(compareAll(held, [group])[0]?.own).toEqual([]);
    const other = [life(1, "peer", 1, [result(1)]), life(1, "own", 1, [result(1, false, 499)])];
    expect(problems(other)).toEqual(["round 1, paced64, own: the answers' bytes differ between the gateways"]);
  });
});

test("net figures are without the idle CPU", () => {
  const r = result(20);
  expect(r.cpu_us_per_token).toBe(20);
  expect(r.net_cpu_us_per_token).toBe(15);
  expect(r.time_to_first_token_ms?.p50).toBe(10);
  expect(r.inter_token_latency_ms?.max).toBe(10);
});

test("every cell is a command line that the load generator takes, with a name of its own", () => {
  for (const quick of [true, false]) {
    const groups = [pacedGroup(quick), bulkGroup(quick)];
    const cells = groups.flatMap((g) => g.cells);
    for (const flags of [...cells.map((c) => c.flags), ...groups.flatMap((g) => g.warmup)])
      expect(readCommandLine(["--url", "http://x", ...flags]).load.requests).toBeGreaterThan(0);
    const ids = [...cells.map((c) => c.id), ...cells.flatMap((c) => c.figures.map((f) => `figure ${f.id}`))];
    expect(new Set(ids).size).toBe(ids.length);
  }
});
