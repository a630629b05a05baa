import { readFileSync } from "node:fs";
import { availableParallelism, release, totalmem } from "node:os";
import { PINNED } from "./processes.ts";

/** What a figure depends on, without names of hosts or folders. */
export interface Machine {
  readonly date: string;
  readonly bun: string;
  readonly kernel: string;
  readonly cpu: string;
  readonly cores: number;
  readonly memory_gb: number;
  readonly pinned: boolean;
  /** Load average at the start: above 1, others were at work. */
  readonly load: number;
}

export function describeMachine(): Machine {
  const cpu = /^model name\s*: (.+)$/m.exec(readFileSync("/proc/cpuinfo", "utf8"))?.[1] ?? "unknown";
  return {
    date: new Date().toISOString().slice(0, 10),
    bun: Bun.version,
    kernel: /^\d+\.\d+(\.\d+)?/.exec(release())?.[0] ?? "unknown",
    cpu,
    cores: availableParallelism(),
    memory_gb: Math.round(totalmem() / 2 ** 30),
    pinned: PINNED,
    load: Number(readFileSync("/proc/loadavg", "utf8").split(" ")[0]),
  };
}

export function machineText(m: Machine): string {
  const pinning = m.pinned ? "gateway alone on core 0, engine and load generator on core 1" : "nothing pinned";
  return `${m.date}. ${m.cpu}, ${m.cores} cores, ${m.memory_gb} GB, Linux ${m.kernel}, Bun ${m.bun}; ${pinning}; load average at the start ${m.load}.`;
}
