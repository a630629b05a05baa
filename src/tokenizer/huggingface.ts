import { Tokenizer as Library } from "@huggingface/tokenizers";
import { parseTokenizerJson } from "./image/tokenizer-json.ts";
import { tokenTexts } from "./token-texts.ts";
import {
  type EncodeOptions,
  type PostProcessor,
  type TokenDecoder,
  type Tokenizer,
  TokenizerError,
} from "./tokenizer.ts";
import { strippedStart, utf8Stream } from "./utf8-decoder.ts";

/** A tokenizer.json for the general library, in shared memory. */
export interface HuggingFaceHandle {
  readonly kind: "huggingface";
  readonly json: SharedArrayBuffer;
  readonly postProcessor: PostProcessor;
}

export function huggingFaceHandle(bytes: Uint8Array, postProcessor: PostProcessor): HuggingFaceHandle {
  const json = new SharedArrayBuffer(bytes.length);
  new Uint8Array(json).set(bytes);
  return { kind: "huggingface", json, postProcessor };
}

/** UTF-16 units that are encoded in some 10 ms. */
const SOON_UNITS = 10_000;
const NOTHING = new Uint8Array(0);

/**
 * A tokenizer on `@huggingface/tokenizers`, for kinds that the kernel does not take. Every thread parses the file for itself
 * (hundreds of milliseconds and tens of megabytes for a large one), and encoding is about 50 times slower. Its character classes
 * are the JS engine's: ids of texts with characters newer than Unicode 16, unassigned ones, U+0085 or U+FEFF may differ from the
 * Rust library's.
 */
export function openHuggingFace({ json, postProcessor }: HuggingFaceHandle): Tokenizer {
  const bytes = new Uint8Array(json).slice();
  const parsed = parseTokenizerJson(bytes);
  const texts = tokenTexts(parsed.decoder);
  let library: Library;
  try {
    library = new Library(JSON.parse(new TextDecoder().decode(bytes)) as object, {});
    library.encode("a", { add_special_tokens: false });
  } catch (error) {
    const reason = error instanceof Error ? error.message : String(error);
    throw new TokenizerError(`tokenizer.json is not supported: ${reason}`);
  }
  const special = new Set(parsed.added_tokens.filter((t) => t.special).map((t) => t.id));
  let vocabSize = 0;
  for (const id of library.get_vocab(true).values()) vocabSize = Math.max(vocabSize, id + 1);
  for (const token of parsed.added_tokens) vocabSize = Math.max(vocabSize, token.id + 1);
  const token = (id: number): string | undefined => (id >= 0 && id < vocabSize ? library.id_to_token(id) : undefined);

  function decoder(skipSpecialTokens: boolean): TokenDecoder {
    const stream = utf8Stream();
    let first = true;
    const whole: TokenDecoder = {
      push(id) {
        const text = skipSpecialTokens && special.has(id) ? undefined : token(id);
        if (text === undefined) return "";
        const bytes = texts.bytes(text, first);
        first = false;
        stream.room(bytes.length).set(bytes, stream.held());
        return stream.taken(bytes.length);
      },
      end() {
        first = true;
        return stream.end();
      },
    };
    return strippedStart(whole, texts.strip.content, texts.strip.count);
  }
  function encode(text: string, { addSpecialTokens, specialAsText }: EncodeOptions = {}): Uint32Array {
    if (specialAsText) throw new TokenizerError("this tokenizer can't take special tokens for text");
    const ids = library.encode(text.toWellFormed(), { add_special_tokens: false }).ids;
    if (!addSpecialTokens) return Uint32Array.from(ids);
    return Uint32Array.from(postProcessor.single.flatMap((part) => (part === "A" ? ids : part)));
  }
  return {
    kind: "huggingface",
    vocabSize,
    postProcessor,
    buffer: undefined,
    longestToken: Number.POSITIVE_INFINITY, // its normalizers may drop text, and one unknown token stands for any word
    encode,
    encodeSoon: (text, options) => (text.length > SOON_UNITS ? undefined : encode(text, options)),
    decoder: ({ skipSpecialTokens }) => decoder(skipSpecialTokens),
    tokenBytes(id) {
      const text = token(id);
      return text === undefined ? NOTHING : texts.bytes(text, false);
    },
    isSpecial: (id) => special.has(id),
    tokenId: (text) => library.token_to_id(text),
  };
}
