/** What choosing by caches costs: CPU per request of a gateway with cache_aware, less that with round_robin. See docs/benchmarks.md. */

import { parseArgs } from "node:util";
import { loadGateway } from "../lab/client.ts";
import { describeMachine, machineText, othersText, watchOthers } from "../lab/machine.ts";
import { table, writeResult } from "../lab/output.ts";
import { runProgram } from "../lab/program.ts";
import { quantile } from "../loadgen/stats.ts";
import { PeerError } from "../peer/setup.ts";
import { startEngines } from "./engine-fleet.ts";
import { ownGateway, peerGateway, type RoutingGateway, type RunningRoutingGateway, startRouting } from "./gateways.ts";

const HELP = `CPU per request of cache_aware less round_robin, prompts of 2,000 tokens of which 1,800 are shared by 64 groups.

  node scripts/bun.mjs bench/routing/cpu.ts [flags]

  --workers LIST  simulated engines, in one process (8,64)
  --sides LIST    own,peer (both)
  --rounds N      loads to each gateway, by turns (20)
  --requests N    of each load (400); 40 loads go before, while code is compiled
  --binary FILE   another build of Collie
  --no-write      print only; else bench/results gets a Markdown and a JSON file
`;

const { values } = parseArgs({
  options: {
    workers: { type: "string", default: "8,64" },
    sides: { type: "string", default: "own,peer" },
    rounds: { type: "string", default: "20" },
    requests: { type: "string", default: "400" },
    binary: { type: "string" },
    "no-write": { type: "boolean" },
    help: { type: "boolean", short: "h" },
  },
});

const LOAD = "--streams 8 --prompt-tokens 2000 --prompts shared:1800:64 --max-tokens 1".split(" ");
/**
 * A just-in-time compiler takes 0.13 ms of CPU a request, by turns in threads of its own, until 12,000 requests or so; and every group must
 * be cached.
 */
const WARM_UP_LOADS = 40;
const ENGINE = ["--speed", "instant"];

/** Milliseconds of CPU a request of one gateway, round by round. */
interface Costs {
  readonly gateway: RoutingGateway;
  readonly workers: number;
  readonly ms: number[];
  errors: number;
}

/** All gateways stand before the same engines all the time, and the loads go to them by turns. */
async function measure(gateways: readonly RoutingGateway[], workers: number): Promise<Costs[]> {
  const engines = await startEngines(workers, ENGINE);
  const running: RunningRoutingGateway[] = [];
  try {
    for (const gateway of gateways) running.push(await startRouting(gateway, engines.urls));
    const all = gateways.map((gateway): Costs => ({ gateway, workers, ms: [], errors: 0 }));
    let first = 0;
    const load = async (at: number): Promise<number> => {
      // The groups stay, and no prompt comes twice.
      const flags = ["--requests", values.requests, "--seed", "1", "--first", String(first)];
      first += Number(values.requests);
      const [result] = await loadGateway(running[at]!, undefined, [...LOAD, ...flags]);
      all[at]!.errors += result!.errors;
      return result!.cpu_ms_per_request ?? Number.NaN;
    };
    const places = [...gateways.keys()];
    for (let i = 0; i < WARM_UP_LOADS; i++) for (const at of places) await load(at);
    for (let round = 0; round < Number(values.rounds); round++) {
      // Each comes first as often as the others.
      const from = round % places.length;
      for (const at of [...places.slice(from), ...places.slice(0, from)]) all[at]!.ms.push(await load(at));
    }
    return all;
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

function row({ gateway, workers, ms, errors }: Costs, base: Costs): string[] {
  const added = ms.map((value, i) => value - base.ms[i]!);
  const isJudged = gateway.label === "cache_aware";
  const isMet = quantile(Float64Array.from(added).sort(), 0.5) <= TARGET_MS;
  return [
    `${gateway.name}, ${gateway.label}`,
    String(workers),
    quartiles(ms),
    gateway === base.gateway ? "" : quartiles(added),
    isJudged ? (isMet ? "met" : "**missed**") : "",
    String(errors),
  ];
}

/** The first is what the others are held against. Collie receives KV events whatever its policy, so its base is without them. */
function gatewaysOf(side: string): RoutingGateway[] {
  if (side === "peer") return [peerGateway("round_robin"), peerGateway("cache_aware")];
  const own = (policy: string, ...flags: string[]) => ownGateway(policy, values.binary, flags);
  return [own("round_robin", "--no-kv-events"), own("round_robin"), own("cache_aware")];
}

async function main(): Promise<number> {
  const workers = values.workers.split(",").map(Number);
  if (values.help || workers.some((count) => !(count >= 1))) {
    process.stdout.write(HELP);
    return values.help ? 0 : 2;
  }
  const machine = describeMachine();
  const others = watchOthers();
  const all: Costs[] = [];
  const rows: string[][] = [];
  for (const count of workers)
    for (const side of values.sides.split(",")) {
      const costs = await measure(gatewaysOf(side), count);
      all.push(...costs);
      for (const cost of costs) {
        rows.push(row(cost, costs[0]!));
        console.error(rows.at(-1)!.join(", "));
      }
    }
  const text = [
    "# CPU of routing",
    "",
    `${machineText(machine)} ${othersText(others())} ${values.rounds} rounds of ${values.requests} requests to each, by turns; median (quartiles), and what a row adds to the first of its gateway, round by round. Prompts of 2,000 tokens, 1,800 of them shared by 64 groups, one token of answer, 8 at once; engines answer at once and send KV events.`,
    "",
    table(["gateway, policy", "workers", "CPU ms/request", "added ms", `≤ ${TARGET_MS}`, "errors"], rows),
    "",
  ].join("\n");
  console.log(text);
  if (!values["no-write"]) console.error(await writeResult(`${machine.date}-routing-cpu`, text, { machine, all }));
  return all.some(({ errors }) => errors > 0) ? 3 : 0;
}

await runProgram(main, PeerError);
