/** From the hub into the cache: only what is not there yet. */
import type { Logger } from "../telemetry/log.ts";
import { isModelFile } from "../tokenizer/model-files.ts";
import { cachedFile, type SnapshotFile, storeBlob, storeFile, storeRef } from "./cache.ts";
import { fetchFile, type ListedFile, listFiles, MOST_FILE_BYTES, MOST_MODEL_BYTES } from "./client.ts";
import { HubError, messageOf } from "./hub-error.ts";
import type { HubSettings } from "./settings.ts";
import { type Repository, repositoryText } from "./source.ts";
import type { TransferOptions } from "./transfer.ts";

export interface DownloadOptions {
  readonly repository: Repository;
  readonly settings: HubSettings;
  /** The repository's folder in each cache, the one to write to first. */
  readonly folders: readonly string[];
  readonly log: Pick<Logger, "info" | "warn">;
  readonly transfer: TransferOptions;
  /** Somebody waits who has a cached copy: the hub is asked for the commit once only. */
  readonly hurried: boolean;
}

const AT_ONCE = 4;

/**
 * Asks the hub for a revision's commit, takes its model files from the caches or else from the hub, and leaves them in the first cache
 * that can be written. A cache that can't is a warning. Throws `HubError`.
 */
export async function download(options: DownloadOptions): Promise<Map<string, Uint8Array>> {
  const { repository, folders, log, transfer, hurried } = options;
  const started = performance.now();
  const { commit, files } = await listFiles(options, hurried ? { ...transfer, pausesMs: [] } : transfer);
  const wanted = files.filter(({ name }) => isModelFile(name));
  checkWanted(wanted, repository);

  const shelf = new Shelf(folders, commit, log);
  const found = new Map<string, SnapshotFile>();
  let fetched = 0;
  let bytes = 0;
  const queue = [...wanted];
  const failed = new AbortController();
  const signal = transfer.signal ? AbortSignal.any([transfer.signal, failed.signal]) : failed.signal;
  const take = async (): Promise<void> => {
    for (let next = queue.shift(); next !== undefined; next = queue.shift()) {
      let file = await onDisk(folders, commit, next);
      if (!file) {
        file = await fetchFile(options, commit, next, { ...transfer, signal });
        fetched++;
        await shelf.put(file);
      }
      bytes += file.bytes.length;
      if (bytes > MOST_MODEL_BYTES) throw tooLarge(repository);
      found.set(next.name, file);
    }
  };
  // The others need not go on after a failure, but nothing of them may still run when the caller hears of it.
  const ends = Array.from({ length: AT_ONCE }, () => take().catch((error: unknown) => failed.abort(error)));
  await Promise.all(ends);
  failed.signal.throwIfAborted();
  await shelf.finish([...found.values()], repository.revision);
  if (fetched > 0)
    log.info("fetched a model's files from the hub", {
      repository: repositoryText(repository),
      commit,
      files: fetched,
      ms: Math.round(performance.now() - started),
    });
  return new Map([...found].sort(([a], [b]) => (a < b ? -1 : 1)).map(([name, file]) => [name, file.bytes]));
}

function checkWanted(wanted: readonly ListedFile[], repository: Repository): void {
  const name = repositoryText(repository);
  if (wanted.length === 0) throw new HubError("missing", `the repository ${name} holds no files of a tokenizer`);
  const large = wanted.find(({ size }) => size !== undefined && size > MOST_FILE_BYTES);
  if (large) throw new HubError("broken", `${large.name} of ${name} has ${large.size} bytes, over ${MOST_FILE_BYTES}`);
  if (wanted.reduce((sum, { size }) => sum + (size ?? 0), 0) > MOST_MODEL_BYTES) throw tooLarge(repository);
}

function tooLarge(repository: Repository): HubError {
  const name = repositoryText(repository);
  return new HubError("broken", `the tokenizer's files of ${name} have over ${MOST_MODEL_BYTES} bytes together`);
}

async function onDisk(
  folders: readonly string[],
  commit: string,
  { name, size, sha256, blobId }: ListedFile,
): Promise<SnapshotFile | undefined> {
  for (const folder of folders) {
    const file = await cachedFile({ folder, commit }, name, { etag: sha256 ?? blobId, size });
    if (file) return file;
  }
  return undefined;
}

/** Where the files of a commit are put: the first cache that takes them. */
class Shelf {
  private at = 0;

  constructor(
    private readonly folders: readonly string[],
    private readonly commit: string,
    private readonly log: Pick<Logger, "warn">,
  ) {}

  /** Keeps a file's bytes at once, so that a download that is cut short goes on from here. */
  async put(file: SnapshotFile): Promise<void> {
    await this.keep((folder) => storeBlob(folder, file));
  }

  /** Lets the files appear in the commit, now that all are there, and only then the commit as the one of its branch or tag. */
  async finish(files: readonly SnapshotFile[], revision: string): Promise<void> {
    await this.keep(async (folder) => {
      for (const file of files) await storeFile({ folder, commit: this.commit }, file);
      // A cache that is complete but can't be written is no reason for a second one.
      await storeRef(folder, revision, this.commit).catch(() => {});
    });
  }

  private async keep(work: (folder: string) => Promise<void>): Promise<void> {
    for (;;) {
      const index = this.at;
      const folder = this.folders[index];
      if (folder === undefined) return;
      try {
        await work(folder);
        return;
      } catch (error) {
        if (this.at !== index) continue; // another download has moved on already
        this.at = index + 1;
        const instead = this.folders[index + 1];
        this.log.warn("the model cache can't be written", {
          folder,
          instead: instead ?? "nothing is kept: the next start fetches the files again",
          error: messageOf(error),
        });
      }
    }
  }
}
