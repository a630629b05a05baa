/**
 * The hub's cache on disk, in the layout of huggingface_hub, so that either side uses what the other downloaded
 * (https://huggingface.co/docs/huggingface_hub/guides/manage-cache):
 *
 *     models--org--name/refs/main                     the commit of a branch or tag
 *     models--org--name/snapshots/COMMIT/config.json  a relative link to the blob
 *     models--org--name/blobs/ETAG                    the bytes
 *     models--org--name/trees/COMMIT.json             names of all files of the commit; written by Python only
 *
 * Every file appears by a rename, so that a reader sees all of it or nothing, whoever else writes at the same time.
 */
import { randomBytes } from "node:crypto";
import { mkdir, open, readdir, readFile, readlink, rename, rm, stat, symlink } from "node:fs/promises";
import { basename, dirname, join, relative } from "node:path";
import { isModelFile, MODEL_FOLDERS } from "../tokenizer/model-files.ts";
import type { Repository } from "./source.ts";

/** A commit whose files lie in a cache. */
export interface Snapshot {
  /** The `models--org--name` folder. */
  readonly folder: string;
  readonly commit: string;
  /** Names of the model files that are there, sorted. */
  readonly names: readonly string[];
  /** Names of those that the commit has but the snapshot lacks; empty also if nobody wrote down what the commit has. */
  readonly missing: readonly string[];
}

/** A model file of a commit, ready for a cache. */
export interface SnapshotFile {
  readonly name: string;
  /** Name of its blob; safe as a file name (`isEtag`). */
  readonly etag: string;
  readonly bytes: Uint8Array;
}

export const isCommit = (text: unknown): text is string => typeof text === "string" && /^[0-9a-f]{40,64}$/.test(text);

/** Is it safe as the name of a blob? Git's SHA-1, the SHA-256 of large files, or what a mirror makes up. */
export const isEtag = (text: unknown): text is string =>
  typeof text === "string" && /^[A-Za-z0-9][\w.-]{0,199}$/.test(text) && !text.includes("..");

export function repositoryFolder(cacheDir: string, { id }: Repository): string {
  return join(cacheDir, ["models", ...id.split("/")].join("--"));
}

/** The cached commit of a revision with at least one model file; undefined if there is none. */
export async function findSnapshot(folder: string, revision: string): Promise<Snapshot | undefined> {
  const commit = isCommit(revision) ? revision : await readRef(folder, revision);
  return commit === undefined ? undefined : openSnapshot(folder, commit);
}

/** The snapshot of one commit; undefined if it has no model file. */
export async function openSnapshot(folder: string, commit: string): Promise<Snapshot | undefined> {
  const root = join(folder, "snapshots", commit);
  const top = await readdir(root).catch(() => []);
  const inner = await Promise.all(
    MODEL_FOLDERS.map(async (name) =>
      (await readdir(join(root, name)).catch(() => [])).map((file) => `${name}/${file}`),
    ),
  );
  const names = [...top, ...inner.flat()].filter(isModelFile).sort();
  if (names.length === 0) return undefined;
  const missing = (await wantedOfTree(folder, commit)).filter((name) => !names.includes(name));
  return { folder, commit, names, missing };
}

async function readRef(folder: string, revision: string): Promise<string | undefined> {
  const text = await readFile(join(folder, "refs", revision), "utf8").catch(() => "");
  const commit = text.trim();
  return isCommit(commit) ? commit : undefined;
}

/** When a revision was last looked up, milliseconds since 1970; 0 if never. */
export async function refTime(folder: string, revision: string): Promise<number> {
  const found = await stat(join(folder, "refs", revision)).catch(() => undefined);
  return found?.mtimeMs ?? 0;
}

async function wantedOfTree(folder: string, commit: string): Promise<string[]> {
  try {
    const tree: unknown = JSON.parse(await readFile(join(folder, "trees", `${commit}.json`), "utf8"));
    const { format_version, files } = tree as { format_version: unknown; files: Record<string, unknown> };
    return format_version === 1 ? Object.keys(files).filter(isModelFile) : [];
  } catch {
    return []; // only a hint
  }
}

/** Commits that a `models--org--name` folder holds. */
export async function cachedCommits(folder: string): Promise<string[]> {
  return (await readdir(join(folder, "snapshots")).catch(() => [])).filter(isCommit);
}

export const snapshotPath = ({ folder, commit }: Pick<Snapshot, "folder" | "commit">, name: string): string =>
  join(folder, "snapshots", commit, ...name.split("/"));

/** A file of a commit with the name of its blob, from the snapshot or from its blob; undefined if neither is there, or `size` differs. */
export async function cachedFile(
  at: Pick<Snapshot, "folder" | "commit">,
  name: string,
  known: { readonly etag: string | undefined; readonly size: number | undefined },
): Promise<SnapshotFile | undefined> {
  const pointer = snapshotPath(at, name);
  const etag = known.etag ?? (await blobOf(pointer));
  if (etag === undefined) return undefined;
  for (const path of [pointer, join(at.folder, "blobs", etag)]) {
    if (!(await hasSize(path, known.size))) continue;
    const bytes = await readFile(path).catch(() => undefined);
    if (bytes) return { name, etag, bytes };
  }
  return undefined;
}

async function blobOf(pointer: string): Promise<string | undefined> {
  const target = await readlink(pointer).catch(() => "");
  const name = basename(target);
  return isEtag(name) ? name : undefined;
}

/** Is there a file, of this size if it is known? */
async function hasSize(path: string, size: number | undefined): Promise<boolean> {
  const found = await stat(path).catch(() => undefined);
  return found?.isFile() === true && (size === undefined || found.size === size);
}

/** Keeps the bytes of a file, for a snapshot to come. Throws the file system's error if the cache can't be written. */
export async function storeBlob(folder: string, { etag, bytes }: SnapshotFile): Promise<void> {
  const blob = join(folder, "blobs", etag);
  if (await hasSize(blob, bytes.length)) return;
  await mkdir(dirname(blob), { recursive: true });
  await writeWhole(blob, bytes);
}

/** Puts a file into a snapshot, unless it is there. Throws the file system's error if the cache can't be written. */
export async function storeFile(at: Pick<Snapshot, "folder" | "commit">, file: SnapshotFile): Promise<void> {
  const pointer = snapshotPath(at, file.name);
  if (await hasSize(pointer, file.bytes.length)) return;
  await storeBlob(at.folder, file);
  await mkdir(dirname(pointer), { recursive: true });
  const linked = temporary(pointer);
  try {
    await symlink(relative(dirname(pointer), join(at.folder, "blobs", file.etag)), linked);
  } catch {
    await writeWhole(pointer, file.bytes); // a file system without links: huggingface_hub, too, puts the file itself there
    return;
  }
  await moved(linked, pointer);
}

/** Notes the commit of a branch or tag, unless it is noted. Throws the file system's error if the cache can't be written. */
export async function storeRef(folder: string, revision: string, commit: string): Promise<void> {
  if (revision === commit || (await readRef(folder, revision)) === commit) return;
  const path = join(folder, "refs", revision);
  await mkdir(dirname(path), { recursive: true });
  await writeWhole(path, new TextEncoder().encode(commit));
}

/** Beside the target, as a rename works in one file system only; a name of its own for every writer. */
const temporary = (path: string): string => `${path}.${randomBytes(6).toString("hex")}.incomplete`;

async function writeWhole(path: string, bytes: Uint8Array): Promise<void> {
  const draft = temporary(path);
  try {
    const file = await open(draft, "wx");
    try {
      await file.writeFile(bytes);
      await file.sync(); // else a crash may leave the new name on an empty file
    } finally {
      await file.close();
    }
  } catch (error) {
    await rm(draft, { force: true });
    throw error;
  }
  await moved(draft, path);
}

async function moved(draft: string, path: string): Promise<void> {
  try {
    await rename(draft, path);
  } catch (error) {
    await rm(draft, { force: true });
    throw error;
  }
}
