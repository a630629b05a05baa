import { emptyCaches, repeatedWorkers, selectorProblems } from "../config/checks.ts";
import { ConfigError } from "../config/config-error.ts";
import { disaggregationProblems } from "../config/disaggregation.ts";
import { printOptions } from "../config/print.ts";
import { type Environment, resolveOptions } from "../config/resolve.ts";
import { serveOptions } from "../config/serve-options.ts";

/** `collie config`: checks the settings of `serve` without starting it; with `--print` shows them. */
export async function run(args: readonly string[], env: Environment): Promise<number> {
  const resolved = resolveOptions(serveOptions, { args: args.filter((argument) => argument !== "--print"), env });
  const problems = [
    ...emptyCaches(resolved.values),
    ...repeatedWorkers(resolved.values),
    ...disaggregationProblems(resolved.values),
    ...selectorProblems(resolved.values),
  ];
  if (problems.length > 0) throw new ConfigError(problems);
  for (const warning of resolved.warnings) process.stderr.write(`collie: ${warning}\n`);
  if (args.includes("--print")) process.stdout.write(printOptions(serveOptions, resolved));
  else process.stdout.write("The settings are valid. --print shows them.\n");
  return 0;
}
