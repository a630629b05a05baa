/** How much of the cache hits is left when several gateways share a fleet, each seeing a part of the traffic. See docs/benchmarks.md. */

import { parseArgs } from "node:util";
import { describeMachine, machineText, othersText, watchOthers } from "../lab/machine.ts";
import { table, withSpread, writeResult } from "../lab/output.ts";
import { accepts, freePort, type Running, start, untilTrue } from "../lab/processes.ts";
import { runProgram } from "../lab/program.ts";
import { spread } from "../loadgen/stats.ts";
import { PeerError } from "../peer/setup.ts";
import { type CellResult, runCell } from "./cell.ts";
import { ownGateway, peerGateway, type RoutingGateway } from "./gateways.ts";
import { SHAPES, type Shape } from "./shapes.ts";

const ENGINES = 8;
const MANY = 4;

const HELP = `Hit rates of one gateway and of ${MANY} before the same ${ENGINES} simulated engines, each request through one of them at random.

  node scripts/bun.mjs bench/routing/replicas.ts [flags]

  --shapes LIST   tenants,light
  --sides LIST    own,peer (both)
  --rounds N      rounds (1); each has a seed of its own
  --seconds N     length of each stream (the shape's)
  --seed N        streams (1)
  --binary FILE   another build of Collie
  --no-write      print only; else bench/results gets a Markdown and a JSON file

With redis-server (or valkey-server) in the PATH, Collie's gateways also share through it what they guess.
`;

const { values } = parseArgs({
  options: {
    shapes: { type: "string", default: "tenants,light" },
    sides: { type: "string", default: "own,peer" },
    rounds: { type: "string", default: "1" },
    seconds: { type: "string" },
    seed: { type: "string", default: "1" },
    binary: { type: "string" },
    "no-write": { type: "boolean" },
    help: { type: "boolean", short: "h" },
  },
});

/** How the gateways of a row come to know of caches. */
interface Setup {
  readonly name: string;
  readonly count: number;
  readonly engineFlags: readonly string[];
  gateways(): readonly RoutingGateway[];
}

const NO_EVENTS = ["--no-kv-events"];

/** Each way of knowing with one gateway and with several. */
function setups(redis: string | undefined): Setup[] {
  const sides = values.sides.split(",");
  const pair = (name: string, engineFlags: readonly string[], make: (i: number) => RoutingGateway): Setup[] =>
    [1, MANY].map((count) => ({
      name,
      count,
      engineFlags,
      gateways: () => Array.from({ length: count }, (_, i) => make(i)),
    }));
  const own = (...flags: string[]) => ownGateway("cache_aware", values.binary, flags);
  const ours = [
    ...pair("Collie, KV events", [], () => own()),
    ...(redis === undefined
      ? []
      : pair("Collie, no KV events, shared by Redis", NO_EVENTS, () => own("--routing-redis-url", redis))),
    ...pair("Collie, no KV events, unshared", NO_EVENTS, () => own()),
  ];
  const theirs = [
    ...pair("SMG, KV events", [], () => peerGateway("cache_aware")),
    ...pair("SMG, no KV events, mesh", NO_EVENTS, meshed()),
    ...pair("SMG, no KV events", NO_EVENTS, () => peerGateway("cache_aware")),
  ];
  return [...(sides.includes("own") ? ours : []), ...(sides.includes("peer") ? theirs : [])];
}

/** SMG's gateways as members of a mesh, each of which names the first one. */
function meshed(): (i: number) => RoutingGateway {
  let first = 0;
  return (i) => {
    const port = freePort();
    if (i === 0) first = port;
    const flags = ["--enable-mesh", "--mesh-server-name", `gateway-${i}`, "--mesh-host", "127.0.0.1"];
    const peers = i === 0 ? [] : ["--mesh-peer-urls", `127.0.0.1:${first}`];
    return peerGateway("cache_aware", [...flags, "--mesh-port", String(port), ...peers], "mesh");
  };
}

/** A database of its own, in memory; undefined where there is no server. */
async function startRedis(): Promise<{ readonly url: string; readonly process: Running } | undefined> {
  const program = Bun.which("redis-server") ?? Bun.which("valkey-server");
  if (program === null) return undefined;
  const port = freePort();
  const command = [program, "--port", String(port), "--bind", "127.0.0.1", "--save", "", "--appendonly", "no"];
  const process = start("routing-redis", command, 1);
  await untilTrue(process, "Redis", () => accepts(port));
  return { url: `redis://127.0.0.1:${port}`, process };
}

interface Row {
  readonly setup: Setup;
  readonly results: CellResult[];
}

interface ShapeRows {
  readonly shape: Shape;
  readonly rows: readonly Row[];
}

const hits = ({ work }: CellResult): number => 100 * work.hitRate;

function shapeTable({ shape, rows }: ShapeRows): string {
  const lines = rows.map(({ setup, results }) => {
    const one = rows.find((row) => row.setup.name === setup.name && row.setup.count === 1);
    const lost = one === undefined || one.setup === setup ? [] : results.map((r, i) => hits(one.results[i]!) - hits(r));
    return [
      setup.name,
      String(setup.count),
      withSpread(results.map(hits), 1),
      lost.length === 0 ? "" : spread(lost).median.toFixed(1),
      withSpread(
        results.map((r) => r.sent.ttft_mean_ms),
        1,
      ),
      withSpread(
        results.map((r) => r.work.tokenSpread),
        2,
      ),
      String(results.reduce((sum, r) => sum + r.sent.errors, 0)),
    ];
  });
  const head = [
    "what is known by",
    "gateways",
    "hit rate %",
    "points lost",
    "TTFT mean ms",
    "spread of tokens",
    "errors",
  ];
  return [`## ${shape.id}: ${shape.title}`, "", table(head, lines), ""].join("\n");
}

async function main(): Promise<number> {
  const shapes = SHAPES.filter(({ id }) => values.shapes.split(",").includes(id));
  const rounds = Number(values.rounds);
  if (values.help || shapes.length === 0 || !(rounds >= 1)) {
    process.stdout.write(HELP);
    return values.help ? 0 : 2;
  }
  const machine = describeMachine();
  const others = watchOthers();
  const redis = values.sides.includes("own") ? await startRedis() : undefined;
  const all = shapes.map((shape) => ({
    shape,
    rows: setups(redis?.url).map((setup): Row => ({ setup, results: [] })),
  }));
  try {
    for (let round = 0; round < rounds; round++)
      for (const { shape, rows } of all)
        for (const { setup, results } of rows) {
          const { name, count, engineFlags } = setup;
          const seed = Number(values.seed) + round;
          const seconds = Number(values.seconds ?? shape.seconds);
          const result = await runCell(setup.gateways(), { shape, seed, seconds, engines: ENGINES, engineFlags });
          results.push(result);
          console.error(`${shape.id}, ${name}, ${count}: hits ${hits(result).toFixed(1)} %`);
        }
  } finally {
    await redis?.process.stop();
  }
  const text = [
    `# Hit rate with ${MANY} gateways`,
    "",
    `${machineText(machine)} ${othersText(others())} Policy cache_aware, ${rounds} rounds.`,
    "",
    ...all.map(shapeTable),
  ].join("\n");
  console.log(text);
  if (!values["no-write"]) console.error(await writeResult(`${machine.date}-routing-replicas`, text, { machine, all }));
  return all.some(({ rows }) => rows.some((row) => row.results.some((r) => r.sent.errors > 0))) ? 3 : 0;
}

await runProgram(main, PeerError);
