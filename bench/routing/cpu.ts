/** What choosing by caches costs: CPU per request of a gateway with cache_aware, less that with round_robin. See docs/benchmarks.md. */
import { parseArgs } from "node:util";
import { loadGateway } from "../lab/client.ts";
import { describeMachine, machineText, othersText, watchOthers } from "../lab/machine.ts";
import { table, writeResult } from "../lab/output.ts";
import { StartError } from "../lab/processes.ts";
import { quantile } from "../loadgen/stats.ts";
import { PeerError } from "../peer/setup.ts";
import { startEngines } from "./engine-fleet.ts";
import { ownGateway, peerGateway, type RoutingGateway, type RunningRoutingGateway, startRouting } from "./gateways.ts";

const HELP = `CPU per request of cache_aware less round_robin, prompts of 2,000 tokens of which 1,800 are shared by 64 groups.

  node scripts/bun.mjs bench/routing/cpu.ts [flags]

  --workers LIST  simulated engines, in one process (8,64)
  --sides LIST    own,peer (both)
  --pairs N       pairs of loads, by turns (20)
  --requests N    of each load (400)
  --policies A,B  another pair than round_robin,cache_aware
  --binary FILE   another build of Collie
  --no-write      print only; else bench/results gets a Markdown and a JSON file
`;

const { values } = parseArgs({
  options: {
    workers: { type: "string", default: "8,64" },
    sides: { type: "string", default: "own,peer" },
    pairs: { type: "string", default: "20" },
    requests: { type: "string", default: "400" },
    policies: { type: "string", default: "round_robin,cache_aware" },
    binary: { type: "string" },
    "no-write": { type: "boolean" },
    help: { type: "boolean", short: "h" },
  },
});

const LOAD = "--streams 8 --prompt-tokens 2000 --prompts shared:1800:64 --max-tokens 1".split(" ");
/** Enough for a just-in-time compiler, and for every group to be cached. */
const WARM_UP_LOADS = 4;
const ENGINE = ["--speed", "instant"];

/** Milliseconds of CPU a request, pair by pair. */
interface Costs {
  readonly name: string;
  readonly workers: number;
  readonly base: number[];
  readonly other: number[];
  errors: number;
}

/** Both gateways stand before the same engines all the time, and the loads go to one and the other by turns. */
async function measure(pair: readonly [RoutingGateway, RoutingGateway], workers: number): Promise<Costs> {
  const engines = await startEngines(workers, ENGINE);
  const running: RunningRoutingGateway[] = [];
  try {
    for (const gateway of pair) running.push(await startRouting(gateway, engines.urls));
    const costs: Costs = { name: pair[0].name, workers, base: [], other: [], errors: 0 };
    let first = 0;
    const load = async (gateway: RunningRoutingGateway): Promise<number> => {
      // The groups stay, and no prompt comes twice.
      const flags = ["--requests", values.requests, "--seed", "1", "--first", String(first)];
      first += Number(values.requests);
      const [result] = await loadGateway(gateway, undefined, [...LOAD, ...flags]);
      costs.errors += result!.errors;
      return result!.cpu_ms_per_request ?? Number.NaN;
    };
    for (let i = 0; i < WARM_UP_LOADS; i++) for (const gateway of running) await load(gateway);
    for (let i = 0; i < Number(values.pairs); i++) {
      // Each is first as often as the other.
      const order = i % 2 === 0 ? [0, 1] : [1, 0];
      for (const at of order) (at === 0 ? costs.base : costs.other).push(await load(running[at]!));
    }
    return costs;
  } finally {
    await Promise.all(running.map((gateway) => gateway.stop()));
    await engines.stop();
  }
}

const quartiles = (numbers: readonly number[]): string => {
  const sorted = Float64Array.from(numbers).sort();
  const at = (q: number) => quantile(sorted, q).toFixed(3);
  return `${at(0.5)} (${at(0.25)}–${at(0.75)})`;
};

const TARGET_MS = 0.025;

function row({ name, workers, base, other, errors }: Costs): string[] {
  const added = other.map((ms, i) => ms - base[i]!);
  const median = quantile(Float64Array.from(added).sort(), 0.5);
  return [
    name,
    String(workers),
    quartiles(base),
    quartiles(other),
    quartiles(added),
    median <= TARGET_MS ? "met" : "**missed**",
    String(errors),
  ];
}

async function main(): Promise<number> {
  const [base, other] = values.policies.split(",");
  const workers = values.workers.split(",").map(Number);
  if (values.help || base === undefined || other === undefined || workers.some((count) => !(count >= 1))) {
    process.stdout.write(HELP);
    return values.help ? 0 : 2;
  }
  const machine = describeMachine();
  const others = watchOthers();
  const makers = [
    { side: "own", make: (policy: string) => ownGateway(policy, values.binary) },
    { side: "peer", make: (policy: string) => peerGateway(policy) },
  ].filter(({ side }) => values.sides.split(",").includes(side));
  const all: Costs[] = [];
  for (const count of workers)
    for (const { make } of makers) {
      const costs = await measure([make(base), make(other)], count);
      all.push(costs);
      console.error(row(costs).join(", "));
    }
  const text = [
    `# CPU of routing: ${other} less ${base}`,
    "",
    `${machineText(machine)} ${othersText(others())} ${values.pairs} pairs of ${values.requests} requests, by turns; median (quartiles). Prompts of 2,000 tokens, 1,800 of them shared by 64 groups, one token of answer, 8 at once; engines answer at once and send KV events.`,
    "",
    table(
      ["gateway", "workers", `${base}, ms/request`, `${other}, ms/request`, "added ms", `≤ ${TARGET_MS}`, "errors"],
      all.map(row),
    ),
    "",
  ].join("\n");
  console.log(text);
  if (!values["no-write"]) console.error(await writeResult(`${machine.date}-routing-cpu`, text, { machine, all }));
  return all.some(({ errors }) => errors > 0) ? 3 : 0;
}

try {
  process.exit(await main());
} catch (error) {
  if (!(error instanceof StartError || error instanceof PeerError)) throw error;
  console.error(error.message);
  process.exit(1);
}
