import { existsSync, readdirSync, statSync } from "node:fs";
import { join } from "node:path";

/** For hooks that may have to build. */
export const BUILD_MS = 60_000;
const root = join(import.meta.dir, "..", "..", "..");

function newest(path: string): number {
  const stat = statSync(path);
  if (!stat.isDirectory()) return stat.mtimeMs;
  return Math.max(0, ...readdirSync(path).map((name) => newest(join(path, name))));
}

/** The compiled program; built first when it is missing or older than its sources. COLLIE_TEST_BINARY names another. */
export function collieBinary(): string {
  if (process.env["COLLIE_TEST_BINARY"]) return process.env["COLLIE_TEST_BINARY"];
  const file = join(root, "dist", "collie");
  const sources = ["src", "proto", "build.ts", "package-lock.json"].map((name) => newest(join(root, name)));
  if (!existsSync(file) || statSync(file).mtimeMs < Math.max(...sources)) {
    const { exitCode, stderr } = Bun.spawnSync([process.execPath, "build.ts"], { cwd: root });
    if (exitCode !== 0) throw new Error(`build failed: ${stderr.toString()}`);
  }
  return file;
}
