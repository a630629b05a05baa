/** CPU time and memory of processes, from Linux's /proc. */
import { readdirSync, readFileSync } from "node:fs";

/** CPU used by some processes up to one moment. */
export interface CpuReading {
  /** Nanoseconds on a CPU, by thread, from the scheduler's statistics. */
  readonly threads: ReadonlyMap<string, number>;
  /** User and system time of the processes with all threads that ended, in nanoseconds, in steps of 10 ms. */
  readonly coarseNs: number;
}

/** USER_HZ is 100 on Linux. */
const NS_PER_TICK = 10_000_000;
const PAGE_BYTES = 4096;

function read(path: string): string | undefined {
  try {
    return readFileSync(path, "latin1");
  } catch {
    return undefined;
  }
}

/** Reads all threads of the processes; one that is gone counts nothing. */
export function readCpu(pids: readonly number[]): CpuReading {
  const threads = new Map<string, number>();
  let coarseNs = 0;
  for (const pid of pids) {
    const stat = read(`/proc/${pid}/stat`);
    if (stat === undefined) continue;
    // After the name, which may hold anything: state is field 3, utime and stime are 14 and 15.
    const fields = stat.slice(stat.lastIndexOf(")") + 2).split(" ");
    coarseNs += (Number(fields[11]) + Number(fields[12])) * NS_PER_TICK;
    let names: string[] = [];
    try {
      names = readdirSync(`/proc/${pid}/task`);
    } catch {}
    for (const name of names) {
      const text = read(`/proc/${pid}/task/${name}/schedstat`);
      if (text !== undefined) threads.set(name, Number.parseInt(text, 10));
    }
  }
  return { threads, coarseNs };
}

/**
 * Nanoseconds used between two readings. The scheduler's counters are exact but lose the threads that ended in between: where the
 * coarse counter says clearly more, it counts.
 */
export function cpuBetween(earlier: CpuReading, later: CpuReading): number {
  let exact = 0;
  for (const [thread, ns] of later.threads) exact += Math.max(0, ns - (earlier.threads.get(thread) ?? 0));
  const coarse = Math.max(0, later.coarseNs - earlier.coarseNs);
  return exact === 0 || coarse > exact + 3 * NS_PER_TICK ? coarse : exact;
}

/** Resident memory of the processes together, in bytes. */
export function residentBytes(pids: readonly number[]): number {
  let pages = 0;
  for (const pid of pids) pages += Number(read(`/proc/${pid}/statm`)?.split(" ")[1] ?? 0);
  return pages * PAGE_BYTES;
}

/** The processes and all their descendants. */
export function withChildren(roots: readonly number[]): number[] {
  const parents: [pid: number, parent: number][] = [];
  for (const name of readdirSync("/proc")) {
    if (!/^\d+$/.test(name)) continue;
    const stat = read(`/proc/${name}/stat`);
    if (stat !== undefined) parents.push([Number(name), Number(stat.slice(stat.lastIndexOf(")") + 2).split(" ")[1])]);
  }
  const all = [...roots];
  for (let i = 0; i < all.length; i++)
    for (const [pid, parent] of parents) if (parent === all[i] && !all.includes(pid)) all.push(pid);
  return all;
}

/** Samples the memory of processes until it is stopped; `stop` gives the greatest sample in bytes. */
export function watchMemory(pids: readonly number[], everyMs = 250): { stop(): number } {
  let peak = residentBytes(pids);
  const timer = setInterval(() => {
    peak = Math.max(peak, residentBytes(pids));
  }, everyMs);
  return {
    stop() {
      clearInterval(timer);
      return Math.max(peak, residentBytes(pids));
    },
  };
}
