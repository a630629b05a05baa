import { existsSync } from "node:fs";
import { parseWorkerAddress } from "./worker-address.ts";

/** What is wrong with the path of a file or folder that must be there. */
export function pathProblem(path: string): string | undefined {
  return existsSync(path) ? undefined : "does not exist";
}

/**
 * Settings whose files are missing on this machine, one line each: settings may be made for another one, but not started with.
 * `modelProblem` says what is wrong with a model's path, which may be more than a path.
 */
export function missingFiles(
  config: {
    readonly modelPath: string | undefined;
    readonly tokenizerPath: string | undefined;
  },
  modelProblem: (value: string) => string | undefined,
): string[] {
  const checks = [
    ["model-path", config.modelPath, modelProblem],
    ["tokenizer-path", config.tokenizerPath, modelProblem],
  ] as const;
  return checks.flatMap(([flag, value, check]) => {
    const problem = value === undefined ? undefined : check(value);
    return problem === undefined ? [] : [`--${flag}: ${JSON.stringify(value)} ${problem}`];
  });
}

/** Limits of caches that are on and could keep nothing, one line each. */
export function emptyCaches(config: {
  readonly tokenizerCacheEnableL0: boolean;
  readonly tokenizerCacheL0MaxEntries: number;
  readonly tokenizerCacheEnableL1: boolean;
  readonly tokenizerCacheL1MaxMemory: number;
}): string[] {
  const { tokenizerCacheEnableL0: l0, tokenizerCacheEnableL1: l1 } = config;
  const problems: string[] = [];
  if (l0 && config.tokenizerCacheL0MaxEntries === 0)
    problems.push("--tokenizer-cache-l0-max-entries: is 0; --no-tokenizer-cache-enable-l0 switches this level off");
  if ((l0 || l1) && config.tokenizerCacheL1MaxMemory === 0)
    problems.push(
      `--tokenizer-cache-l1-max-memory: is 0, which leaves no room for any level; ${[l0 && "--no-tokenizer-cache-enable-l0", l1 && "--no-tokenizer-cache-enable-l1"].filter(Boolean).join(" with ")} switches the cache off`,
    );
  return problems;
}

/** Workers that are told of twice, one line each: at one place there is one, whatever it speaks or does. */
export function repeatedWorkers(config: {
  readonly workerUrls: readonly string[];
  readonly prefill: readonly string[];
  readonly decode: readonly string[];
}): string[] {
  const lists = [
    ["--worker-urls", config.workerUrls],
    ["--prefill", config.prefill],
    ["--decode", config.decode],
  ] as const;
  const told = lists.flatMap(([flag, urls]) =>
    urls.flatMap((url) => {
      const place = parseWorkerAddress(url)?.place;
      return place === undefined ? [] : [{ flag, place }];
    }),
  );
  const problems = told.flatMap(({ flag, place }, at) => {
    const before = told.findIndex((other) => other.place === place);
    if (before === at) return [];
    const first = told[before]!.flag;
    return [`${flag}: ${place} is ${first === flag ? "in the list twice" : `a worker of ${first} already`}`];
  });
  return [...new Set(problems)];
}

/** Selectors that find nothing, or more than is meant, one line each. */
export function selectorProblems(config: {
  readonly serviceDiscovery: boolean;
  readonly selector: readonly string[];
  readonly prefillSelector: readonly string[];
  readonly decodeSelector: readonly string[];
  readonly encodeSelector: readonly string[];
}): string[] {
  const given = [
    ["--selector", config.selector],
    ["--prefill-selector", config.prefillSelector],
    ["--decode-selector", config.decodeSelector],
    ["--encode-selector", config.encodeSelector],
  ] as const;
  const used = given.filter(([, labels]) => labels.length > 0);
  if (!config.serviceDiscovery) return used.map(([flag]) => `${flag}: is for pods, and needs --service-discovery`);
  if (used.length === 0)
    return ["--service-discovery: needs --selector, or every pod would be a worker; such as --selector app=engine"];
  const problems: string[] = [];
  const seen = new Map<string, string>();
  for (const [flag, labels] of used) {
    const names = labels.map((label) => label.split("=")[0]);
    const twice = names.find((name, at) => names.indexOf(name) !== at);
    if (twice !== undefined) problems.push(`${flag}: no pod has two values of ${twice}`);
    const all = labels.toSorted().join();
    const other = seen.get(all);
    if (other !== undefined) problems.push(`${flag}: is the same as ${other}: a pod has one role`);
    seen.set(all, flag);
  }
  return problems;
}
