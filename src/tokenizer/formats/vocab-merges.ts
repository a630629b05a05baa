import { MAX_TOKENS } from "../image/header.ts";
import { jsonFile } from "../model-files.ts";
import { TokenizerError } from "../tokenizer.ts";
import { type AddedTokens, addedTokens, bosAndEos, templateProcessing } from "./added-tokens.ts";
import { jsonWriter } from "./json-writer.ts";
import { QWEN2_PATTERN } from "./patterns.ts";
import { tokenizerClass } from "./tokenizer-class.ts";

type Files = ReadonlyMap<string, Uint8Array>;

/** What a tokenizer class says that stands in none of the files. */
interface KnownClass {
  readonly defaults: Readonly<Record<string, string>>;
  /** Texts are NFC, and cut with this pattern; absent: as they are, and with GPT-2's. */
  readonly pattern?: string;
  /** Special tokens around a text: those of Roberta. */
  readonly around?: boolean;
}

const END = "<|endoftext|>";
const CLASSES: Readonly<Record<string, KnownClass>> = {
  Qwen2Tokenizer: { defaults: { unk_token: END, eos_token: END, pad_token: END }, pattern: QWEN2_PATTERN },
  GPT2Tokenizer: { defaults: { unk_token: END, bos_token: END, eos_token: END } },
  RobertaTokenizer: {
    defaults: {
      bos_token: "<s>",
      eos_token: "</s>",
      sep_token: "</s>",
      cls_token: "<s>",
      unk_token: "<unk>",
      pad_token: "<pad>",
      mask_token: "<mask>",
    },
    around: true,
  },
};

/**
 * The tokenizer.json of a folder with vocab.json and merges.txt, as transformers 5.24 makes it for the classes of Qwen, GPT-2 and
 * Roberta. Throws `TokenizerError` naming another class, or file and part.
 */
export function vocabMergesJson(files: Files, merges: Uint8Array): Uint8Array {
  const name = tokenizerClass(files);
  const known = Object.hasOwn(CLASSES, name) ? CLASSES[name] : undefined;
  if (!known)
    throw new TokenizerError(
      `vocab.json and merges.txt of the tokenizer class ${name} are not supported (${Object.keys(CLASSES).join(", ")} are)`,
    );
  const vocab = readVocab(files);
  const size = Object.keys(vocab).length;
  const id = (text: string): number | undefined => (Object.hasOwn(vocab, text) ? vocab[text] : undefined);
  const added = addedTokens(files, { defaults: known.defaults, plain: known.pattern !== undefined, size, id });
  const config = jsonFile(files, "tokenizer_config.json") ?? {};
  const prefixSpace = config["add_prefix_space"] === true;
  const byteLevel = { type: "ByteLevel", add_prefix_space: prefixSpace, trim_offsets: true, use_regex: !known.pattern };
  const split = { type: "Split", pattern: { Regex: known.pattern }, behavior: "Isolated", invert: false };
  const withAround = bosAndEos(files, added) ?? null;
  const head = {
    version: "1.0",
    truncation: null,
    padding: null,
    added_tokens: added.tokens,
    normalizer: known.pattern ? { type: "NFC" } : null,
    pre_tokenizer: known.pattern ? { type: "Sequence", pretokenizers: [split, byteLevel] } : byteLevel,
    post_processor: known.around
      ? roberta(added, prefixSpace, config["trim_offsets"] !== false)
      : withAround && templateProcessing(withAround, added),
    decoder: { type: "ByteLevel", add_prefix_space: true, trim_offsets: true, use_regex: true },
  };
  const writer = jsonWriter();
  writer.raw(`${JSON.stringify(head).slice(0, -1)},"model":{"type":"BPE","dropout":null,"unk_token":null,`);
  writer.raw(
    '"continuing_subword_prefix":"","end_of_word_suffix":"","fuse_unk":false,"byte_fallback":false,"ignore_merges":false,',
  );
  writer.raw('"vocab":');
  writer.raw(JSON.stringify(vocab));
  writer.raw(',"merges":');
  writer.raw(JSON.stringify(readMergeLines(merges)));
  writer.raw("}}");
  return writer.bytes();
}

function roberta({ tokens, named }: AddedTokens, prefixSpace: boolean, trimOffsets: boolean): unknown {
  const token = (key: string): [string, number] => {
    const text = named.get(key);
    const found = tokens.find((t) => t.content === text);
    if (!found) throw new TokenizerError(`tokenizer_config.json has no ${key}`);
    return [found.content, found.id];
  };
  const [sep, cls] = [token("sep_token"), token("cls_token")];
  return { type: "RobertaProcessing", sep, cls, trim_offsets: trimOffsets, add_prefix_space: prefixSpace };
}

function readVocab(files: Files): Record<string, number> {
  const vocab = jsonFile(files, "vocab.json");
  if (!vocab) throw new TokenizerError("there is no vocab.json");
  for (const [token, id] of Object.entries(vocab)) {
    if (!Number.isInteger(id) || Number(id) < 0 || Number(id) >= MAX_TOKENS)
      throw new TokenizerError(`vocab.json gives ${JSON.stringify(token)} no id`);
  }
  return vocab as Record<string, number>;
}

function readMergeLines(bytes: Uint8Array): string[] {
  let text: string;
  try {
    text = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true }).decode(bytes);
  } catch {
    throw new TokenizerError("merges.txt is not UTF-8");
  }
  const lines = text.split("\n").map((line) => (line.endsWith("\r") ? line.slice(0, -1) : line));
  if (lines.at(-1) === "") lines.pop();
  const merges: string[] = [];
  lines.forEach((line, i) => {
    if (line.startsWith("#version")) return;
    const space = line.indexOf(" ");
    if (space <= 0 || space === line.length - 1 || line.includes(" ", space + 1))
      throw new TokenizerError(`line ${i + 1} of merges.txt is not two tokens`);
    merges.push(line);
  });
  return merges;
}
