import { type FileBundle, openBundle } from "./file-bundle.ts";
import { imageFileName, imageOfBytes } from "./image-cache.ts";
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

/** Memory with the table image of this key, if the binary brings it along whole: tables can always be built. */
export async function embeddedImage(key: Buffer): Promise<WebAssembly.Memory | undefined> {
  const name = imageFileName(key);
  try {
    const files = await embeddedFiles();
    return files?.names.includes(name) ? imageOfBytes(await files.read(name), key) : undefined;
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
