import { homedir } from "node:os";
import { join } from "node:path";
import type { Environment } from "../config/given.ts";

/** Folder for caches: the given one, systemd's, or the user's; undefined when there is none to be had. */
export function cacheFolder(given: string | undefined, env: Environment): string | undefined {
  const systemd = env["CACHE_DIRECTORY"] || env["STATE_DIRECTORY"];
  if (given !== undefined) return given;
  if (systemd) return systemd.split(":")[0];
  if (env["XDG_CACHE_HOME"]) return join(env["XDG_CACHE_HOME"], "collie");
  const home = env["HOME"] ?? homedir();
  return home && home !== "/" ? join(home, ".cache", "collie") : undefined;
}
