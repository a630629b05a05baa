import { type EncodeOptions, type TokenDecoder, type Tokenizer, TokenizerError } from "../tokenizer.ts";
import { type AddedToken, addedFinder, addedSplitter } from "./added-tokens.ts";
import type { CharsmapTables } from "./charsmap.ts";
import type { GeneralValue, ModelOptions } from "./configuration.ts";
import { type Decoder, decoderOf } from "./decoders.ts";
import { type Ids, idList } from "./ids.ts";
import { type Block, openBlock } from "./memory.ts";
import { bpe } from "./models/bpe.ts";
import { openMerges } from "./models/merges.ts";
import { type Model, remembering } from "./models/model.ts";
import { unigram } from "./models/unigram.ts";
import { wordLevel, wordPiece } from "./models/words.ts";
import { normalizer } from "./normalizers.ts";
import { asksForStart, type PreTokenizer, preTokenizer } from "./pre-tokenizers.ts";
import type { Emit } from "./stages.ts";
import { openTrie, type Trie } from "./trie.ts";

/** UTF-16 units of a text that are encoded within 10 ms, whatever they are: long words cost BPE most. */
const SOON = 16384;
const SOON_BPE = 6144;
/** Texts of tokens kept per thread, replaced in place. */
const TEXTS = 1 << 13;
const NOTHING = new Uint8Array(0);

/**
 * A tokenizer over the tables that `buildGeneral` made, for the calling thread; cheap, as they are shared. Throws `TokenizerError` if
 * the memory holds no such tables.
 */
export function openGeneral(memory: SharedArrayBuffer): Tokenizer {
  const block = openBlock(memory);
  const value = block.value as GeneralValue;
  const words = trieIn(block, "words");
  const encodeWith = encoder(block, value, words);
  const { vocabSize, postProcessor, added } = value;
  const single = postProcessor.single;
  const before = Uint32Array.from(single.slice(0, single.indexOf("A")) as number[]);
  const after = Uint32Array.from(single.slice(single.indexOf("A") + 1) as number[]);

  function encode(text: string, options: EncodeOptions = {}): Uint32Array {
    const out = idList();
    if (options.addSpecialTokens) out.pushAll(before);
    encodeWith(text.toWellFormed(), options.specialAsText ?? false, out);
    if (options.addSpecialTokens) out.pushAll(after);
    return out.from(0);
  }
  const textOf = tokenTexts(block, value);
  const specials = new Set(added.specials);
  const isSpecial = (id: number): boolean => {
    const text = specials.size === 0 ? undefined : textOf(id);
    return text !== undefined && specials.has(text);
  };
  const addedIds = new Map(added.ids);
  const idsOfAdded = new Set(addedIds.values());
  const decoder = decoderOf(value.decoder);
  const soon = value.model.type === "BPE" ? SOON_BPE : SOON;
  return {
    kind: "general",
    vocabSize,
    longestToken: Number.POSITIVE_INFINITY, // normalizers may drop text, and one unknown token stands for any word
    postProcessor,
    encode,
    encodeSoon: (text, options) => (text.length > soon ? undefined : encode(text, options)),
    buffer: undefined,
    decoder: ({ skipSpecialTokens }) =>
      streamOf(decoder, (id) => (skipSpecialTokens && isSpecial(id) ? undefined : textOf(id))),
    tokenBytes(id) {
      const text = textOf(id);
      return text === undefined ? NOTHING : decoder.bytes(text);
    },
    isSpecial,
    isAdded: (id) => idsOfAdded.has(id),
    tokenId(text) {
      const id = addedIds.get(text) ?? words.find(text, 0, text.length);
      return id < 0 || text === "" ? undefined : id;
    },
  };
}

function trieIn({ tables }: Block, name: string): Trie {
  const table = <T>(part: string): T => tables.get(`${name}.${part}`) as T;
  return openTrie({ first: table("first"), units: table("units"), values: table("values"), root: table("root") });
}

type Encoder = (text: string, specialAsText: boolean, out: Ids) => void;

function encoder(block: Block, value: GeneralValue, words: Trie): Encoder {
  const { tables } = block;
  const maps = Array.from(
    { length: value.charsmaps },
    (_, i) => ({ trie: tables.get(`charsmap${i}.trie`), texts: tables.get(`charsmap${i}.texts`) }) as CharsmapTables,
  );
  const normalize = normalizer(value.normalizer, maps);
  const preTokenize: PreTokenizer = preTokenizer(value.preTokenizer);
  const asks = asksForStart(value.preTokenizer);
  const model = remembering(modelOf(value.model, block, words), idList);
  const { tokens, specials } = value.added;
  const special = new Set(specials);
  const splitter = (name: "raw" | "normalized"): ReturnType<typeof addedSplitter> =>
    addedSplitter(addedFinder(trieIn(block, name), tokens, name === "normalized"), tokens, (content) =>
      special.has(content),
    );
  const raw = splitter("raw");
  const normalized = splitter("normalized");

  return (text, specialAsText, out) => {
    const plain = (section: string, atStart: number): void => {
      if (section === "") return;
      const pieces = preTokenize({ texts: [section], atStart: asks ? [atStart] : undefined });
      for (const piece of pieces.texts) model(piece, out);
    };
    const visit = (token: AddedToken | undefined, otherwise: () => void): void => {
      if (token) out.push(token.id);
      else otherwise();
    };
    raw(text, specialAsText, (from, to, token) =>
      visit(token, () => {
        const atStart = from > 0 ? 0 : text.codePointAt(0)! > 0xffff ? 2 : 1;
        const section = { text: text.slice(from, to), atStart };
        normalize(section);
        normalized(section.text, specialAsText, (start, end, found) =>
          visit(found, () =>
            plain(section.text.slice(start, end), Math.max(0, Math.min(section.atStart, end) - start)),
          ),
        );
      }),
    );
  };
}

function modelOf(options: ModelOptions, { tables }: Block, words: Trie): Model {
  switch (options.type) {
    case "Unigram":
      return unigram(words, tables.get("scores") as Float64Array, {
        unkId: options.unkId,
        byteFallback: options.byteFallback,
      });
    case "WordLevel":
      return wordLevel(words, options.unknown);
    case "WordPiece":
      return wordPiece(words, options);
    case "BPE":
      return bpe(words, openMerges(tables.get("merges") as Int32Array), { ...options, unknown: options.unknown });
    default:
      throw new TokenizerError("the tables of the tokenizer are of an unknown kind");
  }
}

/** Text by id, as the decoder gets it: added tokens go before the vocabulary; undefined for ids that are none. */
function tokenTexts({ tables }: Block, { added }: GeneralValue): (id: number) => string | undefined {
  const byId = new Map(added.tokens.map((token) => [token.id, token.text]));
  const entries = tables.get("entries") as Int32Array;
  const units = tables.get("units") as Uint16Array;
  const offsets = tables.get("offsets") as Uint32Array;
  const keys = new Int32Array(TEXTS).fill(-1);
  const kept: string[] = new Array(TEXTS).fill("");
  return (id) => {
    const entry = entries[id];
    if (entry === undefined) return undefined;
    const slot = id & (TEXTS - 1);
    if (keys[slot] === id) return kept[slot];
    const text = byId.get(id) ?? (entry < 0 ? undefined : stringOf(units, offsets[entry]!, offsets[entry + 1]!));
    if (text === undefined) return undefined;
    keys[slot] = id;
    kept[slot] = text;
    return text;
  };
}

function stringOf(units: Uint16Array, from: number, to: number): string {
  let out = "";
  for (let i = from; i < to; i += 4096) out += String.fromCharCode(...units.subarray(i, Math.min(to, i + 4096)));
  return out;
}

/** A stream through the stages of a decoder. */
function streamOf(decoder: Decoder, textOf: (id: number) => string | undefined): TokenDecoder {
  const stages = decoder.stages();
  let out = "";
  // what each stage emits goes to the next one, and from the last to the text
  const emits: Emit[] = [];
  emits[stages.length] = (token) => {
    out += token;
  };
  for (let i = stages.length - 1; i >= 0; i--) emits[i] = (token) => stages[i]!.push(token, emits[i + 1]!);
  const taken = (): string => {
    const text = out;
    out = "";
    return text;
  };
  return {
    push(id) {
      const text = textOf(id);
      if (text !== undefined) emits[0]!(text);
      return taken();
    },
    end() {
      for (let i = 0; i < stages.length; i++) stages[i]!.end(emits[i + 1]!);
      return taken();
    },
  };
}
