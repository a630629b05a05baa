import { postProcessorOf } from "../post-processor.ts";
import { TokenizerError } from "../tokenizer.ts";
import { type AddedTokens, patternsOf, resolveAdded } from "./added-tokens.ts";
import { addedTokenList, charsmapsOf, type GeneralValue, modelOptions } from "./configuration.ts";
import { decoderOf } from "./decoders.ts";
import { packBlock, type Table } from "./memory.ts";
import { buildMerges } from "./models/merges.ts";
import { normalizer } from "./normalizers.ts";
import { preTokenizer } from "./pre-tokenizers.ts";
import { readGeneralJson, type Vocabulary } from "./read.ts";
import { buildTrie, openTrie, type TrieTables, textsOf } from "./trie.ts";

/**
 * The tables of a tokenizer.json in one block of shared memory, to be opened in any thread or stored. Takes up to a second for a large
 * vocabulary. Throws `TokenizerError` naming the part that is wrong or not supported.
 */
export function buildGeneral(bytes: Uint8Array): SharedArrayBuffer {
  const { json, model, vocabulary, merges } = readGeneralJson(bytes);
  const tables = new Map<string, Table>();
  const words = buildTrie(vocabulary, vocabulary.ids);
  putTrie(tables, "words", words);
  tables.set("units", vocabulary.units);
  tables.set("offsets", vocabulary.offsets);
  const trie = openTrie(words);
  const idOf = (text: string): number => trie.find(text, 0, text.length);

  const { value: normalizerJson, maps } = charsmapsOf(json["normalizer"]);
  for (const [i, map] of maps.entries()) {
    tables.set(`charsmap${i}.trie`, map.trie);
    tables.set(`charsmap${i}.texts`, map.texts);
  }
  const normalize = normalizer(normalizerJson, maps);
  const added = resolveAdded(addedTokenList(json), vocabulary.count, idOf, (text) => {
    const section = { text: text.toWellFormed(), atStart: 0 };
    normalize(section);
    return section.text;
  });
  putPatterns(tables, added);

  const options = modelOptions(model, vocabulary.scores !== undefined);
  if (options.type === "Unigram") tables.set("scores", vocabulary.scores!);
  if (options.type === "BPE") {
    if (!merges) throw new TokenizerError("the model of tokenizer.json has no merges");
    tables.set("merges", buildMerges(merges, trie, Buffer.byteLength(options.prefix)));
  }
  const vocabSize = added.tokens.reduce((size, { id }) => Math.max(size, id + 1), highest(vocabulary) + 1);
  tables.set("entries", entriesById(vocabulary, vocabSize));

  const value: GeneralValue = {
    vocabSize,
    model: options,
    normalizer: normalizerJson,
    charsmaps: maps.length,
    preTokenizer: json["pre_tokenizer"] ?? null,
    decoder: json["decoder"] ?? null,
    postProcessor: postProcessorOf(json["post_processor"]),
    added,
  };
  // refused here rather than in every thread
  preTokenizer(value.preTokenizer);
  decoderOf(value.decoder);
  return packBlock(value, tables);
}

function putTrie(tables: Map<string, Table>, name: string, trie: TrieTables): void {
  for (const part of ["first", "units", "values", "root"] as const) tables.set(`${name}.${part}`, trie[part]);
}

function putPatterns(tables: Map<string, Table>, { tokens }: AddedTokens): void {
  for (const [name, normalized] of [
    ["raw", false],
    ["normalized", true],
  ] as const) {
    const patterns = patternsOf(tokens, normalized);
    putTrie(tables, name, buildTrie(textsOf([...patterns.keys()]), [...patterns.values()]));
  }
}

function highest({ ids }: Vocabulary): number {
  let most = -1;
  for (const id of ids) if (id > most) most = id;
  return most;
}

/** Entry of the vocabulary by id, -1: none. */
function entriesById({ ids }: Vocabulary, size: number): Int32Array {
  const out = new Int32Array(size).fill(-1);
  for (let i = 0; i < ids.length; i++) out[ids[i]!] = i;
  return out;
}
