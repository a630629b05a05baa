/** The servers under test: a real vLLM on the CPU, and the compiled gateway in front of it. */
import { existsSync, statSync } from "node:fs";
import { createServer } from "node:net";
import { basename, join } from "node:path";
import { Glob } from "bun";

export const root = join(import.meta.dir, "..", "..");

/** Folder with the engine and its models; made by setup-vllm-cpu.sh. */
export const enginesFolder = process.env["ENGINES"] ?? join(root, ".cache", "engines");

/** Whether a source file is newer than the binary, which then would not be what is being tested. */
function isStale(binary: string): boolean {
  const made = statSync(binary).mtimeMs;
  for (const file of new Glob("{src,proto}/**/*").scanSync({ cwd: root }))
    if (statSync(join(root, file)).mtimeMs > made) return true;
  return false;
}

let building: Promise<string> | undefined;

async function build(): Promise<string> {
  const given = process.env["COLLIE"];
  if (given) return given;
  const binary = join(root, "dist", "collie");
  if (existsSync(binary) && !isStale(binary)) return binary;
  const child = Bun.spawn([process.execPath, "run", "build.ts"], { cwd: root, stdout: "inherit", stderr: "inherit" });
  if ((await child.exited) !== 0 || !existsSync(binary)) throw new Error("dist/collie could not be built");
  return binary;
}

/** The compiled program: $COLLIE, else dist/collie, built when it is missing or older than its sources. */
export function gatewayBinary(): Promise<string> {
  building ??= build();
  return building;
}

export interface RunningServer {
  readonly url: string;
  /** Lines of its standard error so far, newest last. */
  readonly log: string[];
  /** Resolves when the process has ended. */
  stop(): Promise<void>;
}

function canListen(port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const server = createServer();
    server.once("error", () => resolve(false));
    server.listen(port, "127.0.0.1", () => server.close(() => resolve(true)));
  });
}

/**
 * A port that nobody listens on. Below the range that systems take outgoing connections' ports from: vLLM needs a minute until it
 * listens, and the port must still be free then.
 */
async function freePort(): Promise<number> {
  for (;;) {
    const port = 20_000 + Math.floor(Math.random() * 10_000);
    if (await canListen(port)) return port;
  }
}

export class ServerStartError extends Error {
  override readonly name = "ServerStartError";
}

async function eachLine(stream: ReadableStream<Uint8Array>, take: (line: string) => void): Promise<void> {
  const decoder = new TextDecoder();
  let rest = "";
  for await (const bytes of stream as unknown as AsyncIterable<Uint8Array>) {
    rest += decoder.decode(bytes, { stream: true });
    const lines = rest.split("\n");
    rest = lines.pop() ?? "";
    lines.forEach(take);
  }
}

/** Starts a program and waits for a line on its standard output that matches `ready`; group 1 is the URL. */
export async function startServer(
  command: readonly string[],
  ready: RegExp,
  limitMs: number,
  env: Record<string, string> = {},
): Promise<RunningServer> {
  const child = Bun.spawn([...command], {
    stdin: "ignore",
    stdout: "pipe",
    stderr: "pipe",
    env: { ...process.env, ...env },
  });
  const log: string[] = [];
  const seen = new Promise<string>((resolve) => {
    void eachLine(child.stdout, (line) => {
      log.push(line);
      const url = ready.exec(line)?.[1];
      if (url !== undefined) resolve(url);
    });
  });
  void eachLine(child.stderr, (line) => log.push(line));
  const stop = async () => {
    child.kill("SIGTERM");
    const timer = setTimeout(() => child.kill("SIGKILL"), 60_000);
    await child.exited;
    clearTimeout(timer);
  };
  let timer: Timer | undefined;
  const url = await Promise.race([
    seen,
    child.exited.then((code) => new ServerStartError(`it ended with status ${code}`)),
    new Promise<ServerStartError>((resolve) => {
      timer = setTimeout(() => resolve(new ServerStartError(`it was not ready after ${limitMs / 1000} s`)), limitMs);
    }),
  ]);
  clearTimeout(timer);
  if (typeof url === "string") return { url, log, stop };
  await stop();
  throw new ServerStartError(`${basename(command[0] ?? "")}: ${url.message}\n${log.slice(-15).join("\n")}`);
}

/** A vLLM server of one model, as HTTP or gRPC server, with more flags for vLLM. `url` is http://… or grpc://…. */
export async function startVllm(
  kind: "http" | "grpc",
  model: string,
  context: number,
  flags: readonly string[] = [],
): Promise<RunningServer> {
  const port = await freePort();
  const script = join(import.meta.dir, "start-vllm-cpu.sh");
  const server = await startServer(
    [script, `--${kind}`, String(port), "--model", model, "--context", String(context), "--", ...flags],
    /^READY \w+ (\S+)/,
    600_000,
    { ENGINES: enginesFolder },
  );
  return { ...server, url: `${kind}://${server.url}` };
}

/** An MLX server of one model, with the servicer of a release of the protocol. */
export async function startMlx(model: string, release: "0.4.14" | "0.4.28"): Promise<RunningServer> {
  const script = join(import.meta.dir, "start-mlx-cpu.sh");
  const server = await startServer(
    [script, "--grpc", String(await freePort()), "--model", model, "--release", release],
    /^READY \w+ (\S+)/,
    120_000,
    { ENGINES: enginesFolder },
  );
  return { ...server, url: `grpc://${server.url}` };
}

/** vLLM's own HTTP server runs without parsers. */
const NO_PARSERS = ["--reasoning-parser", "passthrough", "--tool-call-parser", "passthrough"] as const;

/** The compiled gateway in front of a worker. */
export async function startGateway(
  workerUrl: string,
  flags: readonly string[] = [],
  limitMs = 60_000,
  parsers: readonly string[] = NO_PARSERS,
): Promise<RunningServer> {
  return startServer(
    [
      await gatewayBinary(),
      "serve",
      "--host",
      "127.0.0.1",
      "--port",
      "0",
      "--threads",
      "1",
      "--worker-urls",
      workerUrl,
      ...parsers,
      ...flags,
    ],
    /ready on (\S+?),/,
    limitMs,
  );
}
