import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { collieBinary } from "./binary.ts";

export const root = join(import.meta.dir, "..", "..", "..");

export interface Program {
  readonly pid: number;
  readonly exited: Promise<number>;
  output(): string;
  /** Resolves with the match once the output has it. */
  until(pattern: RegExp, ms?: number): Promise<RegExpExecArray>;
  kill(signal?: NodeJS.Signals): void;
  /** SIGTERM, and SIGKILL if that is not enough; resolves to the exit status. */
  stop(): Promise<number>;
}

const state = mkdtempSync(join(tmpdir(), "collie-e2e-"));
process.on("exit", () => rmSync(state, { recursive: true, force: true }));

/** Environment of a program under test: nothing of the tests' own but the path, and a cache and a history shared by all of them. */
export function cleanEnv(extra: Record<string, string> = {}): Record<string, string> {
  return {
    PATH: process.env["PATH"] ?? "",
    XDG_CACHE_HOME: join(root, ".cache", "e2e"),
    COLLIE_HISTORY_URL: "memory",
    ...extra,
  };
}

export interface StartOptions {
  readonly cwd?: string;
  readonly env?: Record<string, string>;
}

/** Starts the compiled program. */
export function start(args: readonly string[], options: StartOptions = {}): Program {
  const child = Bun.spawn([collieBinary(), ...args], {
    cwd: options.cwd ?? tmpdir(),
    env: cleanEnv(options.env),
    stdin: "ignore",
    stdout: "pipe",
    stderr: "pipe",
  });
  let output = "";
  const waiting = new Set<() => void>();
  const read = async (stream: ReadableStream<Uint8Array>) => {
    const decoder = new TextDecoder();
    for await (const chunk of stream) {
      output += decoder.decode(chunk, { stream: true });
      for (const check of waiting) check();
    }
  };
  const reading = Promise.all([read(child.stdout), read(child.stderr)]);
  const exited = child.exited.then(async (status) => {
    await reading;
    for (const check of waiting) check();
    return status;
  });
  let over = false;
  exited.then(() => {
    over = true;
  });
  return {
    pid: child.pid,
    exited,
    output: () => output,
    until(pattern, ms = 15_000) {
      return new Promise((resolve, reject) => {
        const done = () => {
          clearTimeout(timer);
          waiting.delete(check);
        };
        const check = () => {
          const match = pattern.exec(output);
          if (match !== null) {
            done();
            resolve(match);
          } else if (over) {
            done();
            reject(new Error(`ended without ${pattern}:\n${output}`));
          }
        };
        const timer = setTimeout(() => {
          done();
          reject(new Error(`no ${pattern} within ${ms} ms:\n${output}`));
        }, ms);
        waiting.add(check);
        exited.then(check);
        check();
      });
    },
    kill: (signal = "SIGTERM") => child.kill(signal),
    async stop() {
      child.kill("SIGTERM");
      const timer = setTimeout(() => child.kill("SIGKILL"), 5000);
      const status = await exited;
      clearTimeout(timer);
      return status;
    },
  };
}

export interface EngineStats {
  readonly received: number;
  readonly finished: number;
  readonly abortedByRpc: number;
  readonly abortedByCancel: number;
  readonly open: number;
  readonly blocksFreedByAborts: number;
  readonly tokensSent: number;
}

export interface EngineRequest {
  readonly requestId: string;
  readonly promptTokens: number;
  readonly sampling: Record<string, unknown>;
  readonly outcome: string;
  readonly stream: boolean;
}

export interface TestEngine {
  readonly program: Program;
  readonly url: string;
  stats(): Promise<EngineStats>;
  requests(): Promise<readonly EngineRequest[]>;
  /** Posts to the address where faults are set. */
  control(path: string, body?: unknown): Promise<Response>;
  /** Forgets the faults that were set. */
  heal(): Promise<void>;
  stop(): Promise<void>;
}

/** A simulated engine with a script (YAML) of answers. */
export async function startEngine(script = "[]", args: readonly string[] = []): Promise<TestEngine> {
  const folder = mkdtempSync(join(tmpdir(), "collie-e2e-"));
  writeFileSync(join(folder, "script.yaml"), script);
  const program = start(["engine", "--port", "0", "--script", join(folder, "script.yaml"), ...args]);
  const [, url, stats] = await program.until(/ready on (grpc:\S+), statistics on (http:\S+)\/stats/);
  return {
    program,
    url: url!,
    stats: async () => (await (await fetch(`${stats}/stats`)).json()) as EngineStats,
    requests: async () => (await (await fetch(`${stats}/requests`)).json()) as EngineRequest[],
    control: (path, body) =>
      fetch(stats + path, { method: "POST", ...(body !== undefined && { body: JSON.stringify(body) }) }),
    async heal() {
      await fetch(`${stats}/faults`, { method: "DELETE" });
    },
    async stop() {
      await program.stop();
      rmSync(folder, { recursive: true, force: true });
    },
  };
}

export interface TestGateway {
  readonly program: Program;
  readonly url: string;
  readonly model: string;
  stop(): Promise<void>;
}

export async function startGateway(
  engines: readonly TestEngine[],
  args: readonly string[] = [],
  options: StartOptions = {},
): Promise<TestGateway> {
  const urls = engines.map((engine) => engine.url);
  const program = start(["serve", "--host", "127.0.0.1", "--port", "0", "--worker-urls", ...urls, ...args], options);
  const [, url, model] = await program.until(/ready on (http:\S+), model (\S+)/);
  return {
    program,
    url: url!,
    model: model!,
    async stop() {
      await program.stop();
    },
  };
}

/** A connection that a test writes to byte by byte. */
export interface Connection {
  write(text: string): void;
  /** All that came so far. */
  heard(): string;
  isClosed(): boolean;
}

export async function connect({ url }: { readonly url: string }): Promise<Connection> {
  const { hostname, port } = new URL(url);
  let heard = "";
  let closed = false;
  const socket = await Bun.connect({
    hostname,
    port: Number(port),
    socket: {
      data(_, data) {
        heard += data.toString();
      },
      close() {
        closed = true;
      },
    },
  });
  return { write: (text) => void socket.write(text), heard: () => heard, isClosed: () => closed };
}

/** Tries until the check holds; gives how long that took in milliseconds, or throws after `ms`. */
export async function eventually(check: () => Promise<boolean> | boolean, ms = 3000): Promise<number> {
  const started = performance.now();
  while (!(await check())) {
    if (performance.now() - started > ms) throw new Error(`not true within ${ms} ms`);
    await Bun.sleep(2);
  }
  return performance.now() - started;
}

/** Posts a chat request as it is. */
export function chat(gateway: { url: string }, body: unknown, init: RequestInit = {}): Promise<Response> {
  return fetch(`${gateway.url}/v1/chat/completions`, {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: typeof body === "string" ? body : JSON.stringify(body),
    ...init,
  });
}

export const user = (content: string) => [{ role: "user" as const, content }];
