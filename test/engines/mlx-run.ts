/** The compiled gateway in front of a real MLX engine, which checks nothing itself. */
import { join } from "node:path";
import { mlxChecks } from "./mlx-checks.ts";
import { mlxRealChecks } from "./mlx-real-checks.ts";
import type { EnginePart, RunOptions } from "./results.ts";
import { enginesFolder } from "./servers.ts";

const INSTALL_LIMIT_MS = 240_000;
export const RELEASES = ["0.4.28", "0.4.14"] as const;

/** Runs the set-up script, which does nothing where all is there. Gives what kept it from that. */
export function installMlx(): string | undefined {
  const { exitCode, stderr } = Bun.spawnSync([join(import.meta.dir, "setup-mlx-cpu.sh")], {
    timeout: INSTALL_LIMIT_MS,
    stdin: "ignore",
    env: { ...process.env, ENGINES: enginesFolder },
  });
  if (exitCode === 0) return undefined;
  return `MLX could not be installed: ${stderr.toString().trim().split("\n").at(-1) ?? "it took too long"}`;
}

/** What there is to run. */
export function mlxParts({ only }: RunOptions): readonly EnginePart[] {
  const parts: readonly EnginePart[] = [
    ...RELEASES.map((release) => ({
      model: "tiny",
      name: `${release}: all cases`,
      run: () => mlxChecks(release),
    })),
    { model: "smollm2", name: "SmolLM2: all cases", run: mlxRealChecks },
  ];
  return only === undefined ? parts : parts.filter(({ name }) => name.includes(only));
}
