/** Routing quality: every policy of Collie and of SMG before the same simulated engines and streams. See docs/benchmarks.md. */

import { parseArgs } from "node:util";
import { defaultCoreOptions } from "../../src/simulator/core/options.ts";
import { describeMachine, machineText, othersText, watchOthers } from "../lab/machine.ts";
import { writeResult } from "../lab/output.ts";
import { runProgram } from "../lab/program.ts";
import { PeerError } from "../peer/setup.ts";
import { type CellResult, runCell } from "./cell.ts";
import {
  MAIN_POLICIES,
  OWN_POLICIES,
  ownGateway,
  PEER_POLICIES,
  PEER_TUNED,
  peerGateway,
  type RoutingGateway,
  type Side,
} from "./gateways.ts";
import { knowing, parted } from "./knowing.ts";
import { seeing } from "./oracle.ts";
import { promptReader, type TokenAsk } from "./prompt-tokens.ts";
import { boundsOf, type Router, replay } from "./replay.ts";
import {
  problems,
  type Replays,
  type Row,
  replayTargetText,
  type ShapeResults,
  shapeText,
  targetText,
} from "./routing-report.ts";
import { SHAPES, type Shape } from "./shapes.ts";

const ENGINES = 8;
const SIDES: readonly Side[] = ["own", "peer"];
/** Every policy runs these; the other shapes are run by the three that matter. */
const FULL_SHAPES = ["tenants", "sim_ab"];
/** Processes start and settle. */
const CELL_OVERHEAD_SECS = 12;

const HELP = `Compares routing policies of Collie and SMG before ${ENGINES} simulated engines of the vLLM dialect with KV events.

  npm run bench:routing -- [flags]

  --shapes LIST      ${SHAPES.map(({ id }) => id).join(",")} (all)
  --policies LIST    for every shape (every policy for ${FULL_SHAPES.join(" and ")}, else ${MAIN_POLICIES.join(", ")})
  --sides LIST       own,peer (both)
  --rounds N         rounds (1); each has a seed of its own, and new processes for every cell
  --seconds N        length of each stream (the shape's)
  --seed N           streams (1)
  --binary FILE      another build of Collie
  --replay           the streams in virtual time only, no gateway
  --no-write         print only; else bench/results gets a Markdown and a JSON file

$PEERS names a folder with a venv/ where SMG is installed already; without it SMG is installed under .cache/peer.
`;

const { values } = parseArgs({
  options: {
    shapes: { type: "string" },
    policies: { type: "string" },
    sides: { type: "string", default: "own,peer" },
    rounds: { type: "string", default: "1" },
    seconds: { type: "string" },
    seed: { type: "string", default: "1" },
    binary: { type: "string" },
    replay: { type: "boolean" },
    "no-write": { type: "boolean" },
    help: { type: "boolean", short: "h" },
  },
});

/** The rows of a shape. */
function gatewaysFor(shape: Shape): RoutingGateway[] {
  const asked: readonly string[] | undefined =
    values.policies?.split(",") ?? (FULL_SHAPES.includes(shape.id) ? undefined : MAIN_POLICIES);
  const isAsked = (policy: string) => asked === undefined || asked.includes(policy);
  const sides = values.sides.split(",");
  const own = () => OWN_POLICIES.filter(isAsked).map((policy) => ownGateway(policy, values.binary));
  const peer = () => PEER_POLICIES.filter(isAsked).map((policy) => peerGateway(policy));
  const tuned = () => (isAsked("cache_aware") ? [peerGateway("cache_aware", PEER_TUNED, "tuned")] : []);
  return [...(sides.includes("own") ? own() : []), ...(sides.includes("peer") ? [...peer(), ...tuned()] : [])];
}

const secondsOf = (shape: Shape): number => Number(values.seconds ?? shape.seconds);

function replayed(shape: Shape, streams: readonly (readonly TokenAsk[])[]): Replays {
  const options = { ...defaultCoreOptions, kvTokens: shape.kvTokens };
  const all = (router: () => Router) => streams.map((asks) => replay(asks, ENGINES, options, router()));
  return {
    oracle: all(() => seeing("cache_aware")),
    roundRobin: all(() => knowing("round_robin", true)),
    leastLoad: all(() => knowing("least_load", true)),
    told: all(() => knowing("cache_aware", true)),
    guessed: all(() => knowing("cache_aware", false)),
    parted: all(parted),
    bounds: streams.map((asks) => boundsOf(asks, options)),
  };
}

async function runShapes(shapes: readonly Shape[], seeds: readonly number[]): Promise<ShapeResults[]> {
  const read = await promptReader();
  const all = shapes.map((shape) => {
    const streams = seeds.map((seed) => read(shape.asks(seed, secondsOf(shape))));
    const rows = values.replay ? [] : gatewaysFor(shape).map((gateway) => ({ gateway, results: [] as CellResult[] }));
    return { shape, rows, replays: replayed(shape, streams) };
  });
  const secs = all.reduce((sum, { shape, rows }) => sum + rows.length * (secondsOf(shape) + CELL_OVERHEAD_SECS), 0);
  if (secs > 0) console.error(`about ${Math.ceil((secs * seeds.length) / 60)} minutes`);
  for (const seed of seeds)
    for (const { shape, rows } of all)
      for (const { gateway, results } of rows) {
        const result = await runCell([gateway], { shape, seed, seconds: secondsOf(shape), engines: ENGINES });
        results.push(result);
        const { sent, work } = result;
        console.error(
          `seed ${seed}, ${shape.id}, ${gateway.name} ${gateway.label}: TTFT ${sent.ttft_mean_ms.toFixed(1)} ms, hits ${(100 * work.hitRate).toFixed(1)} %, spread ${work.tokenSpread.toFixed(2)}, ${sent.errors} errors`,
        );
      }
  return all;
}

const versions = (rows: readonly Row[]): string[] => [
  ...new Set(rows.map(({ gateway }) => `${gateway.name} ${gateway.version}`)),
];

/** How a side's default stands to the targets; nothing where it was not run. */
function targetsOf(all: readonly ShapeResults[], side: Side): string[] {
  const row = all.flatMap(({ rows }) => rows).find(({ gateway }) => gateway.side === side);
  return row === undefined ? [] : [`\`cache_aware\` of ${row.gateway.name}:`, "", targetText(all, side), ""];
}

async function main(): Promise<number> {
  const shapes = SHAPES.filter(({ id }) => values.shapes === undefined || values.shapes.split(",").includes(id));
  const rounds = Number(values.rounds);
  if (values.help || shapes.length === 0 || !(rounds >= 1)) {
    process.stdout.write(HELP);
    return values.help ? 0 : 2;
  }
  const seeds = Array.from({ length: rounds }, (_, i) => Number(values.seed) + i);
  const machine = describeMachine();
  const others = watchOthers();
  const all = await runShapes(shapes, seeds);
  const otherCores = others();
  const doubts = problems(all);
  const names = versions(all.flatMap(({ rows }) => rows));
  const text = [
    `# Routing: ${names.join(" and ") || "replay"}`,
    "",
    `${machineText(machine)} ${othersText(otherCores)} ${rounds} rounds, seeds from ${values.seed}; figures: median (least–greatest).`,
    "",
    ...SIDES.flatMap((side) => targetsOf(all, side)),
    ...["`cache_aware` of Collie in virtual time, by KV events:", "", replayTargetText(all), ""],
    ...all.map(shapeText),
    ...(doubts.length === 0 ? ["No request failed."] : ["Problems:", "", ...doubts.map((doubt) => `- ${doubt}`)]),
    "",
  ].join("\n");
  console.log(text);
  if (!values["no-write"]) {
    const data = { machine, versions: names, seeds, other_cores: otherCores, problems: doubts, shapes: all };
    console.error(await writeResult(`${machine.date}-routing${values.replay ? "-replay" : ""}`, text, data));
  }
  return doubts.length === 0 ? 0 : 3;
}

await runProgram(main, PeerError);
