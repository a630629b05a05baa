import type { Environment } from "../config/given.ts";
import type { OptionTable } from "../config/option.ts";
import { resolveOptions } from "../config/resolve.ts";
import { simulatorOptions } from "../simulator/options.ts";
import { type Simulator, startSimulators } from "../simulator/simulator.ts";
import { cacheFolder } from "./cache-folder.ts";
import { whenAskedToStop } from "./stop-signals.ts";

/** Settings of `collie engine`. */
export const engineOptions = {
  ...simulatorOptions,
  exitWithStdin: {
    flag: "exit-with-stdin",
    type: "boolean",
    group: "Listener",
    help: "Stop when standard input ends, for a parent process that may die.",
  },
} as const satisfies OptionTable;

/** The line by which a parent process learns the addresses; one for each engine. */
export const ENGINE_READY = /^collie engine ready on ((?:grpc|http):\/\/\S+), statistics on (http:\/\/\S+)$/m;

/** `collie engine`: a simulated engine. */
export async function run(args: readonly string[], env: Environment): Promise<number> {
  const stop = whenAskedToStop();
  const { values, warnings } = resolveOptions(engineOptions, { args, env });
  for (const warning of warnings) process.stderr.write(`collie: ${warning}\n`);
  const cacheDir = cacheFolder(undefined, env);
  let engines: readonly Simulator[];
  try {
    engines = await startSimulators(values, cacheDir === undefined ? {} : { tokenizerCacheDir: cacheDir });
  } catch (error) {
    const { code, message } = error as { code?: string; message: string };
    const taken = code === "EADDRINUSE" || /in use/.test(message);
    process.stderr.write(`collie: ${taken ? "--port or --stats-port: the port is in use" : message}\n`);
    return 1;
  }
  const scheme = values.dialect === "openai" ? "http" : "grpc";
  for (const { port, statsPort } of engines)
    process.stdout.write(
      `collie engine ready on ${scheme}://${values.host}:${port}, statistics on http://127.0.0.1:${statsPort}/stats\n`,
    );
  await Promise.race(values.exitWithStdin ? [stop.first, stdinEnd()] : [stop.first]);
  await Promise.all(engines.map((engine) => engine.stop()));
  return 0;
}

function stdinEnd(): Promise<void> {
  return new Promise((resolve) => {
    process.stdin.on("end", resolve).on("close", resolve).on("error", resolve);
    process.stdin.resume();
  });
}
