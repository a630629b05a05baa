import { jsonFile } from "../model-files.ts";
import { declaredTokens } from "./added-tokens.ts";
import { Kind, type SentencePieceModel } from "./sentencepiece.ts";
import {
  addedPieces,
  metaspace,
  type PieceRules,
  precompiled,
  replace,
  SPACES_BACK,
  STRIP_START,
} from "./sentencepiece-rules.ts";

type Files = ReadonlyMap<string, Uint8Array>;

/** The rules for a model of no class in particular: those of its file, which SentencePiece itself follows. */
export function genericRules(model: SentencePieceModel, files: Files): PieceRules {
  const texts = renamed(model, files);
  const userDefined = model.pieces.flatMap(({ kind }, id) => (kind === Kind.userDefined ? [texts[id]!] : []));
  const legacy = jsonFile(files, "tokenizer_config.json")?.["legacy"] !== false;
  const { special } = model;
  const defaults: Record<string, string> = {};
  for (const key of ["bos", "eos", "unk"] as const) {
    if (special[key].id >= 0) defaults[`${key}_token`] = special[key].text;
  }
  const own = new Set(model.pieces.filter((p) => p.kind === Kind.userDefined).map((p) => p.text));
  return {
    type: model.type,
    pieces: model.pieces.map(({ score }, id) => ({ text: texts[id]!, score })),
    merged: mergedByScore(model, texts),
    byteFallback: model.byteFallback,
    exactScores: false,
    unkId: special.unk.id,
    unkToken: special.unk.text,
    ignoreMerges: model.type === "bpe" && userDefined.length > 0,
    ...pipeline(model, userDefined, legacy),
    decoder: decoder(model),
    defaults,
    extra: addedPieces(model).filter((token) => !own.has(token.content)),
    rawDeclared: model.addDummyPrefix,
  };
}

/** Texts of the pieces by id. In a BPE model the tokens that tokenizer_config.json declares take the place of placeholders. */
function renamed(model: SentencePieceModel, files: Files): string[] {
  const texts = model.pieces.map((piece) => piece.text);
  if (model.type !== "bpe") return texts;
  const names = new Map((declaredTokens(files) ?? []).map((token) => [token.id, token.content]));
  const kept = new Set(texts.filter((_, id) => !names.has(id)));
  return texts.map((text, id) => {
    const name = names.get(id);
    return name === undefined || kept.has(name) ? text : name;
  });
}

/** Normal pieces by falling score, then by id. */
function mergedByScore({ type, pieces }: SentencePieceModel, texts: readonly string[]): string[] {
  if (type !== "bpe") return [];
  const ids = [...pieces.keys()].filter((id) => pieces[id]!.kind === Kind.normal);
  ids.sort((a, b) => pieces[b]!.score - pieces[a]!.score || a - b);
  return ids.map((id) => texts[id]!);
}

function pipeline(
  model: SentencePieceModel,
  userDefined: readonly string[],
  legacy: boolean,
): Pick<PieceRules, "normalizer" | "preTokenizer"> {
  const SPACES = replace({ String: " " }, "▁");
  const bare =
    model.charsmap.length === 0 && !model.removeExtraWhitespaces && model.escapeWhitespaces && userDefined.length === 0;
  // the same in the words of Gemma's and Llama's files, which are better known
  if (bare && !model.addDummyPrefix) return { normalizer: SPACES, preTokenizer: null };
  if (bare && legacy)
    return {
      normalizer: { type: "Sequence", normalizers: [{ type: "Prepend", prepend: "▁" }, SPACES] },
      preTokenizer: null,
    };
  if (bare) return { normalizer: null, preTokenizer: metaspace("first", false) };
  const normalizers: unknown[] = [];
  if (model.charsmap.length > 0) normalizers.push(precompiled(model));
  if (model.removeExtraWhitespaces)
    normalizers.push(replace({ Regex: "\\A +| +\\z" }, ""), replace({ Regex: " {2,}" }, " "));
  if (model.escapeWhitespaces) normalizers.push(SPACES);
  // the dummy prefix stands before a text that begins with the sign as well
  if (model.addDummyPrefix && legacy) normalizers.push(replace({ Regex: "\\A▁" }, "▁▁"));
  const steps: unknown[] = [];
  if (model.addDummyPrefix) steps.push(metaspace(legacy ? "always" : "first", false));
  if (userDefined.length > 0) steps.push(userDefinedSplit(userDefined));
  return {
    normalizer: { type: "Sequence", normalizers },
    preTokenizer: steps.length > 0 ? { type: "Sequence", pretokenizers: steps } : null,
  };
}

/** User-defined pieces are taken whole and never merged. */
function userDefinedSplit(texts: readonly string[]): unknown {
  const length = (text: string): number => [...text].length;
  const alternatives = [...texts].sort((a, b) => length(b) - length(a)).map(escaped);
  return { type: "Split", pattern: { Regex: alternatives.join("|") }, behavior: "Isolated", invert: false };
}

/** The signs that Python's `re.escape` puts a backslash before. */
const escaped = (text: string): string => text.replace(/[\t\n\v\f\r #$&()*+\-.?[\\\]^{|}~]/g, "\\$&");

function decoder({ byteFallback, addDummyPrefix }: SentencePieceModel): unknown {
  const steps: unknown[] = [SPACES_BACK];
  if (byteFallback) steps.push({ type: "ByteFallback" });
  if (addDummyPrefix) steps.push({ type: "Fuse" }, STRIP_START);
  else if (byteFallback) steps.push({ type: "Fuse" });
  return { type: "Sequence", decoders: steps };
}
