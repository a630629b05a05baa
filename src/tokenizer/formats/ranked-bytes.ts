import type { AddedTokenJson } from "../image/tokenizer-json.ts";
import { TokenizerError } from "../tokenizer.ts";
import { jsonWriter } from "./json-writer.ts";

/** A vocabulary as tiktoken and Tekken write it: tokens of bytes in the order in which merging makes them. */
export interface RankedBytes {
  /** File and part for messages. */
  readonly name: string;
  /** By bytes (a binary string: a code unit is a byte), in ascending order of the ranks. */
  readonly ranks: ReadonlyMap<string, number>;
  /** The id of a token is its rank plus this. */
  readonly firstId: number;
  readonly pattern: string;
  readonly added: readonly AddedTokenJson[];
}

/** Longer ones are no tokens; looking for their parts would take too long. */
const MAX_BYTES = 2048;

/**
 * The tokenizer.json of a vocabulary of ranked bytes. Two neighbours merge if they are a token together, the one of lowest rank first, the
 * leftmost of equal ones; a piece that is a token is taken whole. A list of merges can't say that two merges have the same rank, so
 * the model has a key of its own: `"merge_rank": "token"`, merges that make the same token have one rank.
 */
export function rankedBytesJson(source: RankedBytes): Uint8Array {
  const { ranks, firstId } = source;
  checkBytes(source);
  const writer = jsonWriter();
  const split = { type: "Split", pattern: { Regex: source.pattern }, behavior: "Isolated", invert: false };
  const byteLevel = { type: "ByteLevel", add_prefix_space: false, trim_offsets: true, use_regex: false };
  const head = {
    version: "1.0",
    truncation: null,
    padding: null,
    added_tokens: source.added,
    normalizer: null,
    pre_tokenizer: { type: "Sequence", pretokenizers: [split, byteLevel] },
    post_processor: null,
    decoder: { type: "ByteLevel", add_prefix_space: true, trim_offsets: true, use_regex: true },
  };
  writer.raw(`${JSON.stringify(head).slice(0, -1)},"model":`);
  writer.raw(
    '{"type":"BPE","dropout":null,"unk_token":null,"continuing_subword_prefix":null,"end_of_word_suffix":null,',
  );
  writer.raw('"fuse_unk":false,"byte_fallback":false,"ignore_merges":true,"merge_rank":"token","vocab":{');
  let separator = "";
  for (const { id, content } of source.added) {
    if (id >= firstId) continue;
    writer.raw(separator);
    writer.string(content);
    writer.raw(`:${id}`);
    separator = ",";
  }
  for (const [token, rank] of ranks) {
    writer.raw(`${separator}"`);
    writer.signs(token);
    writer.raw(`":${rank + firstId}`);
    separator = ",";
  }
  writer.raw('},"merges":[');
  separator = '"';
  for (const token of ranks.keys()) {
    for (let i = 1; i < token.length; i++) {
      if (!ranks.has(token.slice(0, i)) || !ranks.has(token.slice(i))) continue;
      writer.raw(separator);
      writer.signs(token.slice(0, i));
      writer.raw(" ");
      writer.signs(token.slice(i));
      separator = '","';
    }
  }
  writer.raw(separator === '"' ? "]}}" : '"]}}');
  return writer.bytes();
}

function checkBytes({ name, ranks }: RankedBytes): void {
  for (let byte = 0; byte < 256; byte++) {
    if (!ranks.has(String.fromCharCode(byte))) throw new TokenizerError(`${name} has no token for the byte ${byte}`);
  }
  for (const [token, rank] of ranks) {
    if (token.length > MAX_BYTES) throw new TokenizerError(`the token ${rank} of ${name} has ${token.length} bytes`);
  }
}

/** Collects tokens in any order. */
export interface RankCollector {
  /** Adds a token by its base64 text; `where` names its place for messages. */
  add(base64: string, rank: number, where: string): void;
  /** All, by ascending rank. */
  ranks(): Map<string, number>;
}

const BASE64 = /^(?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?$/;

/** Throws `TokenizerError` for broken base64, empty tokens, and tokens or ranks that are there twice. */
export function rankCollector(name: string): RankCollector {
  const byRank: (string | undefined)[] = [];
  return {
    add(base64, rank, where) {
      if (base64 === "" || !BASE64.test(base64)) throw new TokenizerError(`${where} of ${name} is not base64`);
      if (byRank[rank] !== undefined)
        throw new TokenizerError(`${where} of ${name} has the rank ${rank} of another token`);
      byRank[rank] = Buffer.from(base64, "base64").toString("latin1");
    },
    ranks() {
      const ranks = new Map<string, number>();
      byRank.forEach((token, rank) => {
        if (token === undefined) return;
        const other = ranks.get(token);
        if (other !== undefined) throw new TokenizerError(`the tokens ${other} and ${rank} of ${name} are the same`);
        ranks.set(token, rank);
      });
      return ranks;
    },
  };
}
