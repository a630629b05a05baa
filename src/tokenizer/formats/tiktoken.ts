import { MAX_TOKENS } from "../image/header.ts";
import type { AddedTokenJson } from "../image/tokenizer-json.ts";
import { TokenizerError } from "../tokenizer.ts";
import type { WrittenToken } from "./added-tokens.ts";
import { rankCollector } from "./ranked-bytes.ts";

/** Is this the text of a tiktoken file: lines of base64 and rank? */
export function isTiktoken(bytes: Uint8Array): boolean {
  return /^[A-Za-z0-9+/]+={0,2} \d+\r?(?:\n|$)/.test(Buffer.from(bytes.subarray(0, 4096)).toString("latin1"));
}

/**
 * Reads a tiktoken file: tokens as binary strings (a code unit is a byte) in the order of their ranks. Throws `TokenizerError` naming
 * the line that is wrong.
 */
export function readTiktoken(name: string, bytes: Uint8Array): Map<string, number> {
  const collector = rankCollector(name);
  const text = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).toString("latin1");
  for (let at = 0, line = 1; at < text.length; line++) {
    const newline = text.indexOf("\n", at);
    const end = newline < 0 ? text.length : newline;
    const row = text.slice(at, text[end - 1] === "\r" ? end - 1 : end);
    at = end + 1;
    if (row === "") continue;
    const space = row.indexOf(" ");
    const rank = row.slice(space + 1);
    if (space < 0 || !/^\d{1,8}$/.test(rank))
      throw new TokenizerError(`line ${line} of ${name} is not base64 and a rank`);
    if (Number(rank) >= MAX_TOKENS) throw new TokenizerError(`line ${line} of ${name} has the rank ${rank}`);
    collector.add(row.slice(0, space), Number(rank), `line ${line}`);
  }
  return collector.ranks();
}

/**
 * Special tokens behind the ranks, by id: those that `named` gives names to, and names with a number for the ids between them and up
 * to `end`. Throws `TokenizerError` for one that stands among the ranks.
 */
export function tokensBehind(
  first: number,
  end: number,
  named: readonly WrittenToken[],
  file: string,
): AddedTokenJson[] {
  const byId = new Map(named.map((token) => [token.id, token]));
  const tokens: AddedTokenJson[] = [];
  for (const { id, content } of named) {
    if (id < first)
      throw new TokenizerError(`the added token ${JSON.stringify(content)} has an id among the ranks of ${file}`);
    if (id >= MAX_TOKENS) throw new TokenizerError(`the added token ${JSON.stringify(content)} has the id ${id}`);
  }
  const last = named.reduce((most, token) => Math.max(most, token.id + 1), end);
  for (let id = first; id < last; id++) {
    const { content, special } = byId.get(id) ?? { content: `<|reserved_token_${id}|>`, special: true };
    tokens.push({
      id,
      content,
      single_word: false,
      lstrip: false,
      rstrip: false,
      normalized: false,
      special: special === true,
    });
  }
  return tokens;
}
