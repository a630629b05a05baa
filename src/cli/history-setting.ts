/** Where the gateway keeps what clients have stored, and the key of its seals, as the settings say. */
import { randomBytes } from "node:crypto";
import { linkSync, mkdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { fileProblem } from "../config/file-problem.ts";
import type { ServeConfig } from "../config/serve-options.ts";
import { HistorySetupError } from "../history/errors.ts";
import { parseHistoryUrl } from "../history/location.ts";
import type { HistorySetting } from "../history/open.ts";
import { parseSchema } from "../history/schema.ts";

type HistoryConfig = Pick<
  ServeConfig,
  "historyUrl" | "historyBackend" | "postgresDbUrl" | "postgresPoolMaxSize" | "redisUrl" | "schemaConfig"
>;

export interface ChosenHistory {
  readonly setting: HistorySetting;
  /** Nobody has chosen it: one that cannot be opened need not end the start. */
  readonly byDefault: boolean;
}

/**
 * The history that the settings name. `folder`: the state directory. `threads`: those that share the connections.
 * Throws HistorySetupError.
 */
export function chosenHistory(config: HistoryConfig, folder: string | undefined, threads: number): ChosenHistory {
  const { historyUrl, historyBackend, schemaConfig } = config;
  if (historyUrl !== undefined && historyBackend !== undefined)
    throw new HistorySetupError("--history-url and --history-backend exclude each other");
  const url = historyUrl === undefined ? urlOf(config, folder) : checked(historyUrl, "--history-url");
  const schema = schemaConfig === undefined ? undefined : schemaOf(schemaConfig);
  const connections = Math.max(1, Math.floor(config.postgresPoolMaxSize / threads));
  return {
    setting: { url, maxConnections: connections, ...(schema !== undefined && { schema }) },
    byDefault: historyUrl === undefined && historyBackend === undefined,
  };
}

function urlOf({ historyBackend, postgresDbUrl, redisUrl }: HistoryConfig, folder: string | undefined): string {
  switch (historyBackend) {
    case "none":
    case "memory":
      return historyBackend;
    case "postgres":
      return named(postgresDbUrl, "postgres", "--postgres-db-url");
    case "redis":
      return named(redisUrl, "redis", "--redis-url");
    case "sqlite":
      if (folder === undefined) throw new HistorySetupError("--history-backend sqlite needs a --state-dir");
      return fileUrl(folder);
    case undefined:
      return folder === undefined ? "memory" : fileUrl(folder);
  }
}

const fileUrl = (folder: string): string => `sqlite:${encodeURI(join(folder, "history.db"))}`;

function checked(url: string, flag: string): string {
  try {
    parseHistoryUrl(url);
    return url;
  } catch (error) {
    if (!(error instanceof HistorySetupError)) throw error;
    throw new HistorySetupError(`${flag}: ${error.message}`);
  }
}

function named(url: string | undefined, type: "postgres" | "redis", flag: string): string {
  if (url === undefined) throw new HistorySetupError(`--history-backend ${type} needs ${flag}`);
  if (parseHistoryUrl(checked(url, flag)).type !== type) throw new HistorySetupError(`${flag}: is no URL of ${type}`);
  return url;
}

function schemaOf(path: string): unknown {
  let text: string;
  try {
    text = readFileSync(path, "utf8");
  } catch (error) {
    throw new HistorySetupError(`--schema-config: ${JSON.stringify(path)}: ${fileProblem(error)}`);
  }
  let value: unknown;
  try {
    value = Bun.YAML.parse(text);
  } catch (error) {
    throw new HistorySetupError(`--schema-config: ${JSON.stringify(path)}: ${(error as Error).message}`);
  }
  try {
    parseSchema(value ?? {});
  } catch (error) {
    if (!(error instanceof HistorySetupError)) throw error;
    throw new HistorySetupError(`--schema-config: ${JSON.stringify(path)}: ${error.message}`);
  }
  return value ?? {};
}

const KEY_BYTES = 32;

/**
 * The key of seals: the given one, else that of the file `seal.key` in the state directory, which is made where it is not there, for its
 * owner alone; else one that lasts as long as the process. Throws HistorySetupError.
 */
export function sealingKey(given: string | undefined, folder: string | undefined): Uint8Array {
  if (given !== undefined) return new TextEncoder().encode(given);
  if (folder === undefined) return randomBytes(KEY_BYTES);
  const path = join(folder, "seal.key");
  try {
    return kept(path) ?? made(folder, path);
  } catch (error) {
    if (error instanceof HistorySetupError) throw error;
    throw new HistorySetupError(`the key of seals, ${JSON.stringify(path)}: ${fileProblem(error)}`);
  }
}

function kept(path: string): Uint8Array | undefined {
  let text: string;
  try {
    text = readFileSync(path, "utf8").trim();
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "ENOENT") return undefined;
    throw error;
  }
  if (!new RegExp(`^[0-9a-f]{${2 * KEY_BYTES}}$`).test(text))
    throw new HistorySetupError(`the key of seals, ${JSON.stringify(path)}: is not one of ours`);
  return Buffer.from(text, "hex");
}

/** Whole or not at all, also where two processes make it at once: the first one holds. */
function made(folder: string, path: string): Uint8Array {
  mkdirSync(folder, { recursive: true, mode: 0o700 });
  const draft = `${path}.${process.pid}.${randomBytes(4).toString("hex")}`;
  writeFileSync(draft, `${randomBytes(KEY_BYTES).toString("hex")}\n`, { mode: 0o600, flag: "wx", flush: true });
  try {
    linkSync(draft, path);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== "EEXIST") throw error;
  } finally {
    rmSync(draft, { force: true });
  }
  const key = kept(path);
  if (key === undefined) throw new HistorySetupError(`the key of seals, ${JSON.stringify(path)}, went away`);
  return key;
}
