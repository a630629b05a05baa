import { type FileBundle, openBundle } from "./file-bundle.ts";
import { type BuiltTables, tableFileName, tablesOfBytes } from "./table-cache.ts";
import { TokenizerError } from "./tokenizer.ts";

/** Name of the embedded bundle, without its ending; a build adds a hash to it. */
const BUNDLE = "demo-model";

let opened: Promise<FileBundle | undefined> | undefined;

/** The files of the demo model in a compiled binary; undefined when running from source. */
export function embeddedFiles(): Promise<FileBundle | undefined> {
  if (!opened) {
    const blob = Bun.embeddedFiles.find((file) => baseName(file).startsWith(BUNDLE));
    opened = blob ? openBundle(blob) : Promise.resolve(undefined);
  }
  return opened;
}

/** The tables of this key, if the binary brings them along whole: they can always be built. */
export async function embeddedTables(key: Buffer): Promise<BuiltTables | undefined> {
  const name = tableFileName(key);
  try {
    const files = await embeddedFiles();
    return files?.names.includes(name) ? tablesOfBytes(await files.read(name), key) : undefined;
  } catch (error) {
    if (error instanceof TokenizerError) return undefined;
    throw error;
  }
}

/** Embedded files are named blobs, though their type does not say so. */
function baseName(file: Blob): string {
  const name = "name" in file && typeof file.name === "string" ? file.name : "";
  return name.slice(name.lastIndexOf("/") + 1);
}
