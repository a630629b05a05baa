/**
 * One serving thread against two: how many streams each carries without being late, and at which CPU per token. See docs/benchmarks.md.
 *
 *     npm run bench:threads -- [--rounds 3] [--streams 64,128,256,512] [--tokens 200] [--no-write]
 */

import { availableParallelism } from "node:os";
import { parseArgs } from "node:util";
import { loadGateway } from "./lab/client.ts";
import { chooseEngine, startEngine } from "./lab/engine.ts";
import { collie, type GatewayKind, startGateway } from "./lab/gateways.ts";
import { describeMachine, machineText, othersText, watchOthers } from "./lab/machine.ts";
import { table, withSpread, writeResult } from "./lab/output.ts";
import { type Cores, PINNED } from "./lab/processes.ts";
import { runProgram } from "./lab/program.ts";
import type { LoadResult } from "./loadgen/result.ts";
import { spread } from "./loadgen/stats.ts";

const GAP_MS = 15;
/** A stream is carried in time as long as 99 of 100 tokens come within so many milliseconds of the last. */
const LATE_MS = 2 * GAP_MS;
const REST_MS = 2000;
/** Each thread compiles for itself: it must have had its share of tokens before it is measured. */
const WARM_UP = "--streams 256 --max-tokens 300 --prompt-tokens 100".split(" ");

/** The gateway has its cores to itself only where there are four: two for it, one each for engine and load generator. */
const APART = PINNED && availableParallelism() >= 4;
const coresOf = (threads: number): Cores => (APART ? (threads === 1 ? "0" : "0,1") : undefined);
const ENGINE_CORE: Cores = APART ? 2 : undefined;
const CLIENT_CORE: Cores = APART ? 3 : undefined;

type Threads = 1 | 2;
const THREADS: readonly Threads[] = [1, 2];

/** Results of a number of streams, one a round. */
type Cells = Map<number, LoadResult[]>;

function withThreads(threads: Threads): GatewayKind {
  const kind = collie();
  return { ...kind, command: (port, engine) => [...kind.command(port, engine), "--threads", String(threads)] };
}

/** One life of engine and gateway, with a load for each number of streams. */
async function runRound(threads: Threads, ladder: readonly number[], tokens: number, seed: number, cells: Cells) {
  const engine = await startEngine(chooseEngine(undefined), GAP_MS, ENGINE_CORE);
  try {
    const gateway = await startGateway(withThreads(threads), engine.port, coresOf(threads));
    try {
      await Bun.sleep(REST_MS);
      await loadGateway(gateway, undefined, WARM_UP, CLIENT_CORE);
      for (const streams of ladder) {
        const flags = ["--streams", streams, "--max-tokens", tokens, "--prompt-tokens", 100, "--seed", seed].map(
          String,
        );
        const [result] = await loadGateway(gateway, undefined, flags, CLIENT_CORE);
        cells.set(streams, [...(cells.get(streams) ?? []), result!]);
      }
    } finally {
      await gateway.stop();
    }
  } finally {
    await engine.stop();
  }
}

const median = (results: readonly LoadResult[], value: (r: LoadResult) => number | undefined): number =>
  spread(results.map((r) => value(r) ?? Number.NaN)).median;
const lateness = (results: readonly LoadResult[]): number => median(results, (r) => r.inter_token_latency_ms?.p99);

/** The most streams of the ladder that come in time, without an error. */
function mostInTime(cells: Cells): number {
  let most = 0;
  for (const [streams, results] of cells) {
    if (results.some((r) => r.errors > 0) || !(lateness(results) <= LATE_MS)) break;
    most = streams;
  }
  return most;
}

function rows(streams: number, one: readonly LoadResult[], two: readonly LoadResult[]): string[][] {
  const line = (threads: Threads, results: readonly LoadResult[]): string[] => {
    const all = (value: (r: LoadResult) => number | undefined) => results.flatMap((r) => value(r) ?? []);
    return [
      String(streams),
      String(threads),
      withSpread(
        all((r) => r.output_token_throughput),
        0,
      ),
      withSpread(
        all((r) => r.cpu_us_per_token),
        2,
      ),
      withSpread(
        all((r) => r.cores),
        2,
      ),
      withSpread(
        all((r) => r.inter_token_latency_ms?.p50),
        1,
      ),
      withSpread(
        all((r) => r.inter_token_latency_ms?.p99),
        1,
      ),
      String(results.reduce((sum, r) => sum + r.errors, 0)),
    ];
  };
  return [line(1, one), line(2, two)];
}

async function main(): Promise<number> {
  const { values } = parseArgs({
    options: {
      rounds: { type: "string", default: "3" },
      streams: { type: "string", default: "64,128,256,512" },
      tokens: { type: "string", default: "200" },
      "no-write": { type: "boolean" },
    },
  });
  const ladder = values.streams.split(",").map(Number);
  const machine = describeMachine();
  const others = watchOthers();
  const cells: Readonly<Record<Threads, Cells>> = { 1: new Map(), 2: new Map() };
  for (let round = 0; round < Number(values.rounds); round++)
    // By turns, each first as often as the other.
    for (const threads of round % 2 === 0 ? THREADS : THREADS.toReversed()) {
      console.error(`round ${round + 1}, ${threads} threads`);
      await runRound(threads, ladder, Number(values.tokens), round + 1, cells[threads]);
    }
  const of = (threads: Threads, streams: number) => cells[threads].get(streams)!;
  const cost = (threads: Threads, streams: number, round: number) =>
    of(threads, streams)[round]!.cpu_us_per_token ?? Number.NaN;
  /** CPU per token of two threads ÷ that of one with the streams named, by rounds. */
  const costRatio = (one: number, two: number) =>
    spread(of(1, one).map((_, round) => cost(2, two, round) / cost(1, one, round))).median.toFixed(2);
  const same = ladder.map((n) => `${costRatio(n, n)} at ${n}`);
  const twice = ladder.flatMap((n) => (ladder.includes(2 * n) ? [`${costRatio(n, 2 * n)} at ${2 * n} ÷ ${n}`] : []));
  const most = { 1: mostInTime(cells[1]), 2: mostInTime(cells[2]) };
  const where = APART
    ? "The gateway has cores 0 and 1 to itself (core 0 with one thread), the engine core 2, the load generator core 3."
    : "Gateway, engine and load generator share these cores: two threads can't have twice the CPU here, so the streams they carry say how the machine is shared, and only the CPU per token is a figure of the gateway.";
  const text = [
    "# One serving thread and two",
    "",
    `${machineText({ ...machine, pinned: false })} ${othersText(others())} ${where}`,
    "",
    `Streams of ${values.tokens} tokens, one each ${GAP_MS} ms, by turns; median (least–greatest) of ${values.rounds} rounds.`,
    "",
    table(
      ["streams", "threads", "tokens/s", "CPU us/token", "cores", "gap p50 ms", "gap p99 ms", "errors"],
      ladder.flatMap((streams) => rows(streams, of(1, streams), of(2, streams))),
    ),
    "",
    `Most streams of these with a gap p99 of at most ${LATE_MS} ms: ${most[1]} with one thread, ${most[2]} with two.`,
    `CPU per token with two threads ÷ with one: ${same.join(", ")} streams; with twice the streams, so as many for each thread: ${twice.join(", ")}.`,
    "",
  ].join("\n");
  console.log(text);
  if (!values["no-write"]) {
    const data = { machine, apart: APART, one: Object.fromEntries(cells[1]), two: Object.fromEntries(cells[2]) };
    console.error(await writeResult(`${machine.date}-threads`, text, data));
  }
  return [...cells[1].values(), ...cells[2].values()].flat().some((r) => r.errors > 0) ? 3 : 0;
}

await runProgram(main);
