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
    readonly chatTemplate: string | undefined;
  },
  modelProblem: (value: string) => string | undefined,
): string[] {
  const checks = [
    ["model-path", config.modelPath, modelProblem],
    ["tokenizer-path", config.tokenizerPath, modelProblem],
    ["chat-template", config.chatTemplate, pathProblem],
  ] as const;
  return checks.flatMap(([flag, value, check]) => {
    const problem = value === undefined ? undefined : check(value);
    return problem === undefined ? [] : [`--${flag}: ${JSON.stringify(value)} ${problem}`];
  });
}
