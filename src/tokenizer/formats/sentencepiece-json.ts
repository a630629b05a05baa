import { TokenizerError } from "../tokenizer.ts";
import { addedTokens, bosAndEos, templateProcessing } from "./added-tokens.ts";
import { jsonWriter } from "./json-writer.ts";
import { scoreText } from "./score-text.ts";
import { readSentencePiece } from "./sentencepiece.ts";
import { pieceRules } from "./sentencepiece-classes.ts";
import type { PieceRules } from "./sentencepiece-rules.ts";
import { tokenizerClass } from "./tokenizer-class.ts";

type Files = ReadonlyMap<string, Uint8Array>;

/**
 * The tokenizer.json of a SentencePiece model, as transformers 5.24 makes it for the model's class: for the classes of Llama, Gemma, T5
 * and XLM-Roberta with the rules of these, else with those of the file. Throws `TokenizerError` naming another class, or file and part.
 */
export function sentencePieceJson(files: Files, name: string, bytes: Uint8Array): Uint8Array {
  const rules = pieceRules(tokenizerClass(files), readSentencePiece(name, bytes), files);
  const ids = new Map<string, number>();
  for (const [id, { text }] of rules.pieces.entries()) {
    if (ids.has(text)) throw new TokenizerError(`${name} has the piece ${JSON.stringify(text)} twice`);
    ids.set(text, id);
  }
  const vocabulary = {
    defaults: rules.defaults,
    extra: rules.extra,
    raw: rules.rawDeclared,
    size: ids.size,
    id: (text: string) => ids.get(text),
  };
  const added = addedTokens(files, vocabulary);
  const around = rules.around ?? bosAndEos(files, added);
  const head = {
    version: "1.0",
    truncation: null,
    padding: null,
    added_tokens: added.tokens,
    normalizer: rules.normalizer,
    pre_tokenizer: rules.preTokenizer,
    post_processor: around ? templateProcessing(around, added) : null,
    decoder: rules.decoder,
  };
  const writer = jsonWriter();
  writer.raw(`${JSON.stringify(head).slice(0, -1)},"model":`);
  writer.raw(JSON.stringify(modelHead(rules)).slice(0, -1));
  writer.raw(',"vocab":');
  if (rules.type === "unigram") {
    const number = rules.exactScores ? scoreText : JSON.stringify;
    writer.raw("[");
    for (const [id, { text, score }] of rules.pieces.entries())
      writer.raw(`${id > 0 ? "," : ""}[${JSON.stringify(text)},${number(score)}]`);
    writer.raw("]");
  } else {
    writer.raw(JSON.stringify(Object.fromEntries(ids)));
    writer.raw(',"merges":[');
    let separator = "";
    for (const merge of merges(rules)) {
      writer.raw(separator + JSON.stringify(merge));
      separator = ",";
    }
    writer.raw("]");
  }
  writer.raw("}}");
  return writer.bytes();
}

function modelHead({ type, unkId, unkToken, byteFallback, ignoreMerges }: PieceRules): Record<string, unknown> {
  if (type === "unigram") return { type: "Unigram", unk_id: unkId, byte_fallback: byteFallback };
  return {
    type: "BPE",
    dropout: null,
    unk_token: unkToken,
    continuing_subword_prefix: null,
    end_of_word_suffix: null,
    fuse_unk: true,
    byte_fallback: byteFallback,
    ignore_merges: ignoreMerges,
  };
}

/** The file lists no merges: any two pieces merge that are a piece together, in the order of the pieces, shorter left parts first. */
function* merges({ merged }: PieceRules): Generator<readonly [string, string]> {
  const known = new Set(merged);
  for (const piece of merged) {
    for (let i = 1; i < piece.length; i++) {
      const unit = piece.charCodeAt(i);
      if (unit >= 0xdc00 && unit < 0xe000) continue; // within a character
      const [left, right] = [piece.slice(0, i), piece.slice(i)];
      if (known.has(left) && known.has(right)) yield [left, right];
    }
  }
}
