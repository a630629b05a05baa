import { embeddedTables } from "./embedded.ts";
import { FolderFiles } from "./folder-files.ts";
import { type TokenizerSource, tokenizerSource } from "./formats/source.ts";
import { buildGeneral } from "./general/build.ts";
import { openGeneral } from "./general/open.ts";
import { buildImage } from "./image/build.ts";
import { recognise } from "./image/recognise.ts";
import { parseTokenizerJson, type TokenizerJson } from "./image/tokenizer-json.ts";
import { copiedImage, kernelModule } from "./kernel/kernel.ts";
import { type KernelHandle, openKernelTokenizer } from "./kernel-tokenizer.ts";
import { KnownHashes } from "./known-hashes.ts";
import { postProcessorOf } from "./post-processor.ts";
import { type BuiltTables, readTables, tableFileName, tableKey, tableParts, writeTables } from "./table-cache.ts";
import { type Tokenizer, TokenizerError } from "./tokenizer.ts";

/**
 * A loaded tokenizer as plain data over shared memory: send it to any thread and open it there. Handles of one `key` are of one
 * tokenizer.
 */
export type TokenizerHandle = { readonly key: string } & (KernelHandle | GeneralHandle);

/** Tables of the general tokenizer. */
export type GeneralHandle = Extract<BuiltTables, { readonly kind: "general" }>;

export interface LoadOptions {
  /** Folder for built tables; absent, or not writable: they are built at every start. */
  readonly cacheDir?: string;
}

/**
 * Loads the tokenizer among `files` (by name). Throws `TokenizerError` naming the part that is wrong or not supported. Takes tens of
 * milliseconds with built tables at hand, else 0.2 to 2 s, which belong on a compute thread.
 */
export async function loadTokenizer(
  files: ReadonlyMap<string, Uint8Array>,
  options: LoadOptions = {},
): Promise<TokenizerHandle> {
  return (await loadBuilt(files, options)) ?? buildTokenizer(files, options);
}

/** The tokenizer among `files` if its tables are built already, in the cache folder or in the binary. */
export async function loadBuilt(
  files: ReadonlyMap<string, Uint8Array>,
  { cacheDir }: LoadOptions,
): Promise<TokenizerHandle | undefined> {
  if (files instanceof FolderFiles && cacheDir !== undefined) files.known = new KnownHashes(cacheDir);
  const key = tableKey(tokenizerSource(files).contents());
  const cached = cacheDir === undefined ? undefined : readTables(cacheDir, key);
  if (cached) return handleOf(cached, key);
  const embedded = await embeddedTables(key);
  if (embedded && cacheDir !== undefined) writeTables(cacheDir, key, embedded); // unpacking takes three times as long as reading
  return embedded && handleOf(embedded, key);
}

/** Builds the tables of the tokenizer among `files`, and stores them. */
export function buildTokenizer(files: ReadonlyMap<string, Uint8Array>, { cacheDir }: LoadOptions): TokenizerHandle {
  const source = tokenizerSource(files);
  const built = build(source);
  const key = tableKey(source.contents());
  if (cacheDir !== undefined) writeTables(cacheDir, key, built);
  return handleOf(built, key);
}

/** The kernel takes what chat models use; everything else is the general tokenizer's, which says what it can't take. */
function build(source: TokenizerSource): BuiltTables {
  const bytes = source.json();
  const json = parseTokenizerJson(bytes);
  const postProcessor = postProcessorOf(json.post_processor);
  const memory = kernelImage(json);
  return memory
    ? { kind: "kernel", memory, postProcessor }
    : { kind: "general", memory: buildGeneral(bytes), postProcessor };
}

/** The kernel's tables, or undefined if something about the tokenizer is not for it. */
function kernelImage(json: TokenizerJson): WebAssembly.Memory | undefined {
  const known = recognise(json);
  if ("unsupported" in known) return undefined;
  try {
    return buildImage(json, known).memory;
  } catch (error) {
    if (error instanceof TokenizerError) return undefined;
    throw error;
  }
}

function handleOf(tables: BuiltTables, key: Buffer): TokenizerHandle {
  const handle = { ...tables, key: key.toString("hex") };
  return handle.kind === "kernel" ? { ...handle, module: kernelModule() } : handle;
}

/** The built tables of a model's tokenizer as a file for a bundle, with the name that `loadTokenizer` looks for. */
export function builtTables(files: ReadonlyMap<string, Uint8Array>): [name: string, bytes: Uint8Array] {
  const source = tokenizerSource(files);
  const built = build(source);
  const key = tableKey(source.contents());
  return [tableFileName(key), Buffer.concat(tableParts(built, key))];
}

/**
 * A tokenizer with tables of its own: what it takes in memory goes when nobody holds it, while buffers that `openTokenizer` puts
 * beside shared tables stay as long as the tables do. Copying them takes some milliseconds.
 */
export function openApart(handle: TokenizerHandle): Tokenizer {
  return openTokenizer(handle.kind === "kernel" ? { ...handle, memory: copiedImage(handle.memory) } : { ...handle });
}

const opened = new WeakMap<TokenizerHandle, Tokenizer>();

/** The tokenizer of a handle, for the calling thread: one for each handle. Cheap, as the tables are shared. */
export function openTokenizer(handle: TokenizerHandle): Tokenizer {
  let tokenizer = opened.get(handle);
  if (tokenizer === undefined) {
    tokenizer = handle.kind === "kernel" ? openKernelTokenizer(handle) : openGeneral(handle.memory);
    opened.set(handle, tokenizer);
  }
  return tokenizer;
}
