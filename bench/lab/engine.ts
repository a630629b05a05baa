import { existsSync } from "node:fs";
import { join } from "node:path";
import { BINARY, modelFolder, workFolder } from "./paths.ts";
import { accepts, type Cores, freePort, type Running, StartError, start, untilTrue } from "./processes.ts";

export interface RunningEngine extends Running {
  readonly port: number;
}

/**
 * Our simulated engine as a source of tokens only: it answers with the prompt's own tokens, prefills in no time, and steps once
 * every so many milliseconds for all streams together.
 */
const SIMULATED =
  "engine --port {port} --model-path {model} --served-model-name mock-model --output echo --prefill-tps 1000000000 " +
  "--prefill-chunk 1000000 --max-running 1024 --kv-tokens 4000000 --no-prefix-cache --decode-per-req-ms 0 --decode-base-ms {gap_ms} --shutdown-grace-period-secs 0";

/** The command line of an engine: words with {port}, {model} (tokenizer folder) and {gap_ms}. */
export interface EngineKind {
  readonly name: string;
  command(gapMs: number): string[];
}

/** The engine to measure with: the one asked for, else our simulated one, else echo-engine in the folder $PEERS. */
export function chooseEngine(asked: string | undefined): EngineKind {
  const words = (text: string): string[] => text.trim().split(/\s+/);
  if (asked !== undefined) return { name: words(asked)[0]!.split("/").pop()!, command: () => words(asked) };
  const help = Bun.spawnSync([BINARY, "engine", "--help"], { stderr: "ignore" }).stdout.toString();
  if (help.includes("--decode-base-ms"))
    return {
      name: "collie engine",
      command: (gapMs) => [BINARY, ...words(SIMULATED), ...(gapMs === 0 ? ["--speed", "instant"] : [])],
    };
  const echo = join(process.env["PEERS"] ?? "", "bin", "echo-engine");
  if (process.env["PEERS"] && existsSync(echo))
    return {
      name: "echo-engine",
      command: () => [echo, ...words("--port {port} --tokenizer {model} --gap-ms {gap_ms}")],
    };
  throw new StartError("this binary has no `collie engine`: build it again, or name an engine with --engine-cmd");
}

/** Starts an engine and waits until it listens. `gapMs`: time between two tokens of a stream; 0 answers at once. */
export async function startEngine(kind: EngineKind, gapMs: number, core: Cores = 1): Promise<RunningEngine> {
  const port = freePort();
  const command = kind
    .command(gapMs)
    .map((word) =>
      word.replace("{port}", String(port)).replace("{model}", modelFolder()).replace("{gap_ms}", String(gapMs)),
    );
  const engine = start("engine", command, core, { XDG_CACHE_HOME: workFolder() });
  await untilTrue(engine, "the engine's port", () => accepts(port));
  return { ...engine, port };
}
