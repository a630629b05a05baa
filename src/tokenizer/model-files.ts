import { constants } from "node:fs";
import { access, readdir, readFile, stat } from "node:fs/promises";
import { basename, dirname, join } from "node:path";
import { FolderFiles, reason, unreadable } from "./folder-files.ts";
import { isObject } from "./image/tokenizer-json.ts";
import { type Tokenizer, TokenizerError } from "./tokenizer.ts";

/** Files that hold a tokenizer, by format. The first format that is there counts; the content of .model files decides what they are. */
const TOKENIZER_FILES = [
  /^tokenizer\.json$/,
  /^tekken\.json$/,
  /^[^/]+\.model$/,
  /^(?:vocab\.json|merges\.txt)$/,
  /^[^/]+\.tiktoken$/,
] as const;
const OTHER_FILES =
  /^(?:tokenizer_config|config|generation_config|special_tokens_map|added_tokens|preprocessor_config|processor_config|video_preprocessor_config|chat_template)\.json$/;
/** Folders of named chat templates, and of the encoders in Python that some models have instead of one. */
export const MODEL_FOLDERS = ["additional_chat_templates", "encoding"] as const;
/** A file above this size is not what its name says, bytes. */
const MAX_FILE = 200 * 1024 * 1024;
/** A file above this size is read when its bytes are asked for, bytes. */
const READ_LATER = 1 << 20;

/** Patterns of the names (relative to a model's folder or repository) of all files that tokenizing and templates need. */
export const WANTED: readonly RegExp[] = [
  ...TOKENIZER_FILES,
  OTHER_FILES,
  /^(?:additional_chat_templates\/)?[^/]+\.jinja$/,
  // never run: they tell which format a model's prompts have
  /^(?:encoding\/)?encoding_\w+\.py$/,
];

/** Does tokenizing or templating need the file of this name (relative to the model's folder or repository)? Weights and code stay where they are. */
export const isModelFile = (name: string): boolean => WANTED.some((pattern) => pattern.test(name));

const formatOf = (name: string): RegExp | undefined => TOKENIZER_FILES.find((pattern) => pattern.test(name));

/**
 * Reads the tokenizer files of a model from its folder. `path` is the folder, or a tokenizer's file in it (tokenizer.json, tekken.json,
 * tokenizer.model, vocab.json ...): then files of other formats are left out. Names are relative to the folder. Throws `TokenizerError`
 * if there is no tokenizer or a file can't be read. Of large files only that they are there is known at first.
 */
export async function readModelFiles(path: string): Promise<FolderFiles> {
  const found = await stat(path).catch((error: unknown) => {
    throw new TokenizerError(`the model path ${path} can't be read: ${reason(error)}`);
  });
  const chosen = found.isDirectory() ? undefined : formatOf(basename(path));
  if (!found.isDirectory() && !chosen) throw new TokenizerError(notTheFile(path));
  const folder = found.isDirectory() ? path : dirname(path);
  let names = (await list(folder)).filter(isModelFile);
  if (chosen) {
    const others = names.filter(
      (name) => formatOf(name) === undefined || (formatOf(name) === chosen && !/\.(?:model|tiktoken)$/.test(name)),
    );
    names = [...new Set([...others, basename(path)])];
  }
  if (!names.some(formatOf))
    throw new TokenizerError(`there is no tokenizer in ${folder}: no tokenizer.json, nor a file of another format`);
  for (const inner of MODEL_FOLDERS)
    for (const name of await list(join(folder, inner), true))
      if (isModelFile(`${inner}/${name}`)) names.push(`${inner}/${name}`);
  const files = new FolderFiles(folder);
  for (const name of names.sort()) files.add(name, await read(join(folder, name)));
  return files;
}

function notTheFile(path: string): string {
  if (path.endsWith(".gguf")) return `the model path ${path} is a GGUF file: its tokenizer is not supported`;
  return `the model path ${path} is neither a folder nor a tokenizer's file (tokenizer.json, tekken.json, a .model, vocab.json ...)`;
}

async function list(folder: string, mayMiss = false): Promise<string[]> {
  try {
    return await readdir(folder);
  } catch (error) {
    if (mayMiss) return [];
    throw new TokenizerError(`the folder ${folder} can't be read: ${reason(error)}`);
  }
}

/** The bytes of a file; undefined if they are many. */
async function read(file: string): Promise<Uint8Array | undefined> {
  try {
    const { size } = await stat(file);
    if (size > MAX_FILE) throw new Error(`it has ${size} bytes`);
    if (size <= READ_LATER) return await readFile(file);
    await access(file, constants.R_OK);
    return undefined;
  } catch (error) {
    throw unreadable(file, error);
  }
}

/** What files' bytes were parsed to: a configuration of a megabyte is asked for many things. */
const parsed = new WeakMap<Uint8Array, Readonly<Record<string, unknown>>>();

/** A JSON object among the files; undefined if there is none of this name. Throws `TokenizerError` if it is no JSON object. */
export function jsonFile(
  files: ReadonlyMap<string, Uint8Array>,
  name: string,
): Readonly<Record<string, unknown>> | undefined {
  const bytes = files.get(name);
  if (!bytes) return undefined;
  let json: unknown = parsed.get(bytes);
  if (json !== undefined) return json as Readonly<Record<string, unknown>>;
  try {
    json = JSON.parse(new TextDecoder().decode(bytes));
  } catch (error) {
    throw new TokenizerError(`${name} is not JSON: ${reason(error)}`);
  }
  if (!isObject(json)) throw new TokenizerError(`${name} is not a JSON object`);
  parsed.set(bytes, json);
  return json;
}

/** A model's configuration and those nested in it: of the text part of a multimodal model. */
function configurations(files: ReadonlyMap<string, Uint8Array>): Readonly<Record<string, unknown>>[] {
  const config = jsonFile(files, "config.json");
  if (!config) return [];
  const nested = ["text_config", "llm_config", "language_config", "thinker_config"].map((key) => config[key]);
  const all = [config, ...nested.filter(isObject)];
  // Qwen's omni models nest the text part once more
  return [
    ...all,
    ...all
      .slice(1)
      .map((c) => c["text_config"])
      .filter(isObject),
  ];
}

/**
 * Ids that end a generation, ascending: of config.json (and the text part's in it), generation_config.json and the eos_token of
 * tokenizer_config.json. Where none of these says one (tekken.json or a SentencePiece model stand alone), that of `</s>`.
 */
export function endOfSequenceIds(files: ReadonlyMap<string, Uint8Array>, tokenizer: Tokenizer): number[] {
  const ids = new Set<number>();
  const add = (value: unknown): void => {
    for (const id of Array.isArray(value) ? value : [value]) if (isCount(id, 0)) ids.add(id);
  };
  for (const config of configurations(files)) add(config["eos_token_id"]);
  add(jsonFile(files, "generation_config.json")?.["eos_token_id"]);
  const name = tokenText(jsonFile(files, "tokenizer_config.json")?.["eos_token"]);
  if (name !== undefined) add(tokenizer.tokenId(name));
  const usual = ids.size === 0 && !files.has("tokenizer.json") ? tokenizer.tokenId("</s>") : undefined;
  if (usual !== undefined && tokenizer.isSpecial(usual)) ids.add(usual);
  return [...ids].sort((a, b) => a - b);
}

/** Text of a token in tokenizer_config.json: a string, or an object with `content`. */
export function tokenText(value: unknown): string | undefined {
  if (isObject(value)) return tokenText(value["content"]);
  return typeof value === "string" ? value : undefined;
}

/** Tokens that fit in the model's context by its config.json, else by tokenizer_config.json; undefined if neither says. */
export function contextLength(files: ReadonlyMap<string, Uint8Array>): number | undefined {
  const keys = [
    "max_position_embeddings",
    "max_sequence_length",
    "max_seq_len",
    "model_max_length",
    "seq_length",
    "n_positions",
  ];
  for (const config of configurations(files)) {
    for (const key of keys) if (isCount(config[key], 1)) return config[key];
  }
  const length = jsonFile(files, "tokenizer_config.json")?.["model_max_length"];
  // "no limit" is written as 1e30
  return isCount(length, 1) && length < 1e9 ? length : undefined;
}

const isCount = (value: unknown, least: number): value is number =>
  Number.isSafeInteger(value) && Number(value) >= least;

/** Sampling values that a model's makers recommend. */
export interface DefaultSampling {
  readonly temperature?: number;
  readonly top_p?: number;
  readonly top_k?: number;
  readonly min_p?: number;
  readonly repetition_penalty?: number;
}

/** The sampling values of generation_config.json; none if it says `do_sample: false`. */
export function defaultSampling(files: ReadonlyMap<string, Uint8Array>): DefaultSampling {
  const config = jsonFile(files, "generation_config.json");
  if (!config || config["do_sample"] === false) return {};
  const names = ["temperature", "top_p", "top_k", "min_p", "repetition_penalty"] as const;
  const given = names.filter((name) => Number.isFinite(config[name])).map((name) => [name, config[name]]);
  return Object.fromEntries(given) as DefaultSampling;
}
