import { MAX_TOKENS } from "../image/header.ts";
import { TokenizerError } from "../tokenizer.ts";
import { type Field, fieldsOf } from "./protobuf.ts";

/** Kinds of pieces, as the file numbers them. */
export const Kind = { normal: 1, unknown: 2, control: 3, userDefined: 4, unused: 5, byte: 6 } as const;

export interface Piece {
  readonly text: string;
  readonly score: number;
  readonly kind: number;
}

/** What a SentencePiece model file says, as far as it decides ids. */
export interface SentencePieceModel {
  readonly name: string;
  /** By id. */
  readonly pieces: readonly Piece[];
  readonly type: "unigram" | "bpe";
  readonly byteFallback: boolean;
  /** Ids and texts of the special pieces; -1 for one that the model does not have. */
  readonly special: Readonly<Record<"unk" | "bos" | "eos" | "pad", { readonly id: number; readonly text: string }>>;
  /** Compiled map of characters; empty: texts stay as they are. */
  readonly charsmap: Uint8Array;
  readonly addDummyPrefix: boolean;
  readonly removeExtraWhitespaces: boolean;
  readonly escapeWhitespaces: boolean;
}

/** May this be a SentencePiece model: does it begin with a piece? */
export function isSentencePiece(bytes: Uint8Array): boolean {
  return bytes[0] === 0x0a && bytes.length > 4;
}

const TYPES = ["", "unigram", "bpe", "word", "char"];

/** Reads a model file (a protobuf, sentencepiece_model.proto). Throws `TokenizerError` naming the part that is broken or not supported. */
export function readSentencePiece(name: string, bytes: Uint8Array): SentencePieceModel {
  const pieces: Piece[] = [];
  let trainer: Map<number, Field> | undefined;
  let normalizer: Map<number, Field> | undefined;
  for (const { number, bytes: part } of fieldsOf(name, bytes)) {
    if (number === 1) pieces.push(readPiece(name, part, pieces.length));
    else if (number === 2) trainer = lastFields(name, part);
    else if (number === 3) normalizer = lastFields(name, part);
  }
  if (pieces.length === 0) throw new TokenizerError(`${name} has no pieces`);
  if (!trainer || !normalizer) throw new TokenizerError(`${name} is cut off: it has no trainer or normalizer`);
  if (pieces.length > MAX_TOKENS) throw new TokenizerError(`${name} has ${pieces.length} pieces`);
  const type = TYPES[trainer.get(3)?.value ?? 1];
  if (type !== "unigram" && type !== "bpe")
    throw new TokenizerError(`${name} has the model type ${type}, which is not supported`);
  if (trainer.get(24)?.value)
    throw new TokenizerError(`${name} has treat_whitespace_as_suffix, which is not supported`);
  const [trained, normal] = [trainer, normalizer];
  const text = (field: number, otherwise: string): string => {
    const written = trained.get(field)?.bytes;
    return written ? decode(name, written, "its trainer") : otherwise;
  };
  const special = (id: number, other: number, field: number, otherwise: string) => ({
    id: trained.get(id)?.value ?? other,
    text: text(field, otherwise),
  });
  const flag = (field: number): boolean => (normal.get(field)?.value ?? 1) !== 0;
  const unk = trainer.get(40)?.value ?? 0;
  if (unk < 0 || unk >= pieces.length) throw new TokenizerError(`${name} has no piece for what it does not know`);
  return {
    name,
    pieces,
    type,
    byteFallback: (trainer.get(35)?.value ?? 0) !== 0,
    special: {
      unk: special(40, 0, 45, "<unk>"),
      bos: special(41, 1, 46, "<s>"),
      eos: special(42, 2, 47, "</s>"),
      pad: special(43, -1, 48, "<pad>"),
    },
    charsmap: normalizer.get(2)?.bytes ?? new Uint8Array(0),
    addDummyPrefix: flag(3),
    removeExtraWhitespaces: flag(4),
    escapeWhitespaces: flag(5),
  };
}

function lastFields(name: string, message: Uint8Array): Map<number, Field> {
  return new Map([...fieldsOf(name, message)].map((field) => [field.number, field]));
}

function readPiece(name: string, message: Uint8Array, id: number): Piece {
  let text: string | undefined;
  let score = 0;
  let kind: number = Kind.normal;
  for (const { number, value, bytes } of fieldsOf(name, message)) {
    if (number === 1) text = decode(name, bytes, `the piece ${id}`);
    else if (number === 2) score = value;
    else if (number === 3) kind = value;
  }
  if (!text) throw new TokenizerError(`the piece ${id} of ${name} has no text`);
  if (!Number.isFinite(score)) throw new TokenizerError(`the piece ${id} of ${name} has no score`);
  return { text, score, kind };
}

const utf8 = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true });

function decode(name: string, bytes: Uint8Array, part: string): string {
  try {
    return utf8.decode(bytes);
  } catch {
    throw new TokenizerError(`${part} of ${name} is not UTF-8`);
  }
}
