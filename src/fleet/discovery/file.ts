/** Workers of a file that may change while the gateway runs. */
import { readFile, stat } from "node:fs/promises";
import { fileProblem } from "../../config/file-problem.ts";
import { type Clock, sleep } from "../clock.ts";
import { parseSpec } from "../spec-json.ts";
import type { DiscoveredWorker, SourceSink, WorkerSource } from "../worker-source.ts";
import { workerAddress } from "../worker-url.ts";

/** A worker file that cannot be taken. Its message names the entry that is wrong, never what it holds. */
export class WorkerFileError extends Error {
  override readonly name = "WorkerFileError";
}

const LOOK_MS = 1000;

/**
 * Looks at the file each second: that sees whatever way it is replaced, links to links of a ConfigMap included. A new state is taken
 * when it was met twice, so that nobody is read while he writes. From a file that cannot be taken nothing follows: who was told of
 * stays, and the next state is tried.
 */
export function fileSource(path: string, clock: Clock): WorkerSource {
  return {
    name: "file",
    start(sink, signal) {
      void follow(path, sink, clock, signal);
    },
  };
}

async function follow(path: string, sink: SourceSink, clock: Clock, signal: AbortSignal): Promise<void> {
  let taken = await stateOf(path);
  let seen = taken;
  await tell(path, sink);
  for (;;) {
    await sleep(clock, LOOK_MS, signal);
    if (signal.aborted) return;
    const now = await stateOf(path);
    if (now === seen && now !== taken) {
      taken = now;
      await tell(path, sink);
    }
    seen = now;
  }
}

async function tell(path: string, sink: SourceSink): Promise<void> {
  try {
    sink.replace(await readWorkerFile(path));
  } catch (error) {
    if (!(error instanceof WorkerFileError)) throw error;
    sink.problem(error);
  }
}

/** Two states of a file that differ give two texts. */
async function stateOf(path: string): Promise<string> {
  try {
    const { dev, ino, size, mtimeNs } = await stat(path, { bigint: true });
    return [dev, ino, size, mtimeNs].join(":");
  } catch (error) {
    return fileProblem(error);
  }
}

/** Throws WorkerFileError. */
export async function readWorkerFile(path: string): Promise<readonly DiscoveredWorker[]> {
  try {
    return parseWorkerFile(await readFile(path, "utf8"));
  } catch (error) {
    throw new WorkerFileError(`${path}: ${error instanceof WorkerFileError ? error.message : fileProblem(error)}`);
  }
}

/** Reads YAML or JSON: `workers` is a list of addresses and of workers as the workers' API takes them. Throws WorkerFileError. */
export function parseWorkerFile(text: string): readonly DiscoveredWorker[] {
  const document = parsed(text);
  if (typeof document !== "object" || document === null || Array.isArray(document))
    throw new WorkerFileError("must hold the list workers");
  const { workers, ...others } = document as Readonly<Record<string, unknown>>;
  const [other] = Object.keys(others);
  if (other !== undefined) throw new WorkerFileError(`${JSON.stringify(other)} is unknown: only workers is`);
  if (!Array.isArray(workers)) throw new WorkerFileError("workers must be a list; [] for none");
  const found = new Map<string, DiscoveredWorker>();
  for (const [at, entry] of workers.entries()) {
    const worker = workerOf(entry, `workers[${at}]`);
    if (found.has(worker.key)) throw new WorkerFileError(`workers[${at}]: ${worker.key} is in the list twice`);
    found.set(worker.key, worker);
  }
  return [...found.values()];
}

function workerOf(entry: unknown, name: string): DiscoveredWorker {
  try {
    const spec = parseSpec(entry);
    return { key: workerAddress(spec.url).place, spec };
  } catch (error) {
    throw new WorkerFileError(`${name}: ${error instanceof Error ? error.message : error}`);
  }
}

function parsed(text: string): unknown {
  const isJson = /^\s*\{/.test(text);
  try {
    return isJson ? JSON.parse(text) : Bun.YAML.parse(text);
  } catch (error) {
    // JSON's message repeats the text, which may hold keys.
    throw new WorkerFileError(
      isJson ? "is no JSON" : `is no YAML: ${String(error).replace(/^.*?YAML Parse error: /, "")}`,
    );
  }
}
