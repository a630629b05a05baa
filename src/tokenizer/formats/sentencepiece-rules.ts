import { type Around, type WrittenToken, writtenToken } from "./added-tokens.ts";
import { Kind, type Piece, type SentencePieceModel } from "./sentencepiece.ts";

/** What a tokenizer class makes of a SentencePiece model: the parts of a tokenizer.json. */
export interface PieceRules {
  readonly type: "unigram" | "bpe";
  /** By id. */
  readonly pieces: readonly Pick<Piece, "text" | "score">[];
  /** Texts that merge and that merging makes, by rank. */
  readonly merged: readonly string[];
  readonly byteFallback: boolean;
  /** Do scores reach the model as they stand in the file? Else they went through JSON, which changes a last bit here and there. */
  readonly exactScores: boolean;
  /** Of a unigram model. */
  readonly unkId: number;
  /** Of a BPE model. */
  readonly unkToken: string | null;
  readonly ignoreMerges: boolean;
  readonly normalizer: unknown;
  readonly preTokenizer: unknown;
  readonly decoder: unknown;
  /** Keys of named tokens (`bos_token`) around one text, "A", or two. */
  readonly around?: Around;
  /** Named tokens of the class, by key. */
  readonly defaults: Readonly<Record<string, string>>;
  /** Pieces that are added tokens, and others of the class. */
  readonly extra: readonly WrittenToken[];
  /** Are declared tokens found in the text as it stands, whatever their flag says? */
  readonly rawDeclared: boolean;
}

export const metaspace = (scheme: "always" | "first" | "never", split: boolean): unknown => ({
  type: "Metaspace",
  replacement: "▁",
  prepend_scheme: scheme,
  split,
});
export const replace = (pattern: unknown, content: string): unknown => ({ type: "Replace", pattern, content });
export const SPACES_BACK = replace({ String: "▁" }, " ");
export const STRIP_START = { type: "Strip", content: " ", start: 1, stop: 0 };
export const precompiled = (model: SentencePieceModel): unknown => ({
  type: "Precompiled",
  precompiled_charsmap: Buffer.from(model.charsmap).toString("base64"),
});

/** Control pieces (special) and user-defined ones as added tokens. */
export function addedPieces({ pieces }: SentencePieceModel): WrittenToken[] {
  return pieces
    .filter(({ kind }) => kind === Kind.control || kind === Kind.userDefined)
    .map(({ text, kind }) =>
      writtenToken({ content: text, normalized: false, special: kind === Kind.control }, -1, "a piece"),
    );
}
