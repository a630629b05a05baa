import { embeddedImage } from "./embedded.ts";
import { type HuggingFaceHandle, huggingFaceHandle, openHuggingFace } from "./huggingface.ts";
import { buildImage } from "./image/build.ts";
import { recognise } from "./image/recognise.ts";
import { parseTokenizerJson } from "./image/tokenizer-json.ts";
import { imageFileName, imageKey, imageParts, readImage, writeImage } from "./image-cache.ts";
import { kernelModule } from "./kernel/kernel.ts";
import { type KernelHandle, openKernelTokenizer } from "./kernel-tokenizer.ts";
import { type Tokenizer, TokenizerError } from "./tokenizer.ts";

/** A loaded tokenizer as plain data over shared memory: send it to any thread and open it there. */
export type TokenizerHandle = KernelHandle | HuggingFaceHandle;

export interface LoadOptions {
  /** Folder for built tables; absent, or not writable: they are built at every start. */
  readonly cacheDir?: string;
}

/**
 * Loads the tokenizer that `files` (by name; tokenizer.json at least) hold. Throws `TokenizerError` naming the part that is wrong or
 * not supported. Takes tens of milliseconds with built tables at hand, else 0.2 to 1 s.
 */
export async function loadTokenizer(
  files: ReadonlyMap<string, Uint8Array>,
  { cacheDir }: LoadOptions = {},
): Promise<TokenizerHandle> {
  const bytes = files.get("tokenizer.json");
  if (!bytes) throw new TokenizerError("there is no tokenizer.json");
  const key = imageKey(bytes);
  const cached = cacheDir === undefined ? undefined : readImage(cacheDir, key);
  if (cached) return { kind: "kernel", module: kernelModule(), memory: cached };
  const embedded = await embeddedImage(key);
  if (embedded) {
    if (cacheDir !== undefined) writeImage(cacheDir, key, embedded); // unpacking it takes three times as long as reading
    return { kind: "kernel", module: kernelModule(), memory: embedded };
  }
  const json = parseTokenizerJson(bytes);
  const known = recognise(json);
  if ("unsupported" in known) {
    if (known.refuse) throw new TokenizerError(`tokenizer.json uses ${known.unsupported}, which is not supported`);
    const handle = huggingFaceHandle(bytes);
    openHuggingFace(handle);
    return handle;
  }
  const { memory } = buildImage(json, known);
  if (cacheDir !== undefined) writeImage(cacheDir, key, memory);
  return { kind: "kernel", module: kernelModule(), memory };
}

/** The built tables of a model's tokenizer as a file for a bundle, with the name that `loadTokenizer` looks for. */
export async function builtImage(files: ReadonlyMap<string, Uint8Array>): Promise<[name: string, bytes: Uint8Array]> {
  const handle = await loadTokenizer(files);
  if (handle.kind !== "kernel") throw new TokenizerError("only a tokenizer of the kernel has a table image");
  const key = imageKey(files.get("tokenizer.json") ?? new Uint8Array(0));
  return [imageFileName(key), Buffer.concat(imageParts(handle.memory, key))];
}

const opened = new WeakMap<TokenizerHandle, Tokenizer>();

/** The tokenizer of a handle, for the calling thread: one for each handle. Cheap with the kernel, as the tables are shared. */
export function openTokenizer(handle: TokenizerHandle): Tokenizer {
  let tokenizer = opened.get(handle);
  if (tokenizer === undefined) {
    tokenizer = handle.kind === "kernel" ? openKernelTokenizer(handle) : openHuggingFace(handle);
    opened.set(handle, tokenizer);
  }
  return tokenizer;
}
