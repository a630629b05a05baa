import { readdir } from "node:fs/promises";
import { basename, join } from "node:path";
import type { Tokenizer } from "../../tokenizer/tokenizer.ts";

/** The model that a simulated engine pretends to serve. */
export interface SimulatedModel {
  readonly path: string;
  readonly servedName: string;
  /** Tokenizer and configuration files by flat name, as GetTokenizer packs them. */
  readonly files: ReadonlyMap<string, Uint8Array>;
  readonly modelType: string;
  readonly architectures: readonly string[];
  readonly contextLength: number;
  readonly vocabSize: number;
  /** Numbers of a vector; undefined: the model generates. */
  readonly poolingDim: number | undefined;
  /** EOS ids of config.json: a generation ends there without a matched stop. */
  readonly eosTokenIds: readonly number[];
  /** EOS ids that only generation_config.json names: reported as matched stop. */
  readonly otherEosTokenIds: readonly number[];
  readonly padTokenId: number;
  readonly bosTokenId: number;
  /** JSON object of generation_config.json's sampling numbers, or "". */
  readonly defaultSamplingJson: string;
  /** Ids of special tokens, known without loading the tokenizer. */
  readonly specialIds: ReadonlySet<number>;
  /** Loaded unless the engine only echoes. */
  readonly tokenizer: Tokenizer | undefined;
}

const BUNDLE_NAMES = new Set([
  "tokenizer.json",
  "tokenizer_config.json",
  "config.json",
  "generation_config.json",
  "special_tokens_map.json",
  "vocab.json",
  "merges.txt",
  "tokenizer.model",
  "tiktoken.model",
  "chat_template.json",
  "preprocessor_config.json",
  "processor_config.json",
  "video_preprocessor_config.json",
]);
const SAMPLING_DEFAULTS = ["temperature", "top_p", "top_k", "min_p", "repetition_penalty"];

function inBundle(name: string): boolean {
  return BUNDLE_NAMES.has(name) || /\.(tiktoken|jinja|model)$/.test(name);
}

/** Reads the files of a model folder that belong into a tokenizer bundle. */
export async function readModelFolder(folder: string): Promise<Map<string, Uint8Array>> {
  const files = new Map<string, Uint8Array>();
  for (const name of (await readdir(folder)).sort())
    if (inBundle(name)) files.set(name, await Bun.file(join(folder, name)).bytes());
  return files;
}

export interface ModelSettings {
  readonly path: string;
  readonly servedName: string | undefined;
  readonly contextLength: number | undefined;
  readonly kvTokens: number;
  readonly vocabSize: number | undefined;
  readonly poolingDim: number | undefined;
  readonly tokenizer: Tokenizer | undefined;
}

/** Derives the model's facts from its files; what config.json lacks comes from the tokenizer's own configuration. */
export function describeModel(files: ReadonlyMap<string, Uint8Array>, settings: ModelSettings): SimulatedModel {
  const config = json(files, "config.json");
  const generation = json(files, "generation_config.json");
  const tokenizerConfig = json(files, "tokenizer_config.json");
  const added = addedTokens(files, tokenizerConfig);
  const idOf = (key: string): number[] => {
    const value = tokenizerConfig[key];
    const text = typeof value === "string" ? value : isRecord(value) ? value["content"] : undefined;
    return added.filter((token) => token.content === text).map((token) => token.id);
  };
  const configEos = numbers(config["eos_token_id"]);
  const eosTokenIds = configEos.length > 0 ? configEos : idOf("eos_token");
  const sampling = Object.fromEntries(SAMPLING_DEFAULTS.filter((k) => k in generation).map((k) => [k, generation[k]]));
  const highest = added.reduce((most, token) => Math.max(most, token.id), 0);
  return {
    path: settings.path,
    servedName: settings.servedName ?? basename(settings.path),
    files: new Map([...files].filter(([name]) => inBundle(name))),
    modelType: typeof config["model_type"] === "string" ? config["model_type"] : "qwen3",
    architectures: strings(config["architectures"], ["Qwen3ForCausalLM"]),
    // The cache has to hold a whole context, or one request alone could get stuck.
    contextLength: Math.min(
      settings.contextLength ?? numbers(config["max_position_embeddings"])[0] ?? 32_768,
      settings.kvTokens,
    ),
    vocabSize:
      settings.vocabSize ??
      Math.max(numbers(config["vocab_size"])[0] ?? 0, highest + 1, settings.tokenizer?.vocabSize ?? 0),
    poolingDim: settings.poolingDim,
    eosTokenIds,
    otherEosTokenIds: numbers(generation["eos_token_id"]).filter((id) => !eosTokenIds.includes(id)),
    padTokenId:
      numbers(config["pad_token_id"])[0] ?? numbers(generation["pad_token_id"])[0] ?? idOf("pad_token")[0] ?? 0,
    bosTokenId: numbers(config["bos_token_id"])[0] ?? idOf("bos_token")[0] ?? 0,
    defaultSamplingJson: Object.keys(sampling).length === 0 ? "" : JSON.stringify(sampling),
    specialIds: new Set(added.filter((token) => token.special).map((token) => token.id)),
    tokenizer: settings.tokenizer,
  };
}

interface AddedToken {
  readonly id: number;
  readonly content: string;
  readonly special: boolean;
}

function addedTokens(files: ReadonlyMap<string, Uint8Array>, tokenizerConfig: Record<string, unknown>): AddedToken[] {
  const listed = tokenizerConfig["added_tokens_decoder"];
  if (isRecord(listed))
    return Object.entries(listed)
      .filter((entry): entry is [string, Record<string, unknown>] => isRecord(entry[1]))
      .map(([id, token]) => ({
        id: Number(id),
        content: String(token["content"]),
        special: token["special"] === true,
      }));
  const tokens = json(files, "tokenizer.json")["added_tokens"];
  if (!Array.isArray(tokens)) return [];
  return tokens.filter(isRecord).map((token) => ({
    id: Number(token["id"]),
    content: String(token["content"]),
    special: token["special"] === true,
  }));
}

function json(files: ReadonlyMap<string, Uint8Array>, name: string): Record<string, unknown> {
  const bytes = files.get(name);
  const value: unknown = bytes ? JSON.parse(new TextDecoder().decode(bytes)) : {};
  return isRecord(value) ? value : {};
}

function isRecord(value: unknown): value is Record<string, unknown> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

function numbers(value: unknown): number[] {
  return (Array.isArray(value) ? value : [value]).filter((item): item is number => typeof item === "number");
}

function strings(value: unknown, otherwise: readonly string[]): readonly string[] {
  return Array.isArray(value) ? value.filter((item): item is string => typeof item === "string") : otherwise;
}
