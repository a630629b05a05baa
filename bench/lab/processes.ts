/** Starting, pinning and ending the processes of a measurement. */
import { closeSync, mkdirSync, openSync, readFileSync } from "node:fs";
import { availableParallelism } from "node:os";
import { join } from "node:path";
import type { Subprocess } from "bun";
import { workFolder } from "./paths.ts";

/** A process that should serve does not. */
export class StartError extends Error {
  override readonly name = "StartError";
}

export interface Running {
  readonly pid: number;
  readonly startedAt: number;
  /** Rejects with StartError if the process ends by itself. */
  readonly ended: Promise<never>;
  /** Ends the process and waits until it is gone. */
  stop(): Promise<void>;
}

/** The gateway alone on core 0, everything else on core 1; without a second core or `taskset` nothing is pinned. */
export const PINNED: boolean = availableParallelism() >= 2 && Bun.which("taskset") !== null;

/** A core by its number, or several as `taskset` lists them (`0,1`); undefined: any. */
export type Cores = number | string | undefined;

/** The command, bound to cores where there are two and some are named. */
export function onCore(core: Cores, command: readonly string[]): string[] {
  return PINNED && core !== undefined ? ["taskset", "-c", String(core), ...command] : [...command];
}

/** CPU that ended children used, in milliseconds. */
let spentMs = 0;

/** Books the CPU of a child that has ended. */
function bookChild(child: Subprocess): void {
  spentMs += Number(child.resourceUsage()?.cpuTime.total ?? 0) / 1000;
}

/** Runs a program to its end, bound as `onCore` binds it, and books its CPU. */
export async function runToEnd(core: Cores, command: readonly string[]) {
  const child = Bun.spawn(onCore(core, command), { stdin: "ignore", stdout: "pipe", stderr: "pipe" });
  const [out, problems] = await Promise.all([new Response(child.stdout).text(), new Response(child.stderr).text()]);
  const status = await child.exited;
  bookChild(child);
  return { status, out, problems: problems.trim() };
}

/** CPU of all ended children and of this process, in milliseconds: against the machine's, it shows who else was at work. */
export function spentCpuMs(): number {
  return spentMs + process.cpuUsage().user / 1000 + process.cpuUsage().system / 1000;
}

const running = new Set<Subprocess>();
const KILL_AFTER_MS = 5000;

for (const signal of ["SIGINT", "SIGTERM", "SIGHUP"] as const)
  process.on(signal, () => {
    for (const child of running) child.kill("SIGKILL");
    process.exit(130);
  });
process.on("exit", () => {
  for (const child of running) child.kill("SIGKILL");
});

/** Starts a process; what it prints goes to a log in the work folder. */
export function start(
  name: string,
  command: readonly string[],
  core: Cores,
  env: Readonly<Record<string, string>> = {},
): Running {
  const folder = join(workFolder(), "log");
  mkdirSync(folder, { recursive: true });
  const logFile = join(folder, `${name}.log`);
  const log = openSync(logFile, "w");
  const startedAt = performance.now();
  const child = Bun.spawn(onCore(core, command), {
    stdin: "ignore",
    stdout: log,
    stderr: log,
    env: { ...process.env, ...env },
  });
  closeSync(log);
  running.add(child);
  let stopping = false;
  const gone = child.exited.then((status) => {
    running.delete(child);
    bookChild(child);
    return status;
  });
  const ended = gone.then((status): never => {
    const tail = readFileSync(logFile, "utf8").trimEnd().split("\n").slice(-5).join("\n");
    throw new StartError(`${name} ended with status ${status}${stopping ? "" : `:\n${tail}`}`);
  });
  ended.catch(() => {});
  return {
    pid: child.pid,
    startedAt,
    ended,
    async stop() {
      stopping = true;
      child.kill("SIGTERM");
      const timer = setTimeout(() => child.kill("SIGKILL"), KILL_AFTER_MS);
      await gone;
      clearTimeout(timer);
    },
  };
}

/** A port that is free now. */
export function freePort(): number {
  const server = Bun.listen({ hostname: "127.0.0.1", port: 0, socket: { data() {} } });
  const { port } = server;
  server.stop(true);
  return port;
}

/** Asks until `check` says yes; gives the milliseconds since the start of the process. Throws StartError. */
export async function untilTrue(
  running: Running,
  what: string,
  check: () => Promise<boolean>,
  limitMs = 60_000,
): Promise<number> {
  for (;;) {
    const answer = await Promise.race([check(), running.ended]);
    const passed = performance.now() - running.startedAt;
    if (answer) return passed;
    if (passed > limitMs) throw new StartError(`${what} did not happen within ${limitMs / 1000} s`);
    await Promise.race([Bun.sleep(2), running.ended]);
  }
}

/** True when somebody accepts connections at the port. */
export async function accepts(port: number): Promise<boolean> {
  try {
    const socket = await Bun.connect({ hostname: "127.0.0.1", port, socket: { data() {} } });
    socket.end();
    return true;
  } catch {
    return false;
  }
}

/** True when the URL answers 200. */
export async function answers(url: string): Promise<boolean> {
  try {
    const response = await fetch(url, { signal: AbortSignal.timeout(1000), keepalive: false });
    await response.arrayBuffer();
    return response.status === 200;
  } catch {
    return false;
  }
}
