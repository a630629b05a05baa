import { existsSync } from "node:fs";

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
