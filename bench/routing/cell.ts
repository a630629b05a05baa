/** One cell: fresh engines, fresh gateways, a warm-up that is thrown away, and a shape's stream. */
import { join } from "node:path";
import { ROOT } from "../lab/paths.ts";
import { runToEnd, StartError } from "../lab/processes.ts";
import { cpuBetween, readCpu, withChildren } from "../loadgen/procfs.ts";
import { type EngineFleet, type FleetWork, startEngines, workBetween } from "./engine-fleet.ts";
import { type RoutingGateway, type RunningRoutingGateway, startRouting } from "./gateways.ts";
import type { SendResult } from "./send-result.ts";
import { type Shape, WARM_UP } from "./shapes.ts";

export interface Cell {
  readonly shape: Shape;
  readonly seed: number;
  readonly seconds: number;
  readonly engines: number;
  /** Further flags of `collie engine`. */
  readonly engineFlags?: readonly string[];
}

/** What was measured; CPU in cores, on average over the stream. */
export interface CellResult {
  readonly sent: SendResult;
  readonly work: FleetWork;
  readonly gatewayCores: number;
  readonly engineCores: number;
  readonly clientCores: number;
  /** Requests that stayed open at the engines. */
  readonly leftOpen: number;
}

/** Sends a shape through gateways, each request through one of them at random, and gives what came of it. Throws StartError. */
export async function runCell(gateways: readonly RoutingGateway[], cell: Cell): Promise<CellResult> {
  const flags = ["--kv-tokens", String(cell.shape.kvTokens), ...(cell.engineFlags ?? [])];
  const engines = await startEngines(cell.engines, flags);
  const running: RunningRoutingGateway[] = [];
  try {
    await Promise.all(gateways.map(async (gateway) => running.push(await startRouting(gateway, engines.urls))));
    const keys = gateways.some(({ isKeyed }) => isKeyed) ? ["--keys"] : [];
    await send(running, WARM_UP, cell.seed, WARM_UP.seconds, keys);
    return await measure(running, engines, cell, keys);
  } finally {
    await Promise.all(running.map((gateway) => gateway.stop()));
    await engines.stop();
  }
}

async function measure(
  gateways: readonly RunningRoutingGateway[],
  engines: EngineFleet,
  { shape, seed, seconds }: Cell,
  keys: readonly string[],
): Promise<CellResult> {
  const pids = withChildren(gateways.map(({ pid }) => pid));
  const before = { counts: await engines.counts(), gateway: readCpu(pids), engines: readCpu([engines.pid]) };
  const started = performance.now();
  const sent = await send(gateways, shape, seed, seconds, keys);
  const wallNs = (performance.now() - started) * 1e6;
  const gatewayCores = cpuBetween(before.gateway, readCpu(pids)) / wallNs;
  const engineCores = cpuBetween(before.engines, readCpu([engines.pid])) / wallNs;
  const after = await engines.counts();
  return {
    sent,
    work: workBetween(before.counts, after),
    gatewayCores,
    engineCores,
    clientCores: (sent.client_cpu_ms * 1e6) / wallNs,
    leftOpen: after.reduce((open, counts) => open + counts.open, 0),
  };
}

/** The client, a process of its own. */
async function send(
  gateways: readonly { readonly url: string }[],
  shape: Shape,
  seed: number,
  seconds: number,
  keys: readonly string[],
): Promise<SendResult> {
  const flags = ["--shape", shape.id, "--seed", String(seed), "--seconds", String(seconds)];
  const urls = gateways.flatMap(({ url }) => ["--url", url]);
  const script = join(ROOT, "bench", "routing", "send.ts");
  const { status, out, problems } = await runToEnd(1, [process.execPath, "run", script, ...flags, ...urls, ...keys]);
  if (status !== 0) throw new StartError(`the client ended with status ${status}: ${problems}`);
  return JSON.parse(out) as SendResult;
}
