import { homedir } from "node:os";
import { join } from "node:path";
import type { Environment } from "../config/given.ts";

/** Folder for what must last: the given one, systemd's, or the user's; undefined when there is none to be had. */
export function stateFolder(given: string | undefined, env: Environment): string | undefined {
  const systemd = env["STATE_DIRECTORY"];
  if (given !== undefined) return given;
  if (systemd) return systemd.split(":")[0];
  if (env["XDG_STATE_HOME"]) return join(env["XDG_STATE_HOME"], "collie");
  const home = env["HOME"] ?? homedir();
  return home && home !== "/" ? join(home, ".local", "state", "collie") : undefined;
}
