/** What the gateway needs of a tokenizer. Ids equal those of the Rust `tokenizers` library. */
export interface Tokenizer {
  /** `kernel`: our WebAssembly kernel; `huggingface`: `@huggingface/tokenizers`, for kinds that the kernel does not take. */
  readonly kind: "kernel" | "huggingface";
  /** Ids run from 0 to `vocabSize` - 1. Engines may sample ids beyond (padding rows): these decode to nothing. */
  readonly vocabSize: number;
  /** Most UTF-16 units of a text that one token can stand for: no text has fewer tokens than its length divided by this. */
  readonly longestToken: number;
  /**
   * Ids of a text. Special tokens in the text become their ids; no BOS or EOS is added (the chat template writes them).
   * The result is a fresh array that the caller owns. Lone surrogates count as U+FFFD.
   */
  encode(text: string): Uint32Array;
  /** A streaming decoder: all pieces joined, plus `end()`, equal the decoded whole. */
  decoder(options: { readonly skipSpecialTokens: boolean }): TokenDecoder;
  /** Exact bytes of one token (shared memory: do not write), empty for ids outside the vocabulary. */
  tokenBytes(id: number): Uint8Array;
  /** True for ids that `skipSpecialTokens` leaves out. */
  isSpecial(id: number): boolean;
  /** Id of a token by its text, e.g. `<|im_end|>`. */
  tokenId(text: string): number | undefined;
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
