import { buildImage } from "./image/build.ts";
import { recognise } from "./image/recognise.ts";
import { parseTokenizerJson } from "./image/tokenizer-json.ts";
import { kernelModule } from "./kernel/kernel.ts";
import { type KernelHandle, openKernelTokenizer } from "./kernel-tokenizer.ts";
import { type Tokenizer, TokenizerError } from "./tokenizer.ts";

/** A loaded tokenizer as plain data over shared memory: send it to any thread and open it there. */
export type TokenizerHandle = KernelHandle;

export interface LoadOptions {
  /** Folder for built tables; absent, or not writable: they are built at every start. */
  readonly cacheDir?: string;
}

/**
 * Loads the tokenizer that `files` (by name; tokenizer.json at least) hold. Throws `TokenizerError` naming the part that is wrong or
 * not supported. Takes tens of milliseconds with cached tables, else up to two seconds.
 */
export async function loadTokenizer(
  files: ReadonlyMap<string, Uint8Array>,
  _options: LoadOptions = {},
): Promise<TokenizerHandle> {
  const bytes = files.get("tokenizer.json");
  if (!bytes) throw new TokenizerError("there is no tokenizer.json");
  const json = parseTokenizerJson(bytes);
  const known = recognise(json);
  if ("unsupported" in known)
    throw new TokenizerError(`tokenizer.json uses ${known.unsupported}, which is not supported`);
  return { kind: "kernel", module: kernelModule(), memory: buildImage(json, known).memory };
}

/** The tokenizer of a handle, for the calling thread; cheap, as the tables are shared. */
export function openTokenizer(handle: TokenizerHandle): Tokenizer {
  return openKernelTokenizer(handle);
}
