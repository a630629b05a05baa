/** Workers of the settings that prefill or decode. */
import { parseWorkerAddress } from "./worker-address.ts";

/** One of `--prefill`. */
export interface PrefillWorker {
  readonly url: string;
  /** Of its bootstrap server; undefined where the engine tells, or the usual one is meant. */
  readonly bootstrapPort: number | undefined;
}

const isAddress = (value: string): boolean => parseWorkerAddress(value) !== undefined;

/** Addresses, each with a port or `none` behind it, or nothing. */
export function prefillWorkers(values: readonly string[]): readonly PrefillWorker[] {
  return values.flatMap((url, at) => {
    if (!isAddress(url)) return [];
    const port = Number(values[at + 1]);
    return [{ url, bootstrapPort: Number.isInteger(port) ? port : undefined }];
  });
}

/** What of the parts of the work makes no sense, one line each. */
export function disaggregationProblems(config: {
  readonly prefill: readonly string[];
  readonly decode: readonly string[];
  readonly workerFile: string | undefined;
  readonly serviceDiscovery: boolean;
}): string[] {
  const { prefill, decode } = config;
  const stray = prefill.find((value, at) => !isAddress(value) && !isAddress(prefill[at - 1] ?? ""));
  const problems = stray === undefined ? [] : [`--prefill: ${stray} does not follow the address of a worker`];
  const hasOthers = config.workerFile !== undefined || config.serviceDiscovery;
  if (!hasOthers && prefill.length > 0 && decode.length === 0)
    problems.push("--prefill: needs workers that decode what is prefilled: --decode");
  if (!hasOthers && decode.length > 0 && prefill.length === 0)
    problems.push("--decode: needs workers that prefill: --prefill");
  return problems;
}
