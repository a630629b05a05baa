/** Makes the bundle with the demo model that a build embeds. Run: node scripts/bun.mjs run scripts/demo-model.ts OUT_FILE */
import { demoModelFiles } from "../src/tokenizer/demo-model.ts";
import { packFiles } from "../src/tokenizer/file-bundle.ts";
import { builtTables } from "../src/tokenizer/load.ts";

const LEVEL = 12;

/**
 * Writes the demo model's files and its built tables to `outFile`, which must be named demo-model.bin: give that file to
 * `bun build --compile` as one more entry point. A few seconds.
 */
export async function makeDemoModel(outFile: string): Promise<void> {
  const files = await demoModelFiles();
  await Bun.write(outFile, packFiles(new Map([...files, builtTables(files)]), LEVEL));
}

if (import.meta.main) {
  const [outFile] = process.argv.slice(2);
  if (!outFile) throw new Error("name the file to write");
  await makeDemoModel(outFile);
}
