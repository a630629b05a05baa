/**
 * Real servers for the tests: started here on a free port, in a temporary folder, by a user without rights; or those at
 * COLLIE_TEST_POSTGRES_URL and COLLIE_TEST_REDIS_URL. Where there is neither, undefined.
 */
import { chmodSync, chownSync, mkdtempSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

export interface Server {
  readonly url: string;
  readonly password: string;
  /** Kills it as a crash would. */
  kill(): Promise<void>;
  /** Starts it again on the same port, with what it had on disk. */
  start(): Promise<void>;
  stop(): Promise<void>;
}

/** nobody's; servers refuse to run as root. */
const UNPRIVILEGED = 65534;
const STARTED_MS = 20_000;
const asRoot = process.getuid?.() === 0;

function find(...names: readonly string[]): string | undefined {
  for (const name of names) {
    const found = Bun.which(name);
    if (found !== null) return found;
  }
  return undefined;
}

/** Debian keeps PostgreSQL's server out of the path. */
function postgresBin(name: string): string | undefined {
  const inPath = find(name);
  if (inPath !== undefined) return inPath;
  const versions = "/usr/lib/postgresql";
  try {
    for (const version of readdirSync(versions).sort().reverse()) {
      const path = join(versions, version, "bin", name);
      if (Bun.which(path) !== null) return path;
    }
  } catch {}
  return undefined;
}

function folder(name: string): string {
  const made = mkdtempSync(join(tmpdir(), `collie-${name}-`));
  chmodSync(made, 0o700);
  if (asRoot) chownSync(made, UNPRIVILEGED, UNPRIVILEGED);
  return made;
}

const unprivileged = (command: readonly string[]): string[] =>
  asRoot
    ? ["setpriv", `--reuid=${UNPRIVILEGED}`, `--regid=${UNPRIVILEGED}`, "--clear-groups", ...command]
    : [...command];

function freePort(): number {
  const probe = Bun.listen({ hostname: "127.0.0.1", port: 0, socket: { data() {} } });
  const { port } = probe;
  probe.stop(true);
  return port;
}

async function until(what: string, ready: () => Promise<boolean>): Promise<void> {
  const deadline = performance.now() + STARTED_MS;
  while (!(await ready().catch(() => false))) {
    if (performance.now() > deadline) throw new Error(`${what} did not start`);
    await Bun.sleep(50);
  }
}

interface Process {
  readonly pid: number;
  readonly parent: number;
  readonly isZombie: boolean;
}

function processes(): Process[] {
  const { stdout } = Bun.spawnSync(["ps", "-A", "-o", "pid=,ppid=,stat="]);
  return [...stdout.toString().matchAll(/^\s*(\d+)\s+(\d+)\s+(\S+)/gm)].map(([, pid, parent, state]) => ({
    pid: Number(pid),
    parent: Number(parent),
    isZombie: state!.startsWith("Z"),
  }));
}

/**
 * Kills a server with its children, and resolves when none of them runs any more: those of PostgreSQL are in sessions of their own, and
 * still answer for a moment after it has gone.
 */
async function killWhole(server: Bun.Subprocess): Promise<void> {
  server.kill("SIGSTOP"); // it makes no more of them
  const children = processes().filter(({ parent }) => parent === server.pid);
  server.kill("SIGKILL");
  for (const { pid } of children)
    try {
      process.kill(pid, "SIGKILL");
    } catch {} // it has gone by itself
  await server.exited;
  const killed = new Set(children.map(({ pid }) => pid));
  for (let tries = 0; processes().some(({ pid, isZombie }) => killed.has(pid) && !isZombie); tries++) {
    if (tries === 500) throw new Error("a killed server still runs");
    await Bun.sleep(10);
  }
}

async function server(
  at: string,
  command: readonly string[],
  url: string,
  password: string,
  ready: () => Promise<boolean>,
): Promise<Server> {
  let child: Bun.Subprocess | undefined;
  const start = async (): Promise<void> => {
    child = Bun.spawn(unprivileged(command), {
      cwd: at,
      stdout: "ignore",
      stderr: "ignore",
      env: { PATH: process.env["PATH"] },
    });
    await until(command[0] ?? "", ready);
  };
  await start();
  return {
    url,
    password,
    start,
    async kill() {
      if (child !== undefined) await killWhole(child);
    },
    async stop() {
      child?.kill("SIGINT");
      await child?.exited;
      rmSync(at, { recursive: true, force: true });
    },
  };
}

const remote = (url: string): Server => ({
  url,
  password: new URL(url).password,
  kill: async () => {},
  start: async () => {},
  stop: async () => {},
});

export const hasPostgres = process.env["COLLIE_TEST_POSTGRES_URL"] !== undefined || postgresBin("initdb") !== undefined;
export const hasRedis =
  process.env["COLLIE_TEST_REDIS_URL"] !== undefined || find("redis-server", "valkey-server") !== undefined;
/** Only a server of our own may be killed. */
export const ownPostgres = hasPostgres && process.env["COLLIE_TEST_POSTGRES_URL"] === undefined;
export const ownRedis = hasRedis && process.env["COLLIE_TEST_REDIS_URL"] === undefined;

export async function startPostgres(): Promise<Server> {
  const given = process.env["COLLIE_TEST_POSTGRES_URL"];
  if (given !== undefined) return remote(given);
  const at = folder("postgres");
  const password = "not-for-logs";
  writeFileSync(join(at, "password"), password);
  if (asRoot) chownSync(join(at, "password"), UNPRIVILEGED, UNPRIVILEGED);
  const data = join(at, "data");
  const made = Bun.spawnSync(
    unprivileged([
      postgresBin("initdb")!,
      "-D",
      data,
      "-U",
      "collie",
      "-A",
      "scram-sha-256",
      `--pwfile=${join(at, "password")}`,
      "-N",
    ]),
    { cwd: at, stdout: "ignore", stderr: "pipe", env: { PATH: process.env["PATH"] } },
  );
  if (made.exitCode !== 0) throw new Error(`initdb: ${made.stderr.toString()}`);
  const port = freePort();
  const url = `postgres://collie:${password}@127.0.0.1:${port}/postgres`;
  return server(
    at,
    [postgresBin("postgres")!, "-D", data, "-p", String(port), "-k", at, "-c", "listen_addresses=127.0.0.1"],
    url,
    password,
    async () => {
      const sql = new Bun.SQL(url, { max: 1, connectionTimeout: 2 });
      try {
        await sql.unsafe("SELECT 1");
        return true;
      } finally {
        await sql.close({ timeout: 0 });
      }
    },
  );
}

export async function startRedis(): Promise<Server> {
  const given = process.env["COLLIE_TEST_REDIS_URL"];
  if (given !== undefined) return remote(given);
  const at = folder("redis");
  const port = freePort();
  const password = "not-for-logs";
  const url = `redis://:${password}@127.0.0.1:${port}`;
  return server(
    at,
    [
      find("redis-server", "valkey-server")!,
      ...["--port", String(port), "--bind", "127.0.0.1", "--requirepass", password, "--dir", at],
      ...["--save", "", "--appendonly", "yes", "--appendfsync", "always"],
    ],
    url,
    password,
    async () => {
      const redis = new Bun.RedisClient(url, { connectionTimeout: 2000, maxRetries: 0 });
      try {
        return (await redis.send("PING", [])) === "PONG";
      } finally {
        redis.close();
      }
    },
  );
}
