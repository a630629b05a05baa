/** How a text is to be encoded. */
export interface EncodeOptions {
  /** The post-processor adds its ids (BOS, EOS, `[CLS]` …), as `add_special_tokens` of the reference. Default false. */
  readonly addSpecialTokens?: boolean;
  /** Special tokens in the text are plain text, other added tokens are not (`encode_special_tokens`). Default false. */
  readonly specialAsText?: boolean;
}

/** What a post-processor makes of one text, "A", or of two: ids to put around them. */
export interface PostProcessor {
  readonly single: readonly (number | "A")[];
  readonly pair: readonly (number | "A" | "B")[];
}

/** What the gateway needs of a tokenizer. Ids equal those of the Rust `tokenizers` library. */
export interface Tokenizer {
  /** `kernel`: our WebAssembly kernel; `general`: every other pipeline that a tokenizer.json can describe, in TypeScript. */
  readonly kind: "kernel" | "general";
  /** Ids run from 0 to `vocabSize` - 1. Engines may sample ids beyond (padding rows): these decode to nothing. */
  readonly vocabSize: number;
  /** Most UTF-16 units of a text that one token can stand for: no text has fewer tokens than its length divided by this. */
  readonly longestToken: number;
  readonly postProcessor: PostProcessor;
  /**
   * Ids of a text. Special tokens in the text become their ids; without options no BOS or EOS is added (the chat template writes
   * them). The result is a fresh array that the caller owns. Lone surrogates count as U+FFFD.
   */
  encode(text: string, options?: EncodeOptions): Uint32Array;
  /** The same, or undefined if it would hold the thread for more than about 10 ms: then `encode` belongs on a compute thread. */
  encodeSoon(text: string, options?: EncodeOptions): Uint32Array | undefined;
  /** For the prefix cache; undefined if a text may nowhere be cut. */
  readonly buffer: TextBuffer | undefined;
  /** A streaming decoder: all pieces joined, plus `end()`, equal the decoded whole. */
  decoder(options: { readonly skipSpecialTokens: boolean }): TokenDecoder;
  /** Exact bytes of one token (shared memory: do not write), empty for ids outside the vocabulary. */
  tokenBytes(id: number): Uint8Array;
  /** True for ids that `skipSpecialTokens` leaves out. */
  isSpecial(id: number): boolean;
  /** True for added tokens, special or not: their text always becomes their id. */
  isAdded(id: number): boolean;
  /** Id of a token by its text, e.g. `<|im_end|>`. */
  tokenId(text: string): number | undefined;
}

/**
 * A text as bytes, and the places where it may be cut: ids of the parts, joined, are those of the whole. A cut lies right behind an
 * added token, if no other added token or rule reaches across.
 */
export interface TextBuffer {
  /** The text as UTF-8 in the tokenizer's own buffer; valid until the next call of the tokenizer. */
  write(text: string): Uint8Array;
  /** End, in bytes, of the first token that begins at `from` or later and that the text may be cut behind; -1: there is none. */
  nextCut(from: number): number;
  /**
   * Ids of what was written, from the byte `from` on (0 or a cut), and the cuts passed: pairs of a byte offset and the number of ids
   * up to it, counted from `from`. Views, valid until the next call. Undefined as in `encodeSoon`. Of what was written, characters
   * beyond ASCII may be others afterwards.
   */
  encodeFrom(from: number): EncodedRest | undefined;
  /**
   * Hashes of the first bytes and of all bytes of what was written, which are 64 or more: two words each, in a view that is valid until the
   * next call. `first` is a multiple of 64; the first hash is of nothing where there are fewer.
   */
  digest(seed: bigint, first: number): Int32Array;
  /** Another number after each call that writes over what `write` or `encodeFrom` gave, whoever made it. */
  stamp(): number;
}

export interface EncodedRest {
  readonly ids: Uint32Array;
  readonly cuts: Uint32Array;
}

/** Decodes one choice's ids as they come; holds back the bytes of an unfinished UTF-8 sequence only. */
export interface TokenDecoder {
  /** Text that became certain with this id; often "", never part of a character. */
  push(id: number): string;
  /** What was held back, as U+FFFD; the decoder can be used again afterwards. */
  end(): string;
}

/** A tokenizer that can not be loaded; the message names the part that is wrong or not supported. */
export class TokenizerError extends Error {
  override readonly name = "TokenizerError";
}
