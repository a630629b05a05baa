/** The load generator and the direct reader, each as a process of its own on core 1. */
import { join } from "node:path";
import type { IdleReading } from "../loadgen/idle.ts";
import { readIdle } from "../loadgen/idle.ts";
import type { LoadResult } from "../loadgen/result.ts";
import { ROOT } from "./paths.ts";
import { type Cores, type Running, runToEnd, StartError } from "./processes.ts";

/** Runs a measuring program, on core 1 unless told otherwise; one result a repeat. Errors in the load are in the results. */
async function measure(script: string, args: readonly string[], core: Cores = 1): Promise<LoadResult[]> {
  const command = [process.execPath, "run", join(ROOT, "bench", script), "--json", ...args];
  const { status, out, problems } = await runToEnd(core, command);
  if (status !== 0 && status !== 3) throw new StartError(`${script} ended with status ${status}: ${problems}`);
  return out
    .trim()
    .split("\n")
    .map((line) => JSON.parse(line) as LoadResult);
}

/** Loads a gateway with the flags of the load generator and watches its process. */
export function loadGateway(
  gateway: { readonly url: string; readonly pid: number },
  idle: IdleReading | undefined,
  flags: readonly string[],
  core: Cores = 1,
): Promise<LoadResult[]> {
  const watched = ["--pid", String(gateway.pid), "--idle-ms-s", String(idle?.cpu_ms_per_s ?? 0)];
  return measure("loadgen/main.ts", ["--url", gateway.url, ...watched, ...flags], core);
}

/** The same load without a gateway: token ids over gRPC straight to the engine, which is watched. */
export function loadEngine(
  engine: { readonly port: number; readonly pid: number },
  flags: readonly string[],
): Promise<LoadResult[]> {
  return measure("direct.ts", ["--url", `http://127.0.0.1:${engine.port}`, "--pid", String(engine.pid), ...flags]);
}

/** A process left alone. */
export function idleOf(process: Running, seconds: number): Promise<IdleReading> {
  return readIdle([process.pid], seconds);
}
