/** Starts the test servers in processes of their own: under Node where there is one, so that two HTTP/2 implementations meet. */
import { type ChildProcess, spawn } from "node:child_process";
import { createInterface } from "node:readline";

export interface TestServer {
  readonly port: number;
  readonly target: string;
  readonly process: ChildProcess;
  /** Ends it at once and waits until it is gone. */
  kill(signal?: NodeJS.Signals): Promise<void>;
}

export interface TestServerOptions {
  readonly port?: number;
  readonly graceMs?: number;
  readonly maxStreams?: number;
  readonly tls?: { readonly cert: string; readonly key: string; readonly ca?: string };
}

const scriptPath = (name: string): string => new URL(`./${name}`, import.meta.url).pathname;

/** A gRPC server on grpc-js. */
export function startTestServer(options: TestServerOptions = {}): Promise<TestServer> {
  return start("grpc-server.mjs", options);
}

/** An HTTP/2 server that breaks gRPC in known ways. */
export function startRawServer(): Promise<TestServer> {
  return start("raw-http2-server.mjs", {});
}

async function start(script: string, options: TestServerOptions): Promise<TestServer> {
  const program = Bun.which("node") ?? process.execPath;
  const child = spawn(program, [scriptPath(script), JSON.stringify(options)], { stdio: ["pipe", "pipe", "inherit"] });
  const gone = new Promise<void>((resolve) => child.once("exit", () => resolve()));
  const port = await new Promise<number>((resolve, reject) => {
    createInterface({ input: child.stdout }).on("line", (line) => {
      if (line.startsWith("READY ")) resolve(Number(line.slice(6)));
    });
    child.once("exit", (code) => reject(new Error(`the test server ended with ${code}`)));
  });
  return {
    port,
    target: `127.0.0.1:${port}`,
    process: child,
    kill(signal = "SIGKILL") {
      child.kill(signal);
      return gone;
    },
  };
}
