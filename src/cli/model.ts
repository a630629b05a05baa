/** A model that a command works with by itself, without a gateway. */
import { join } from "node:path";
import type { Environment } from "../config/given.ts";
import { HubError } from "../hub/hub-error.ts";
import { fetchModelFiles } from "../hub/model-files.ts";
import { createLogger } from "../telemetry/log.ts";
import { loadTokenizer, openTokenizer } from "../tokenizer/load.ts";
import { type Tokenizer, TokenizerError } from "../tokenizer/tokenizer.ts";
import { cacheFolder } from "./cache-folder.ts";

export type ModelFiles = ReadonlyMap<string, Uint8Array>;

/** The files of a model: of a folder or file of this machine, or of a repository. Throws HubError or TokenizerError. */
export function modelFiles(source: string, env: Environment): Promise<ModelFiles> {
  const cacheDir = cacheFolder(undefined, env);
  return fetchModelFiles(source, {
    environment: env,
    fallbackDir: cacheDir && join(cacheDir, "hub"),
    log: createLogger({ level: "warn", json: false }),
  });
}

/** The tokenizer among them. Throws TokenizerError. */
export async function modelTokenizer(files: ModelFiles, env: Environment): Promise<Tokenizer> {
  const cacheDir = cacheFolder(undefined, env);
  return openTokenizer(await loadTokenizer(files, cacheDir === undefined ? {} : { cacheDir }));
}

/** Whether an error speaks for itself: of a model's files, or of the system. */
export const isTold = (error: unknown): error is Error =>
  error instanceof TokenizerError ||
  error instanceof HubError ||
  (error as NodeJS.ErrnoException | undefined)?.syscall !== undefined;
