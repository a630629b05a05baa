import { cpuBetween, readCpu, residentBytes } from "./procfs.ts";

export interface IdleReading {
  readonly cpu_ms_per_s: number;
  readonly rss_mb: number;
}

/** CPU and memory of processes that are left alone for some seconds. */
export async function readIdle(pids: readonly number[], seconds: number): Promise<IdleReading> {
  const before = readCpu(pids);
  const started = performance.now();
  await Bun.sleep(seconds * 1000);
  const cpuNs = cpuBetween(before, readCpu(pids));
  return {
    cpu_ms_per_s: cpuNs / 1e6 / ((performance.now() - started) / 1000),
    rss_mb: residentBytes(pids) / 1e6,
  };
}
