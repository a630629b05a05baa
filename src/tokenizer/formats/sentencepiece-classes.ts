import { jsonFile } from "../model-files.ts";
import { TokenizerError } from "../tokenizer.ts";
import { plainSpecial, writtenToken } from "./added-tokens.ts";
import type { Piece, SentencePieceModel } from "./sentencepiece.ts";
import { genericRules } from "./sentencepiece-generic.ts";
import {
  addedPieces,
  metaspace,
  type PieceRules,
  precompiled,
  replace,
  SPACES_BACK,
  STRIP_START,
} from "./sentencepiece-rules.ts";
import { GENERIC } from "./tokenizer-class.ts";

type Files = ReadonlyMap<string, Uint8Array>;

/** The rules for a class. Throws `TokenizerError` naming a class that is not known, or one that the model does not fit. */
export function pieceRules(name: string, model: SentencePieceModel, files: Files): PieceRules {
  if (name === GENERIC) return genericRules(model, files);
  const rules = Object.hasOwn(CLASSES, name) ? CLASSES[name] : undefined;
  if (!rules)
    throw new TokenizerError(
      `${model.name} of the tokenizer class ${name} is not supported (${Object.keys(CLASSES).join(", ")} are)`,
    );
  if (rules.type !== model.type)
    throw new TokenizerError(`${model.name} is a ${model.type} model, which the class ${name} is not made for`);
  return rules.of(model, jsonFile(files, "tokenizer_config.json") ?? {});
}

type Config = Readonly<Record<string, unknown>>;

const CLASSES: Readonly<
  Record<string, { readonly type: PieceRules["type"]; of(model: SentencePieceModel, config: Config): PieceRules }>
> = {
  LlamaTokenizer: { type: "bpe", of: llama },
  GemmaTokenizer: { type: "bpe", of: gemma },
  T5Tokenizer: { type: "unigram", of: t5 },
  XLMRobertaTokenizer: { type: "unigram", of: xlmRoberta },
};

function bpe(
  model: SentencePieceModel,
): Pick<
  PieceRules,
  "type" | "pieces" | "merged" | "byteFallback" | "exactScores" | "unkId" | "ignoreMerges" | "extra" | "rawDeclared"
> {
  return {
    type: "bpe",
    pieces: model.pieces,
    merged: model.pieces.map((piece) => piece.text),
    byteFallback: true,
    exactScores: true,
    unkId: 0,
    ignoreMerges: false,
    extra: addedPieces(model),
    rawDeclared: false,
  };
}

function llama(model: SentencePieceModel, config: Config): PieceRules {
  const prefix = config["add_prefix_space"] !== false;
  const scheme = !prefix ? "never" : config["legacy"] === true ? "always" : "first";
  const decoders = [SPACES_BACK, { type: "ByteFallback" }, { type: "Fuse" }, ...(prefix ? [STRIP_START] : [])];
  return {
    ...bpe(model),
    unkToken: null,
    normalizer: null,
    preTokenizer: metaspace(scheme, false),
    decoder: { type: "Sequence", decoders },
    defaults: { unk_token: "<unk>", bos_token: "<s>", eos_token: "</s>" },
  };
}

function gemma(model: SentencePieceModel, config: Config): PieceRules {
  const unk = typeof config["unk_token"] === "string" ? config["unk_token"] : "<unk>";
  return {
    ...bpe(model),
    unkToken: unk,
    normalizer: replace({ String: " " }, "▁"),
    preTokenizer: { type: "Split", pattern: { String: " " }, behavior: "MergedWithPrevious", invert: false },
    decoder: { type: "Sequence", decoders: [SPACES_BACK, { type: "ByteFallback" }, { type: "Fuse" }] },
    defaults: { unk_token: "<unk>", bos_token: "<bos>", eos_token: "<eos>", pad_token: "<pad>", mask_token: "<mask>" },
  };
}

type Unigram = Pick<
  PieceRules,
  | "type"
  | "merged"
  | "byteFallback"
  | "exactScores"
  | "unkToken"
  | "ignoreMerges"
  | "normalizer"
  | "preTokenizer"
  | "decoder"
  | "rawDeclared"
>;

function words(model: SentencePieceModel, scheme: "always" | "never"): Unigram {
  const split = metaspace(scheme, true);
  return {
    type: "unigram",
    merged: [],
    byteFallback: false,
    exactScores: true,
    unkToken: null,
    ignoreMerges: false,
    normalizer: model.charsmap.length > 0 ? precompiled(model) : null,
    preTokenizer: { type: "Sequence", pretokenizers: [{ type: "WhitespaceSplit" }, split] },
    decoder: split,
    rawDeclared: false,
  };
}

function t5(model: SentencePieceModel, config: Config): PieceRules {
  const count = config["extra_ids"] ?? 100;
  if (!Number.isInteger(count) || Number(count) < 0 || Number(count) > 1000)
    throw new TokenizerError("extra_ids of tokenizer_config.json is not a number of tokens");
  const names = Array.from({ length: Number(count) }, (_, i) => `<extra_id_${i}>`);
  const extra = addedPieces(model);
  const own = extra.filter((token) => token.content.includes("<extra_id_")).length;
  if (own > 0 && own !== Number(count))
    throw new TokenizerError(`${model.name} has ${own} extra ids of its own, not ${count}`);
  return {
    ...words(model, "always"),
    pieces: [...model.pieces, ...names.toReversed().map((text) => ({ text, score: 0 }))],
    unkId: 2,
    defaults: { eos_token: "</s>", unk_token: "<unk>", pad_token: "<pad>" },
    extra: own > 0 ? extra : [...extra, ...names.map(plainSpecial)],
    around: { single: ["A", "eos_token"], pair: ["A", "eos_token", "B", "eos_token"] },
  };
}

function xlmRoberta(model: SentencePieceModel, config: Config): PieceRules {
  const defaults = {
    bos_token: "<s>",
    eos_token: "</s>",
    sep_token: "</s>",
    cls_token: "<s>",
    unk_token: "<unk>",
    pad_token: "<pad>",
    mask_token: "<mask>",
  };
  const name = (key: keyof typeof defaults): Pick<Piece, "text" | "score"> => {
    const text = config[key] ?? defaults[key];
    return { text: typeof text === "string" ? text : writtenToken(text, -1, key).content, score: 0 };
  };
  return {
    ...words(model, config["add_prefix_space"] === false ? "never" : "always"),
    pieces: [
      name("bos_token"),
      name("pad_token"),
      name("eos_token"),
      name("unk_token"),
      ...model.pieces.slice(3),
      name("mask_token"),
    ],
    unkId: 3,
    defaults,
    extra: addedPieces(model),
    around: {
      single: ["bos_token", "A", "eos_token"],
      pair: ["bos_token", "A", "eos_token", "eos_token", "B", "eos_token"],
    },
  };
}
