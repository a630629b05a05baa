import { existsSync, mkdirSync } from "node:fs";
import { join } from "node:path";
import { BINARY, modelFolder, ROOT, workFolder } from "./paths.ts";
import { answers, type Cores, freePort, type Running, StartError, start, untilTrue } from "./processes.ts";

/** A gateway that can be measured. */
export interface GatewayKind {
  readonly name: string;
  readonly version: string;
  /** Its command line for a port to listen on and an engine's port. */
  command(port: number, enginePort: number): string[];
}

export interface RunningGateway extends Running {
  readonly url: string;
  /** From the start of the process until it says it is ready. */
  readonly readyMs: number;
}

/** Collie's binary, built first when it is missing, or another build of it. */
export function collie(binary = BINARY): GatewayKind {
  if (binary === BINARY && !existsSync(BINARY)) {
    console.error("building dist/collie ...");
    const { exitCode } = Bun.spawnSync([process.execPath, "run", "build.ts"], { cwd: ROOT, stdout: "ignore" });
    if (exitCode !== 0) throw new StartError("the build failed");
  }
  const state = join(workFolder(), "state");
  mkdirSync(state, { recursive: true });
  const said = Bun.spawnSync([binary, "--version"]).stdout.toString().trim();
  return {
    name: "Collie",
    version: /\d+\.\d+\.\d+\S*/.exec(said)?.[0] ?? said,
    command: (port, enginePort) => [
      binary,
      "serve",
      "--host",
      "127.0.0.1",
      "--port",
      String(port),
      "--worker-urls",
      `grpc://127.0.0.1:${enginePort}`,
      "--model-path",
      modelFolder(),
      "--state-dir",
      state,
    ],
  };
}

/** Starts a gateway and waits until it is ready to serve. */
export async function startGateway(kind: GatewayKind, enginePort: number, core: Cores = 0): Promise<RunningGateway> {
  const port = freePort();
  const url = `http://127.0.0.1:${port}`;
  const gateway = start(kind.name.toLowerCase(), kind.command(port, enginePort), core);
  const readyMs = await untilTrue(gateway, `${kind.name}'s readiness`, () => answers(`${url}/readiness`));
  return { ...gateway, url, readyMs };
}
