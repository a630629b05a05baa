import type { Environment } from "../config/given.ts";

/** `collie demo`: not built yet. */
export async function run(_args: readonly string[], _env: Environment): Promise<number> {
  process.stderr.write("collie: demo is not available in this version\n");
  return 1;
}
