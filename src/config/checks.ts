import { existsSync } from "node:fs";

/** What is wrong with the path of a file or folder that must be there. */
export function pathProblem(path: string): string | undefined {
  return existsSync(path) ? undefined : "does not exist";
}

/** Settings whose files are missing on this machine, one line each: settings may be made for another one, but not started with. */
export function missingFiles(config: {
  readonly modelPath: string | undefined;
  readonly tokenizerPath: string | undefined;
  readonly chatTemplate: string | undefined;
}): string[] {
  const paths = {
    "model-path": config.modelPath,
    "tokenizer-path": config.tokenizerPath,
    "chat-template": config.chatTemplate,
  };
  return Object.entries(paths).flatMap(([flag, path]) =>
    path === undefined || existsSync(path) ? [] : [`--${flag}: ${JSON.stringify(path)} does not exist`],
  );
}
