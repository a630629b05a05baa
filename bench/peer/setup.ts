/** Sets up SMG, the gateway that we compare with, from its Python wheel. */
import { existsSync } from "node:fs";
import { join } from "node:path";
import type { GatewayKind } from "../lab/gateways.ts";
import { modelFolder, ROOT } from "../lab/paths.ts";
import { freePort } from "../lab/processes.ts";

export const SMG_VERSION = "1.13.0";

/** The peer can not be had on this machine. */
export class PeerError extends Error {
  override readonly name = "PeerError";
}

/** Where SMG is or will be installed: `$PEERS/venv` for one that exists, else a folder of ours. */
function environment(): string {
  return process.env["PEERS"] ? join(process.env["PEERS"], "venv") : join(ROOT, ".cache", "peer", "venv");
}

function run(command: readonly string[]): { readonly ok: boolean; readonly text: string } {
  try {
    const { exitCode, stdout, stderr } = Bun.spawnSync([...command], {
      stdin: "ignore",
      stdout: "pipe",
      stderr: "pipe",
    });
    return { ok: exitCode === 0, text: `${stdout.toString()}${stderr.toString()}`.trim() };
  } catch (error) {
    return { ok: false, text: (error as Error).message };
  }
}

function installedVersion(smg: string): string | undefined {
  if (!existsSync(smg)) return undefined;
  const { ok, text } = run([smg, "--version"]);
  return ok ? /\d+\.\d+\.\d+\S*/.exec(text)?.[0] : undefined;
}

/** SMG, installed first when it is missing. Throws PeerError when Python or its package index is. */
export function smg(): GatewayKind {
  const venv = environment();
  const binary = join(venv, "bin", "smg");
  if (installedVersion(binary) !== SMG_VERSION) {
    console.error(`installing smg ${SMG_VERSION} ...`);
    const python = Bun.which("python3");
    if (python === null) throw new PeerError("the comparison needs Python 3 (3.8 or later), and there is no python3");
    if (!existsSync(join(venv, "bin", "python"))) {
      const made = run([python, "-m", "venv", venv]);
      if (!made.ok) throw new PeerError(`python3 could not make a virtual environment:\n${made.text}`);
    }
    const pip = run([
      join(venv, "bin", "pip"),
      "install",
      "--quiet",
      "--disable-pip-version-check",
      `smg==${SMG_VERSION}`,
    ]);
    if (!pip.ok)
      throw new PeerError(`smg ${SMG_VERSION} could not be installed from the Python package index:\n${pip.text}`);
    if (installedVersion(binary) !== SMG_VERSION) throw new PeerError("smg was installed but does not start");
  }
  return {
    name: "SMG",
    version: SMG_VERSION,
    command: (port, enginePort) => [
      // The script's first line may exceed what the kernel reads, so its interpreter is named.
      join(venv, "bin", "python"),
      binary,
      "launch",
      "--host",
      "127.0.0.1",
      "--port",
      String(port),
      "--prometheus-port",
      String(freePort()),
      "--worker-urls",
      `grpc://127.0.0.1:${enginePort}`,
      "--model-path",
      modelFolder(),
    ],
  };
}

if (import.meta.main) {
  try {
    console.log(`smg ${smg().version} is ready`);
  } catch (error) {
    if (!(error instanceof PeerError)) throw error;
    console.error(error.message);
    process.exitCode = 1;
  }
}
