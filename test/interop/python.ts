/** Python environments with the engines' own stubs, of the oldest and the newest release: made once, in .cache/interop-venv-RELEASE. */
import { existsSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { root } from "../engines/servers.ts";
import type { Release } from "./dialects.ts";

const INSTALL_LIMIT_MS = 300_000;

export interface NoPython {
  readonly why: string;
}

function run(command: string[], limitMs: number): { ok: boolean; output: string } {
  try {
    const { exitCode, stdout, stderr } = Bun.spawnSync(command, { timeout: limitMs, stdin: "ignore" });
    return { ok: exitCode === 0, output: `${stdout}${stderr}`.trim() };
  } catch (error) {
    return { ok: false, output: (error as Error).message };
  }
}

/** Path of the interpreter that has the stubs of a release, or why there is none. */
export function interopPython(release: Release): string | NoPython {
  const requirements = join(import.meta.dir, release === "0.4.28" ? "requirements.txt" : `requirements-${release}.txt`);
  const venv = join(root, ".cache", `interop-venv-${release}`);
  const stamp = join(venv, "installed-requirements.txt");
  const python = join(venv, "bin", "python");
  const wanted = readFileSync(requirements, "utf8");
  if (existsSync(stamp) && readFileSync(stamp, "utf8") === wanted && existsSync(python)) return python;
  const base = process.env["PYTHON"] ?? "python3";
  if (!run([base, "-c", "import sys; sys.exit(sys.version_info < (3, 10))"], 10_000).ok)
    return { why: `Python 3.10 or newer is needed (${base}; set PYTHON to use another)` };
  mkdirSync(join(root, ".cache"), { recursive: true });
  const made = run([base, "-m", "venv", "--clear", venv], 60_000);
  if (!made.ok) return { why: `no virtual environment could be made: ${made.output.split("\n")[0]}` };
  const pip = [
    python,
    "-m",
    "pip",
    "install",
    "-q",
    "--disable-pip-version-check",
    "--retries",
    "1",
    "--timeout",
    "15",
  ];
  const installed = run([...pip, "-r", requirements], INSTALL_LIMIT_MS);
  if (!installed.ok)
    return { why: `the Python packages could not be installed: ${installed.output.split("\n").at(-1)}` };
  writeFileSync(stamp, wanted);
  return python;
}
