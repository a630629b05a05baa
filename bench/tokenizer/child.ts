/**
 * One contestant that runs on Bun, in a process of its own; prints a ChildResult.
 * Run: bun child.ts CONTESTANT TOKENIZER_JSON PROMPTS_JSON KIND,KIND,... (the order of the kinds)
 * BENCH_PACKAGES names the folder where contestants that are no dependencies are installed.
 */
import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { join } from "node:path";
import { Tokenizer as HuggingFace } from "@huggingface/tokenizers";
import { loadTokenizer, openTokenizer } from "../../src/tokenizer/load.ts";
import { readModelFiles } from "../../src/tokenizer/model-files.ts";
import { sampleText } from "../../src/tokenizer/sample-text.ts";
import { workFolder } from "../lab/paths.ts";
import type { Kind, Prompts } from "./prompts.ts";
import { type ChildResult, checksum, WARM_PASSES } from "./result.ts";

/** Texts of random tokens that ours encodes before it counts as warm, as a serving thread has after some forty long prompts: it is compiled while it runs. */
const WARM_TEXTS = 100;
const WARM_TOKENS = 3000;

interface Subject {
  readonly version: string;
  encode(text: string): ArrayLike<number>;
  warmUp?(): void;
  memory?(): { shared: number; thread: number };
}

const require = createRequire(join(process.env["BENCH_PACKAGES"] ?? import.meta.dir, "resolve-from-here.js"));
const versionOf = (name: string): string => {
  for (const folder of require.resolve.paths(name) ?? [])
    try {
      return (JSON.parse(readFileSync(join(folder, name, "package.json"), "utf8")) as { version: string }).version;
    } catch {
      // not in this folder
    }
  return "?";
};

async function ours(file: string): Promise<Subject> {
  const files = await readModelFiles(file);
  const handle = await loadTokenizer(files, { cacheDir: workFolder() });
  if (handle.kind !== "kernel") throw new TypeError("not a tokenizer of the kernel");
  const shared = handle.memory.buffer.byteLength;
  const tokenizer = openTokenizer(handle);
  return {
    version: (JSON.parse(readFileSync(join(import.meta.dir, "../../package.json"), "utf8")) as { version: string })
      .version,
    encode: (text) => tokenizer.encode(text),
    warmUp() {
      for (let i = 0; i < WARM_TEXTS; i++) tokenizer.encode(sampleText(tokenizer, WARM_TOKENS, i));
    },
    memory: () => ({ shared, thread: handle.memory.buffer.byteLength - shared }),
  };
}

async function huggingFace(file: string): Promise<Subject> {
  const library = new HuggingFace(JSON.parse(readFileSync(file, "utf8")) as object, {});
  return {
    version: versionOf("@huggingface/tokenizers"),
    encode: (text) => library.encode(text, { add_special_tokens: false }).ids,
  };
}

interface NativeEncoding {
  getIds(): number[];
}
interface NativeTokenizer {
  encode(text: string, pair: null, options: { addSpecialTokens: boolean }): Promise<NativeEncoding>;
}

/** The Rust library's package for Node. Its `encode` runs in a thread of its pool: it is asked and awaited one by one. */
async function native(file: string): Promise<Subject & { encodeLater(text: string): Promise<ArrayLike<number>> }> {
  const { Tokenizer } = require("tokenizers") as { Tokenizer: { fromFile(file: string): NativeTokenizer } };
  const tokenizer = Tokenizer.fromFile(file);
  return {
    version: versionOf("tokenizers"),
    encode: () => [],
    encodeLater: async (text) => (await tokenizer.encode(text, null, { addSpecialTokens: false })).getIds(),
  };
}

/** OpenAI's vocabularies only; both know them by name. */
const encodingOf = (file: string): string => (file.includes("gpt35turbo") ? "cl100k_base" : "o200k_base");

async function gptTokenizer(file: string): Promise<Subject> {
  const module = require(`gpt-tokenizer/encoding/${encodingOf(file)}`) as { encode(text: string): number[] };
  return { version: versionOf("gpt-tokenizer"), encode: (text) => module.encode(text) };
}

async function tiktoken(file: string): Promise<Subject> {
  const { get_encoding } = require("tiktoken") as {
    get_encoding(name: string): { encode_ordinary(text: string): Uint32Array };
  };
  const encoding = get_encoding(encodingOf(file));
  return { version: versionOf("tiktoken"), encode: (text) => encoding.encode_ordinary(text) };
}

const CONTESTANTS: Readonly<Record<string, (file: string) => Promise<Subject>>> = {
  ours,
  "hf-js": huggingFace,
  "native-npm": native,
  "gpt-tokenizer": gptTokenizer,
  tiktoken,
};

async function measure(name: string, file: string, prompts: Prompts, order: readonly Kind[]): Promise<ChildResult> {
  let start = performance.now();
  const since = (): number => performance.now() - start;
  const subject = await CONTESTANTS[name]!(file);
  const load_ms = since();
  const later =
    "encodeLater" in subject ? (subject.encodeLater as (text: string) => Promise<ArrayLike<number>>) : undefined;
  const encode = (text: string): ArrayLike<number> | Promise<ArrayLike<number>> =>
    later ? later(text) : subject.encode(text);

  start = performance.now();
  const first = encode(prompts[order[0]!].warm[0]!);
  if (later) await first;
  const first_ms = since();
  subject.warmUp?.();
  const ms: Record<Kind, number[]> = { english: [], code: [], zh_ja: [] };
  const sum: Record<Kind, number> = { english: 0, code: 0, zh_ja: 0 };
  for (const kind of order) {
    for (let pass = 0; pass < WARM_PASSES; pass++)
      for (const text of prompts[kind].warm) later ? await later(text) : subject.encode(text);
    for (const text of prompts[kind].measured) {
      start = performance.now();
      const ids = later ? await later(text) : subject.encode(text);
      ms[kind].push(since());
      sum[kind] = checksum(sum[kind], ids);
    }
  }
  const memory = subject.memory?.();
  return { version: subject.version, load_ms, first_ms, ms, sum, ...(memory && { memory }) };
}

const [name, file, promptsFile, order] = process.argv.slice(2) as [string, string, string, string];
const prompts = JSON.parse(readFileSync(promptsFile, "utf8")) as Prompts;
console.log(JSON.stringify(await measure(name, file, prompts, order.split(",") as Kind[])));
process.exit(0);
