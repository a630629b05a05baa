/** The files of a model, from a folder, the hub's cache, or the hub. */
import { stat } from "node:fs/promises";
import { basename, join } from "node:path";
import type { Logger } from "../telemetry/log.ts";
import type { Files } from "../tokenizer/folder-files.ts";
import { readModelFiles } from "../tokenizer/model-files.ts";
import { cachedCommits, findSnapshot, refTime, repositoryFolder, type Snapshot } from "./cache.ts";
import { download } from "./download.ts";
import { HubError, messageOf } from "./hub-error.ts";
import { type Environment, hubSettings } from "./settings.ts";
import { modelSource, type Repository, repositoryText } from "./source.ts";
import type { Fetch } from "./transfer.ts";

export interface ModelFilesOptions {
  /** HF_HOME, HF_TOKEN and the like: docs/models.md. */
  readonly environment: Environment;
  /** Folder for a second cache, for where the hub's own can't be written. */
  readonly fallbackDir?: string | undefined;
  readonly log?: Pick<Logger, "info" | "warn"> | undefined;
  readonly signal?: AbortSignal | undefined;
  /** Default: the global one. */
  readonly fetch?: Fetch | undefined;
  /** Pauses between tries, milliseconds: 1 and 3 s if absent. */
  readonly pausesMs?: readonly number[] | undefined;
}

const PAUSES_MS = [1000, 3000];
const SILENT: Pick<Logger, "info" | "warn"> = { info() {}, warn() {} };

/**
 * Gives the tokenizer, template and configuration files of a model by name. `source` is a folder or a tokenizer's file on this machine,
 * a folder of the hub's cache (`models--org--name`), or a repository: `org/name`, `org/name@revision`. Throws `HubError` or
 * `TokenizerError` with what to do about it.
 */
export async function fetchModelFiles(source: string, options: ModelFilesOptions): Promise<Files> {
  const meant = modelSource(source);
  if (meant === undefined)
    throw new HubError(
      "missing",
      `${JSON.stringify(source)} does not exist on this machine, and is no repository of a hub (org/name or org/name@revision)`,
    );
  if (meant.kind === "local") return readModelFiles(await insideCacheFolder(meant.path));
  try {
    return await repositoryFiles(meant.repository, options);
  } catch (error) {
    if (!(error instanceof HubError) || error.kind === "setting") throw error;
    throw new HubError(
      error.kind,
      `there is no ${JSON.stringify(source)} on this machine, and as a repository: ${error.message}`,
      {
        cause: error,
      },
    );
  }
}

/** The snapshot that a `models--org--name` folder stands for: of its main branch, else the only one. Other paths stay as they are. */
async function insideCacheFolder(path: string): Promise<string> {
  const found = await stat(join(path, "snapshots")).catch(() => undefined);
  if (!found?.isDirectory() || !/^models--/.test(basename(path))) return path;
  const commits = await cachedCommits(path);
  const commit = (await findSnapshot(path, "main"))?.commit ?? (commits.length === 1 ? commits[0] : undefined);
  if (commit !== undefined) return join(path, "snapshots", commit);
  throw new HubError(
    "missing",
    commits.length === 0
      ? `the cache folder ${path} holds no model yet`
      : `the cache folder ${path} has no main branch; name one of its snapshots: ${commits.join(", ")}`,
  );
}

async function repositoryFiles(repository: Repository, options: ModelFilesOptions): Promise<Files> {
  const { log = SILENT } = options;
  const settings = await hubSettings(options.environment);
  const folders = [settings.cacheDir, options.fallbackDir]
    .filter((dir) => dir !== undefined)
    .map((dir) => repositoryFolder(dir, repository));
  const cached = await newestSnapshot(folders, repository.revision);
  if (settings.offline) return offlineFiles(repository, cached, folders, log);
  try {
    return await download({
      repository,
      settings,
      folders,
      log,
      transfer: {
        fetch: options.fetch ?? fetch,
        endpoint: settings.endpoint,
        token: settings.token,
        signal: options.signal,
        pausesMs: options.pausesMs ?? PAUSES_MS,
      },
      hurried: cached !== undefined,
    });
  } catch (error) {
    // The name is right, but the revision is gone: an old copy of it would hide that.
    if (!(error instanceof HubError) || error.kind === "revision" || !cached) throw error;
    return cachedInstead(repository, cached, error, log);
  }
}

/** Of the caches that have the revision: a complete copy before others, then the one that was looked up last. */
async function newestSnapshot(folders: readonly string[], revision: string): Promise<Snapshot | undefined> {
  const all = await Promise.all(
    folders.map(async (folder) => {
      const snapshot = await findSnapshot(folder, revision);
      return snapshot && { snapshot, lacks: lacksTokenizer(snapshot), time: await refTime(folder, revision) };
    }),
  );
  const [best] = all
    .filter((each) => each !== undefined)
    .sort((a, b) => Number(a.lacks) - Number(b.lacks) || b.time - a.time);
  return best?.snapshot;
}

/** Without the file that decides the ids, what is left of another format might give others. */
const lacksTokenizer = ({ missing }: Snapshot): boolean => missing.includes("tokenizer.json");

function filesOf({ folder, commit, missing }: Snapshot, log: Pick<Logger, "warn">): Promise<Files> {
  if (missing.length > 0) log.warn("the cached copy of the model is not complete", { folder, commit, missing });
  return readModelFiles(join(folder, "snapshots", commit));
}

async function offlineFiles(
  repository: Repository,
  cached: Snapshot | undefined,
  folders: readonly string[],
  log: Pick<Logger, "warn">,
): Promise<Files> {
  const name = repositoryText(repository);
  const how = "download it where there is a network, or unset HF_HUB_OFFLINE and TRANSFORMERS_OFFLINE";
  if (!cached)
    throw new HubError(
      "offline",
      `${name} is not in the cache (${folders.join(", ") || "there is none"}), and the hub is switched off: ${how}`,
    );
  if (lacksTokenizer(cached))
    throw new HubError(
      "offline",
      `the cached copy of ${name} lacks tokenizer.json, and the hub is switched off: ${how}`,
    );
  return filesOf(cached, log);
}

async function cachedInstead(
  repository: Repository,
  cached: Snapshot,
  error: HubError,
  log: Pick<Logger, "warn">,
): Promise<Files> {
  if (lacksTokenizer(cached))
    throw new HubError(error.kind, `${error.message}; the cached copy lacks tokenizer.json`, {
      cause: error,
    });
  const files = await filesOf(cached, log).catch((unusable: unknown) => {
    throw new HubError(error.kind, `${error.message}; the cached copy is of no use: ${messageOf(unusable)}`, {
      cause: error,
    });
  });
  log.warn("the hub failed: a cached copy of the model is used, which may be old", {
    repository: repositoryText(repository),
    commit: cached.commit,
    error,
  });
  return files;
}
