import type { Environment } from "../config/given.ts";

/** `collie engine`: not built yet. */
export async function run(_args: readonly string[], _env: Environment): Promise<number> {
  process.stderr.write("collie: engine is not available in this version\n");
  return 1;
}
