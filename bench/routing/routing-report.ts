/** Results of the fleet benchmark as tables. */
import { table, withSpread } from "../lab/output.ts";
import { spread } from "../loadgen/stats.ts";
import type { CellResult } from "./cell.ts";
import type { RoutingGateway, Side } from "./gateways.ts";
import type { Bounds, ReplayResult } from "./replay.ts";
import type { Shape } from "./shapes.ts";

/** A gateway with a policy, and its results of a shape, a round each. */
export interface Row {
  readonly gateway: RoutingGateway;
  readonly results: readonly CellResult[];
}

/** The same streams in virtual time, a round each. */
export interface Replays {
  readonly oracle: readonly ReplayResult[];
  readonly roundRobin: readonly ReplayResult[];
  readonly leastLoad: readonly ReplayResult[];
  /** What is known by KV events, and without. */
  readonly told: readonly ReplayResult[];
  readonly guessed: readonly ReplayResult[];
  readonly parted: readonly ReplayResult[];
  readonly bounds: readonly Bounds[];
}

export interface ShapeResults {
  readonly shape: Shape;
  readonly rows: readonly Row[];
  readonly replays: Replays;
}

const median = (values: readonly number[]): number => spread(values).median;
const percent = (share: number): string => (share * 100).toFixed(1);

const HEAD = [
  "gateway, policy",
  "TTFT mean ms",
  "to its round_robin",
  "to its least_load",
  "TTFT p99 ms",
  "latency mean ms",
  "hit rate %",
  "below the oracle",
  "spread of tokens",
  "of requests",
  "CPU gateway / engines / client, cores",
  "errors",
];

/** Mean TTFT of a row over that of another policy of the same gateway, round by round. */
export function ttftRatio(rows: readonly Row[], row: Row, policy: string): number | undefined {
  const other = rows.find(({ gateway }) => gateway.side === row.gateway.side && gateway.label === policy);
  if (other === undefined || other === row) return undefined;
  const ratios = row.results.flatMap(({ sent }, i) => {
    const base = other.results[i]?.sent.ttft_mean_ms;
    return base === undefined ? [] : [sent.ttft_mean_ms / base];
  });
  return ratios.length === 0 ? undefined : median(ratios);
}

/** Points of the hit rate that a row lies below the oracle, round by round. */
export function pointsBelow(row: Row, { oracle }: Replays): number {
  return median(row.results.map(({ work }, i) => 100 * (oracle[i]!.hitRate - work.hitRate)));
}

function line(row: Row, { rows, replays }: ShapeResults): string[] {
  const { gateway, results } = row;
  const all = (read: (result: CellResult) => number, digits: number) => withSpread(results.map(read), digits);
  const ratio = (policy: string) => ttftRatio(rows, row, policy)?.toFixed(2) ?? "";
  const cores = [
    median(results.map((r) => r.gatewayCores)),
    median(results.map((r) => r.engineCores)),
    median(results.map((r) => r.clientCores)),
  ];
  return [
    `${gateway.name}, ${gateway.label}`,
    all((r) => r.sent.ttft_mean_ms, 1),
    ratio("round_robin"),
    ratio("least_load"),
    all((r) => r.sent.ttft_ms?.p99 ?? Number.NaN, 0),
    all((r) => r.sent.latency_mean_ms, 0),
    all((r) => 100 * r.work.hitRate, 1),
    pointsBelow(row, replays).toFixed(1),
    all((r) => r.work.tokenSpread, 2),
    all((r) => r.work.requestSpread, 2),
    cores.map((c) => c.toFixed(2)).join(" / "),
    String(results.reduce((sum, r) => sum + r.sent.errors, 0)),
  ];
}

/** Mean TTFT of one in virtual time over that of another, round by round. */
const replayRatio = (results: readonly ReplayResult[], base: readonly ReplayResult[]): number =>
  median(results.map(({ ttftMeanMs }, i) => ttftMeanMs / base[i]!.ttftMeanMs));

const replayBelow = (results: readonly ReplayResult[], { oracle }: Replays): number =>
  median(results.map(({ hitRate }, i) => 100 * (oracle[i]!.hitRate - hitRate)));

function replayLine(name: string, results: readonly ReplayResult[], replays: Replays): string[] {
  const all = (read: (result: ReplayResult) => number, digits: number) => withSpread(results.map(read), digits);
  const ratio = (base: readonly ReplayResult[]) => (base === results ? "" : replayRatio(results, base).toFixed(2));
  return [
    `${name}, no gateway`,
    all((r) => r.ttftMeanMs, 1),
    ratio(replays.roundRobin),
    ratio(replays.leastLoad),
    all((r) => r.ttft.p99, 0),
    all((r) => r.latencyMeanMs, 0),
    all((r) => 100 * r.hitRate, 1),
    replayBelow(results, replays).toFixed(1),
    all((r) => r.tokenSpread, 2),
    all((r) => r.requestSpread, 2),
    "",
    "",
  ];
}

/** The table of a shape. */
export function shapeText(results: ShapeResults): string {
  const { shape, rows, replays } = results;
  const { bounds } = replays;
  const hits = percent(median(bounds.map(({ hitRate }) => hitRate)));
  const ttft = median(bounds.map(({ ttftMeanMs }) => ttftMeanMs)).toFixed(1);
  return [
    `## ${shape.id}: ${shape.title}`,
    "",
    table(HEAD, [
      ...rows.map((row) => line(row, results)),
      replayLine("oracle", replays.oracle, replays),
      replayLine("cache_aware by KV events", replays.told, replays),
      replayLine("cache_aware without", replays.guessed, replays),
      replayLine("each beginning at one engine", replays.parted, replays),
      replayLine("round_robin", replays.roundRobin, replays),
      replayLine("least_load", replays.leastLoad, replays),
    ]),
    "",
    `One request at a time at one engine with endless memory: TTFT ${ttft} ms, ${percent(leastTtft(replays, replays.roundRobin))} % of round robin's; hits ${hits} %.`,
    "",
  ].join("\n");
}

/** What `cache_aware` is to reach. */
const TARGETS = { roundRobin: 0.6, leastLoad: 0.77, points: 3, spread: 1.3 };

/** `least`: nobody gets below that. */
function mark(value: number | undefined, limit: number, digits: number, least = 0): string {
  if (value === undefined) return "–";
  if (value <= limit) return `${value.toFixed(digits)} met`;
  return `${value.toFixed(digits)} ${least > limit ? `missed, as by anybody: ${least.toFixed(digits)} at least` : "**missed**"}`;
}

/** TTFT of one request at a time with endless memory to that of others. */
const leastTtft = ({ bounds }: Replays, others: readonly ReplayResult[]): number =>
  median(bounds.map(({ ttftMeanMs }, i) => ttftMeanMs / others[i]!.ttftMeanMs));

interface Standing {
  readonly toRoundRobin: number | undefined;
  readonly toLeastLoad: number | undefined;
  readonly below: number;
  readonly spread: number;
}

const TARGET_HEAD = [
  "shape",
  `TTFT to round_robin (≤ ${percent(TARGETS.roundRobin)} %)`,
  `to least_load (≤ ${percent(TARGETS.leastLoad)} %)`,
  `points below the oracle (≤ ${TARGETS.points})`,
  `spread (≤ ${TARGETS.spread})`,
  "with each beginning at one engine",
];

const standingLine = ({ shape, replays }: ShapeResults, its: Standing): string[] => [
  shape.id,
  mark(its.toRoundRobin, TARGETS.roundRobin, 2, leastTtft(replays, replays.roundRobin)),
  mark(its.toLeastLoad, TARGETS.leastLoad, 2, leastTtft(replays, replays.leastLoad)),
  mark(its.below, TARGETS.points, 1),
  mark(its.spread, TARGETS.spread, 2),
  median(replays.parted.map(({ tokenSpread }) => tokenSpread)).toFixed(2),
];

/** How one side's `cache_aware` stands to the targets, a row a shape. */
export function targetText(all: readonly ShapeResults[], side: Side): string {
  const lines = all.flatMap((results) => {
    const { rows, replays } = results;
    const row = rows.find(({ gateway }) => gateway.side === side && gateway.label === "cache_aware");
    if (row === undefined) return [];
    const its = {
      toRoundRobin: ttftRatio(rows, row, "round_robin"),
      toLeastLoad: ttftRatio(rows, row, "least_load"),
      below: pointsBelow(row, replays),
      spread: median(row.results.map(({ work }) => work.tokenSpread)),
    };
    return [standingLine(results, its)];
  });
  return table(TARGET_HEAD, lines);
}

/** The same in virtual time, knowing what a gateway knows. */
export function replayTargetText(all: readonly ShapeResults[]): string {
  const lines = all.map((results) => {
    const { replays } = results;
    const { told, roundRobin, leastLoad } = replays;
    return standingLine(results, {
      toRoundRobin: replayRatio(told, roundRobin),
      toLeastLoad: replayRatio(told, leastLoad),
      below: replayBelow(told, replays),
      spread: median(told.map(({ tokenSpread }) => tokenSpread)),
    });
  });
  return table(TARGET_HEAD, lines);
}

/** Results that do not count as they are. */
export function problems(all: readonly ShapeResults[]): string[] {
  return all.flatMap(({ shape, rows, replays }) =>
    rows.flatMap(({ gateway, results }) =>
      results.flatMap((result, i) => {
        const where = `${shape.id}, ${gateway.name} ${gateway.label}, round ${i + 1}`;
        const { sent, work, leftOpen } = result;
        // One worker gets everything, more than it can do.
        const isOverloading = gateway.label === "passthrough";
        const expected = replays.oracle[i]!.promptTokens;
        return [
          ...(sent.errors > 0 && !isOverloading ? [`${where}: ${sent.errors} errors (${sent.first_error})`] : []),
          ...(sent.errors === 0 && work.promptTokens !== expected
            ? [`${where}: the engines got ${work.promptTokens} prompt tokens instead of ${expected}`]
            : []),
          ...(leftOpen > 0 && !isOverloading ? [`${where}: ${leftOpen} requests stayed open at the engines`] : []),
          ...(sent.send_delay_p99_ms > LATE_P99_MS
            ? [`${where}: the client was ${sent.send_delay_p99_ms.toFixed(0)} ms late (p99)`]
            : []),
        ];
      }),
    ),
  );
}

/** A client that is that late did not send the shape. */
const LATE_P99_MS = 20;
