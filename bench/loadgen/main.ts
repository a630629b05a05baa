/** Command line of the load generator; see docs/benchmarks.md. */
import { readIdle } from "./idle.ts";
import { runLoad } from "./load.ts";
import { HELP, readCommandLine, UsageError } from "./options.ts";
import { withChildren } from "./procfs.ts";
import { markdownHead, markdownRow, resultText } from "./report.ts";
import type { LoadResult } from "./result.ts";
import { warmUpClient } from "./self-warmup.ts";

async function main(args: readonly string[]): Promise<number> {
  const command = readCommandLine(args);
  if (command.help) {
    process.stdout.write(HELP);
    return 0;
  }
  if (command.headerRow) {
    console.log(markdownHead());
    return 0;
  }
  const pids = command.children ? withChildren(command.load.pids) : command.load.pids;
  if (command.idleSecs !== undefined) {
    const idle = await readIdle(pids, command.idleSecs);
    if (command.output === "json") console.log(JSON.stringify(idle));
    else console.log(`idle: ${idle.cpu_ms_per_s.toFixed(3)} ms CPU a second, RSS ${idle.rss_mb.toFixed(1)} MB`);
    return 0;
  }
  await warmUpClient(command.load);
  const results: LoadResult[] = [];
  for (let i = 0; i < command.repeat; i++) {
    if (i > 0) await Bun.sleep(command.pauseMs);
    const { first, requests, warmup } = command.load;
    const result = await runLoad({ ...command.load, pids }, first + i * (requests + warmup));
    results.push(result);
    if (command.output === "json") console.log(JSON.stringify(result));
    else if (command.output === "text") console.log(resultText(result));
    if (result.first_error !== undefined) console.error(`${command.label}: ${result.first_error}`);
  }
  if (command.output === "row") console.log(markdownRow(command.label, results));
  return results.some((r) => r.errors > 0) ? 3 : 0;
}

try {
  process.exitCode = await main(process.argv.slice(2));
} catch (error) {
  if (!(error instanceof UsageError)) throw error;
  console.error(`loadgen: ${error.message} (try --help)`);
  process.exitCode = 1;
}
