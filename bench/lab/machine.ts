import { readFileSync } from "node:fs";
import { availableParallelism, release, totalmem } from "node:os";
import { PINNED, spentCpuMs } from "./processes.ts";

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

/** Milliseconds that all cores of the machine have been busy since it started. */
function busyMs(): number {
  const [user, nice, system, , , irq, softirq, steal] = readFileSync("/proc/stat", "utf8")
    .split("\n")[0]!
    .trim()
    .split(/\s+/)
    .slice(1)
    .map(Number) as [number, number, number, number, number, number, number, number];
  return (user + nice + system + irq + softirq + steal) * 10;
}

/** Watches for work that is not ours; the function it gives says how many cores it kept busy since, on average. */
export function watchOthers(): () => number {
  const busy = busyMs();
  const spent = spentCpuMs();
  const started = performance.now();
  return () => Math.max(0, busyMs() - busy - (spentCpuMs() - spent)) / (performance.now() - started);
}

export function othersText(cores: number): string {
  const warning =
    cores > 0.1 ? " The machine was **not quiet**: trust the ratios more than the figures, and neither much." : "";
  return `Other work on the machine: ${cores.toFixed(2)} cores.${warning}`;
}
