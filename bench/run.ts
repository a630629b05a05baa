/** Measures Collie by itself: through the gateway, directly at the engine, and the difference. See docs/benchmarks.md. */

import { statSync } from "node:fs";
import { parseArgs } from "node:util";
import { bulkGroup, type Cell, type Group, IDLE_CPU, IDLE_RSS, pacedGroup, READY, whyNotCounted } from "./lab/cells.ts";
import { loadEngine } from "./lab/client.ts";
import { chooseEngine, type EngineKind, startEngine } from "./lab/engine.ts";
import { collie, startGateway } from "./lab/gateways.ts";
import { describeMachine, machineText, othersText, watchOthers } from "./lab/machine.ts";
import { figureLabel, table, withSpread, writeResult } from "./lab/output.ts";
import { BINARY } from "./lab/paths.ts";
import { runProgram } from "./lab/program.ts";
import { runSession, type Session } from "./lab/session.ts";
import type { LoadResult } from "./loadgen/result.ts";
import { spread } from "./loadgen/stats.ts";

const HELP = `Measures Collie on this machine.

  npm run bench -- [flags]

  --quick            shorter cells: under 3 minutes
  --engine-cmd CMD   engine of the vLLM dialect instead of \`collie engine\`; {port}, {model} and {gap_ms} are filled in
  --seed N           prompts (1)
  --no-write         print only; else bench/results gets a Markdown and a JSON file
`;

const STARTS = 10;
/** The most messages that an engine and our reader can move: many streams, nothing between tokens. */
const FLAT_OUT = "--streams 64 --requests 512 --max-tokens 512 --prompt-tokens 100 --warmup 64 --repeat 3".split(" ");

/** Requests that come when they come, at a rate that one core carries easily. */
const openLoopCell = (quick: boolean): Cell => ({
  id: "open loop, 60/s",
  flags: `--rate 60 --requests ${quick ? 180 : 600} --prompt-tokens 100 --max-tokens 64`.split(" "),
  figures: [],
});

type Results = ReadonlyMap<string, readonly LoadResult[]>;

/** The cells that a reader of token ids can send too, straight to an engine. */
async function direct(engineKind: EngineKind, group: Group, seed: number): Promise<Results> {
  const engine = await startEngine(engineKind, group.gapMs);
  try {
    const cells = new Map<string, readonly LoadResult[]>();
    for (const [i, cell] of group.cells.entries())
      if (!cell.flags.includes("--unary"))
        cells.set(cell.id, await loadEngine(engine, [...cell.flags, "--seed", String(seed * 1000 + i)]));
    if (group.gapMs === 0) cells.set("flat out", await loadEngine(engine, FLAT_OUT));
    return cells;
  } finally {
    await engine.stop();
  }
}

async function starts(engineKind: EngineKind): Promise<number[]> {
  const engine = await startEngine(engineKind, 0);
  try {
    const times: number[] = [];
    // The first start makes the tokenizer's tables and is left out.
    for (let i = 0; i <= STARTS; i++) {
      const gateway = await startGateway(collie(), engine.port);
      await gateway.stop();
      if (i > 0) times.push(gateway.readyMs);
    }
    return times;
  } finally {
    await engine.stop();
  }
}

const median = (results: readonly LoadResult[], value: (r: LoadResult) => number | undefined): number | undefined => {
  const values = results.map(value).filter((v) => v !== undefined);
  return values.length === 0 ? undefined : spread(values).median;
};

const shown = (value: number | undefined, digits: number): string => value?.toFixed(digits) ?? "–";

function cellRow(cell: Cell, through: readonly LoadResult[], alone: readonly LoadResult[]): string[] {
  const ttft = median(through, (r) => r.time_to_first_token_ms?.p50);
  const ttftAlone = median(alone, (r) => r.time_to_first_token_ms?.p50);
  const added = cell.saturates || ttft === undefined || ttftAlone === undefined ? undefined : ttft - ttftAlone;
  return [
    cell.id,
    shown(ttft, 2),
    shown(ttftAlone, 2),
    shown(added, 2),
    shown(
      median(through, (r) => r.time_to_first_token_ms?.p99),
      2,
    ),
    shown(
      median(through, (r) => r.inter_token_latency_ms?.p99),
      2,
    ),
    shown(
      median(alone, (r) => r.inter_token_latency_ms?.p99),
      2,
    ),
    shown(
      median(through, (r) => r.cpu_us_per_token),
      2,
    ),
    shown(
      median(through, (r) => r.cpu_ms_per_request),
      3,
    ),
    shown(
      median(through, (r) => r.rss_peak_mb),
      0,
    ),
    shown(
      median(through, (r) => r.output_token_throughput),
      0,
    ),
  ];
}

const HEAD = [
  "cell",
  "TTFT p50 ms",
  "direct",
  "added",
  "TTFT p99 ms",
  "gap p99 ms",
  "direct",
  "CPU us/token",
  "CPU ms/request",
  "RSS MB",
  "tokens/s",
];

async function main(): Promise<number> {
  const { values } = parseArgs({
    options: {
      quick: { type: "boolean" },
      "engine-cmd": { type: "string" },
      seed: { type: "string" },
      "no-write": { type: "boolean" },
      help: { type: "boolean", short: "h" },
    },
  });
  if (values.help) {
    process.stdout.write(HELP);
    return 0;
  }
  const quick = values.quick === true;
  const seed = Number(values.seed ?? 1);
  const machine = describeMachine();
  const kind = collie();
  const engineKind = chooseEngine(values["engine-cmd"]);
  const others = watchOthers();

  console.error("starts");
  const readyMs = await starts(engineKind);
  const paced = pacedGroup(quick);
  const groups = [{ ...paced, cells: [...paced.cells, openLoopCell(quick)] }, bulkGroup(quick)];
  const alone = new Map<string, readonly LoadResult[]>();
  const through = new Map<string, readonly LoadResult[]>();
  const sessions: Session[] = [];
  for (const group of groups) {
    console.error(`${group.id}: directly`);
    for (const [cell, results] of await direct(engineKind, group, seed)) alone.set(cell, results);
    console.error(`${group.id}: through the gateway`);
    const session = await runSession(kind, engineKind, group, seed, quick ? 2 : 6);
    sessions.push(session);
    for (const [cell, results] of session.cells) through.set(cell, results);
  }

  const otherCores = others();
  const all = groups.flatMap((g) => g.cells);
  const failed = all.flatMap((cell) => {
    const why = [through, alone].map((results) => whyNotCounted(cell, results.get(cell.id) ?? [])).find((w) => w);
    return why === undefined ? [] : [`${cell.id} (${why})`];
  });
  const cells = all.filter(({ id }) => !failed.some((text) => text.startsWith(`${id} (`)));
  const figures = [
    [figureLabel(READY), withSpread(readyMs, READY.digits)],
    [
      figureLabel(IDLE_RSS),
      withSpread(
        sessions.map((s) => s.idle.rss_mb),
        IDLE_RSS.digits,
      ),
    ],
    [
      figureLabel(IDLE_CPU),
      withSpread(
        sessions.map((s) => s.idle.cpu_ms_per_s),
        IDLE_CPU.digits,
      ),
    ],
    [
      "first request after a start, TTFT (ms)",
      withSpread(
        sessions.flatMap((s) => s.firstMs ?? []),
        1,
      ),
    ],
    ["binary (MB)", (statSync(BINARY).size / 1e6).toFixed(1)],
    [
      "engine's top message rate, read directly (messages/s)",
      shown(
        median(alone.get("flat out") ?? [], (r) => r.output_token_throughput),
        0,
      ),
    ],
  ];
  const text = [
    `# Collie ${kind.version}`,
    "",
    `${machineText(machine)} ${othersText(otherCores)} Engine: ${engineKind.name}.`,
    "",
    table(["figure", kind.name], figures),
    "",
    table(
      HEAD,
      cells.map((cell) => cellRow(cell, through.get(cell.id) ?? [], alone.get(cell.id) ?? [])),
    ),
    "",
    failed.length === 0 ? "No request failed." : `Not counted: ${failed.join("; ")}.`,
    "",
  ].join("\n");
  console.log(text);
  if (!values["no-write"]) {
    const data = {
      machine,
      version: kind.version,
      engine: engineKind.name,
      quick,
      seed,
      other_cores: otherCores,
      ready_ms: readyMs,
      binary_bytes: statSync(BINARY).size,
      idle: sessions.map((s) => s.idle),
      first_request_ms: sessions.map((s) => s.firstMs),
      through: Object.fromEntries(through),
      direct: Object.fromEntries(alone),
    };
    console.error(await writeResult(`${machine.date}${quick ? "-quick" : ""}`, text, data));
  }
  return failed.length === 0 ? 0 : 3;
}

await runProgram(main);
