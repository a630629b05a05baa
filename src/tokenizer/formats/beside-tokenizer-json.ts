/**
 * Files beside a tokenizer.json that add tokens to it. transformers' AutoTokenizer, which engines run, adds what tokenizer_config.json
 * (in older folders special_tokens_map.json and added_tokens.json) declares or names and the tokenizer.json has not, or has with other flags.
 */
import { type ContentHash, hashOfBytes } from "../content-hash.ts";
import { type Files, FolderFiles } from "../folder-files.ts";
import { type Cursor, peek, skipValue } from "../image/json-bytes.ts";
import { type AddedTokenJson, eachMember, isAddedTokens, isObject } from "../image/tokenizer-json.ts";
import { jsonFile } from "../model-files.ts";
import { type AddedToken, wantedTokens, whole } from "./added-tokens.ts";

const CONFIG = "tokenizer_config.json";
/** A configuration with this member has all there is to say about added tokens. */
const DECODER = "added_tokens_decoder";

/**
 * Hash of all that the files beside a tokenizer.json say about added tokens, for a cache key: a template may change without it. `version`
 * is that of how it is made. A configuration of a megabyte is not parsed for it where it has not changed. Throws `TokenizerError` if one
 * of the files is not JSON.
 */
export function addedTokensHash(files: Files, version: string): ContentHash {
  const made = (): ContentHash => hashOfBytes(addedTokenParts(files));
  const ofConfig = () => (DECODER in (jsonFile(files, CONFIG) ?? {}) ? made() : undefined);
  const known = files instanceof FolderFiles ? files.hashOfPart(CONFIG, version, ofConfig) : undefined;
  return known ?? made();
}

function addedTokenParts(files: Files): Uint8Array {
  const config = jsonFile(files, CONFIG) ?? {};
  const parts = Object.entries(config)
    .filter(([key]) => /_(?:token|special_tokens|tokens_decoder)$/.test(key))
    // thousands of tokens by their ids become text in half the time without the ids
    .map(([key, value]) => (isObject(value) ? [key, Object.keys(value), Object.values(value)] : [key, value]));
  const older = DECODER in config ? [] : ["special_tokens_map.json", "added_tokens.json"];
  return Buffer.from(JSON.stringify([parts, ...older.map((name) => jsonFile(files, name) ?? {})]));
}

/**
 * The tokenizer.json with the tokens that the files beside it add, appended to its own: the Rust library numbers them on from there,
 * whatever ids are declared. The same bytes where nothing is added. Throws `TokenizerError` naming what is wrong.
 */
export function withAddedTokens(files: Files, json: Uint8Array): Uint8Array {
  const { list, padding, start } = partsOf(json);
  const given = list === undefined ? [] : (parsed(json, list) ?? []);
  if (!isAddedTokens(given)) return json; // refused where it is read
  const own = given.map(withFlags);
  const pad = padding && parsed(json, padding);
  const padToken = isObject(pad) && typeof pad["pad_token"] === "string" ? { pad_token: pad["pad_token"] } : {};
  const added = additions(
    own,
    wantedTokens(files, { defaults: padToken }, own).tokens.map((token) => whole(token)),
  );
  if (added.length === 0) return json;
  const text = JSON.stringify([...given, ...added.map((t) => ({ ...t, id: Math.max(t.id, 0) }))]);
  return list
    ? Buffer.concat([json.subarray(0, list.from), Buffer.from(text), json.subarray(list.to)])
    : Buffer.concat([json.subarray(0, start), Buffer.from(`"added_tokens":${text},`), json.subarray(start)]);
}

/** Those of the tokens that change something: texts that are no added tokens yet, or are with other flags. */
function additions(own: readonly AddedToken[], wanted: readonly AddedToken[]): AddedToken[] {
  const flags = new Map(own.map((token) => [token.content, flagsOf(token)]));
  return wanted.filter((token) => {
    if (flags.get(token.content) === flagsOf(token)) return false;
    flags.set(token.content, flagsOf(token));
    return token.content !== "";
  });
}

const withFlags = (token: AddedTokenJson): AddedToken => ({
  id: token.id,
  content: token.content,
  single_word: token.single_word ?? false,
  lstrip: token.lstrip ?? false,
  rstrip: token.rstrip ?? false,
  normalized: token.normalized ?? false,
  special: token.special ?? false,
});

const flagsOf = (t: AddedToken): string => [t.single_word, t.lstrip, t.rstrip, t.normalized, t.special].join();

interface Span {
  readonly from: number;
  readonly to: number;
}

/** Where the values of `added_tokens` and `padding` lie, and the first member. */
function partsOf(bytes: Uint8Array): { list?: Span; padding?: Span; start: number } {
  const cursor: Cursor = { bytes, at: 0 };
  const found: { list?: Span; padding?: Span } = {};
  eachMember(cursor, (key) => {
    peek(cursor);
    const from = cursor.at;
    skipValue(cursor);
    if (key === "added_tokens") found.list = { from, to: cursor.at };
    if (key === "padding") found.padding = { from, to: cursor.at };
  });
  return { ...found, start: bytes.indexOf(0x7b) + 1 };
}

function parsed(bytes: Uint8Array, { from, to }: Span): unknown {
  try {
    return JSON.parse(new TextDecoder("utf-8", { fatal: true }).decode(bytes.subarray(from, to)));
  } catch {
    return ""; // refused where it is read
  }
}
