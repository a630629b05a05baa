import { type AddedTokenJson, isObject } from "../image/tokenizer-json.ts";
import { jsonFile, tokenText } from "../model-files.ts";
import { TokenizerError } from "../tokenizer.ts";

export type AddedToken = Required<AddedTokenJson>;

/** An added token as a file writes it; `id` is -1 where it gives none. */
export interface WrittenToken extends Omit<AddedToken, "normalized"> {
  /** Absent: what `special` is not. */
  readonly normalized: boolean | undefined;
  /** Was it a text without flags? */
  readonly bare: boolean;
}

/**
 * The tokens in `added_tokens_decoder` of tokenizer_config.json, by ascending id; undefined if there is none.
 * Throws `TokenizerError` if they are not of that form.
 */
export function declaredTokens(files: ReadonlyMap<string, Uint8Array>): WrittenToken[] | undefined {
  const declared = jsonFile(files, "tokenizer_config.json")?.["added_tokens_decoder"];
  if (declared === undefined) return undefined;
  const part = "added_tokens_decoder of tokenizer_config.json";
  if (!isObject(declared)) throw new TokenizerError(`${part} is not an object`);
  const tokens = Object.entries(declared).map(([key, value]) => {
    if (!/^\d{1,9}$/.test(key)) throw new TokenizerError(`${part} has the key ${JSON.stringify(key)}, which is no id`);
    return writtenToken(value, Number(key), `the token ${key} in ${part}`);
  });
  return tokens.sort((a, b) => a.id - b.id);
}

/** Reads one token: a text, or an object with `content` and flags. `part` names it in messages. */
export function writtenToken(value: unknown, id: number, part: string, special = false): WrittenToken {
  const bare = typeof value === "string";
  const token = bare ? { content: value } : value;
  if (!isObject(token) || typeof token["content"] !== "string" || token["content"] === "")
    throw new TokenizerError(`${part} has no text`);
  const flag = <T>(name: string, otherwise: T): boolean | T => {
    const given = token[name] ?? otherwise;
    if (typeof given !== "boolean" && given !== otherwise)
      throw new TokenizerError(`${name} of ${part} is neither true nor false`);
    return given as boolean | T;
  };
  return {
    id,
    content: token["content"],
    single_word: flag("single_word", false),
    lstrip: flag("lstrip", false),
    rstrip: flag("rstrip", false),
    normalized: flag("normalized", undefined),
    special: flag("special", special),
    bare,
  };
}

/** A special token without flags. */
export const plainSpecial = (content: string): WrittenToken => writtenToken(content, -1, "a special token", true);

/** An added token of tokenizer.json. */
export function whole({ bare: _, ...token }: WrittenToken, id = token.id): AddedToken {
  return { ...token, id, normalized: token.normalized ?? !token.special };
}

type Config = Readonly<Record<string, unknown>>;
type Files = ReadonlyMap<string, Uint8Array>;

/** Keys of the tokens that every tokenizer may name, in the order in which they are added. */
const NAMED = ["bos_token", "eos_token", "unk_token", "sep_token", "pad_token", "cls_token", "mask_token"];

/** What a tokenizer class brings with it, and what its vocabulary has. */
export interface Vocabulary {
  /** Named tokens of the class where the files name none, by key. */
  readonly defaults: Readonly<Record<string, string>>;
  /** More tokens of the vocabulary file itself; they give way to a list in tokenizer_config.json. */
  readonly extra?: readonly WrittenToken[];
  /** Do all special tokens lose their flags in the end? They do in Qwen's class. */
  readonly plain?: boolean;
  /** Are declared tokens found in the text as it stands, whatever their flag says? */
  readonly raw?: boolean;
  readonly size: number;
  id(text: string): number | undefined;
}

export interface AddedTokens {
  /** By ascending id. */
  readonly tokens: readonly AddedToken[];
  /** Texts of named tokens, by key (`bos_token`). */
  readonly named: ReadonlyMap<string, string>;
}

/** Added tokens that files ask for, in the order in which they are added. */
export interface WantedTokens {
  /** `id` is -1 where the files give none. The same text may come again: the last one's flags count. */
  readonly tokens: readonly WrittenToken[];
  /** Named ones by key (`bos_token`), and those without a name; whether they have to be added or not. */
  readonly names: ReadonlyMap<string, WrittenToken>;
  readonly extra: readonly WrittenToken[];
}

/**
 * The added tokens that the files beside a vocabulary ask for, as transformers 5.24 finds them: first those that tokenizer_config.json
 * declares with ids (in older folders: added_tokens.json with special_tokens_map.json), then named and other special tokens that are
 * not among them. `own`: added tokens of a tokenizer.json, which older folders declare anew. Throws `TokenizerError` naming what is wrong.
 */
export function wantedTokens(
  files: Files,
  vocabulary: Pick<Vocabulary, "defaults" | "extra" | "raw">,
  own: readonly AddedToken[] = [],
): WantedTokens {
  const config = jsonFile(files, "tokenizer_config.json") ?? {};
  const decoder = declaredTokens(files)?.map((token) => (vocabulary.raw ? { ...token, normalized: false } : token));
  const map = decoder ? {} : (jsonFile(files, "special_tokens_map.json") ?? {});
  const names = namedTokens(config, map, vocabulary.defaults);
  const listed = listedTokens(config, map);
  const extra = listed ?? vocabulary.extra ?? olderList(map);
  const declared =
    decoder ?? olderTokens(files, [...namedTexts(config, map), ...(listed ?? []).map((t) => t.content)], own);

  const texts = new Set([...names.values()].map((token) => token.content));
  const tokens = declared.map((token) => ({ ...token, special: token.special || texts.has(token.content) }));
  // what the declaration says counts; of several others with the same text the last one that is written differently
  const has = new Set([...own, ...declared].map((token) => token.content));
  const seen = new Set<string>();
  for (const token of [
    ...names.values(),
    ...extra.map((t) => ({ ...t, special: t.special || texts.has(t.content) })),
  ]) {
    const written = JSON.stringify(token);
    if (has.has(token.content) || seen.has(written)) continue;
    seen.add(written);
    tokens.push(token);
  }
  return { tokens, names, extra };
}

/**
 * The added tokens of a tokenizer that has no tokenizer.json. A token that the vocabulary has keeps its id, others get the next free
 * ones. Throws `TokenizerError` for a declared token that gets another id.
 */
export function addedTokens(files: Files, vocabulary: Vocabulary): AddedTokens {
  const { tokens: wanted, names, extra } = wantedTokens(files, vocabulary);
  const added = new Map<string, AddedToken>();
  let next = vocabulary.size;
  function add(token: WrittenToken): void {
    const id = added.get(token.content)?.id ?? vocabulary.id(token.content) ?? next;
    if (token.id >= 0 && token.id !== id)
      throw new TokenizerError(
        `the added token ${JSON.stringify(token.content)} can't have the id ${token.id}: it would become ${id}`,
      );
    next = Math.max(next, id + 1);
    added.set(token.content, whole(token, id));
  }
  for (const token of wanted) add(token);
  if (vocabulary.plain) for (const { content } of [...names.values(), ...extra]) add(plainSpecial(content));
  const tokens = [...added.values()].sort((a, b) => a.id - b.id);
  return { tokens, named: new Map([...names].map(([key, token]) => [key, token.content])) };
}

/** Keys of named tokens around one text, "A", or two, "A" and "B". */
export interface Around {
  readonly single: readonly string[];
  readonly pair: readonly string[];
}

/** What `add_bos_token` and `add_eos_token` of tokenizer_config.json put around texts; undefined if nothing. */
export function bosAndEos(files: Files, { named }: AddedTokens): Around | undefined {
  const config = jsonFile(files, "tokenizer_config.json") ?? {};
  const adds = (key: string): string[] => (config[`add_${key}`] === true && named.has(key) ? [key] : []);
  const around = (text: string): string[] => [...adds("bos_token"), text, ...adds("eos_token")];
  return around("A").length > 1 ? { single: around("A"), pair: [...around("A"), ...around("B")] } : undefined;
}

/** The post-processor of a tokenizer.json that puts tokens around texts. */
export function templateProcessing({ single, pair }: Around, { tokens, named }: AddedTokens): unknown {
  const special = new Map<string, unknown>();
  const item = (name: string): unknown => {
    if (name === "A" || name === "B") return { Sequence: { id: name, type_id: 0 } };
    const token = tokens.find((t) => t.content === named.get(name));
    if (!token) throw new TokenizerError(`tokenizer_config.json has no ${name}`);
    special.set(token.content, { id: token.content, ids: [token.id], tokens: [token.content] });
    return { SpecialToken: { id: token.content, type_id: 0 } };
  };
  const parts = { single: single.map(item), pair: pair.map(item) };
  return { type: "TemplateProcessing", ...parts, special_tokens: Object.fromEntries(special) };
}

function namedTokens(
  ofConfig: Config,
  map: Config,
  defaults: Readonly<Record<string, string>>,
): Map<string, WrittenToken> {
  // keys of the model's own: a text in tokenizer_config.json goes before what the map says, but comes after all others
  const own = (of: Config, isToken: (value: unknown) => boolean): string[] =>
    Object.keys(of).filter((key) => key.endsWith("_token") && !NAMED.includes(key) && isToken(of[key]));
  const texts = own(ofConfig, (value) => typeof value === "string");
  const typed = own(ofConfig, (value) => isObject(value) && value["__type"] === "AddedToken");
  const mapped = own(map, (value) => typeof value === "string" || isObject(value));
  const config: Config = { ...ofConfig, ...map, ...Object.fromEntries(texts.map((key) => [key, ofConfig[key]])) };
  const named = new Map<string, WrittenToken>();
  for (const key of new Set([...NAMED, ...typed, ...mapped, ...texts])) {
    const value = key in config ? config[key] : defaults[key];
    if (value === undefined || value === null || value === "") continue;
    named.set(key, special(value, `${key} of tokenizer_config.json`));
  }
  const more = config["extra_special_tokens"];
  if (isObject(more)) {
    for (const [key, value] of Object.entries(more))
      named.set(key, special(value, `${key} in extra_special_tokens of tokenizer_config.json`));
  }
  return named;
}

/** A named token, which is special whatever it says. */
const special = (value: unknown, part: string): WrittenToken => ({
  ...writtenToken(value, -1, part, true),
  special: true,
});

/** Special tokens without a name that the files list; undefined if there is no list. Either key may hold it, the newer one counts. */
function listedTokens(config: Config, map: Config): readonly WrittenToken[] | undefined {
  const [newer, older] = [config["extra_special_tokens"], config["additional_special_tokens"]];
  const none = newer === undefined || newer === null || (Array.isArray(newer) && newer.length === 0);
  const own = none ? (older ?? newer) : newer;
  const more = map["extra_special_tokens"];
  if (!Array.isArray(own) && !Array.isArray(more)) return undefined;
  const part = "a token in extra_special_tokens";
  // an object in tokenizer_config.json is only special if it says so
  const ours = (Array.isArray(own) ? own : []).map((value) => writtenToken(value, -1, part, typeof value === "string"));
  return [...ours, ...(Array.isArray(more) ? more : []).map((value) => writtenToken(value, -1, part, true))];
}

function olderList(map: Config): readonly WrittenToken[] {
  const list = map["additional_special_tokens"];
  if (!Array.isArray(list)) return [];
  return list.map((value) => writtenToken(value, -1, "a token in special_tokens_map.json", true));
}

/** Texts of named tokens that added_tokens.json takes for special: not those of the class, nor those with flags in tokenizer_config.json. */
function namedTexts(config: Config, map: Config): string[] {
  const values = NAMED.map((key) => (key in map ? tokenText(map[key]) : config[key]));
  return values.filter((value) => typeof value === "string");
}

/** The tokens of added_tokens.json and of a tokenizer.json, by ascending id; of two of one id the latter's. */
function olderTokens(files: Files, special: readonly string[], own: readonly AddedToken[]): WrittenToken[] {
  const specials = new Set(special);
  const byId = new Map<number, WrittenToken>();
  for (const [content, id] of Object.entries(jsonFile(files, "added_tokens.json") ?? {})) {
    if (!Number.isInteger(id) || Number(id) < 0 || content === "")
      throw new TokenizerError(`added_tokens.json gives ${JSON.stringify(content)} no id`);
    const isSpecial = specials.has(content);
    const token = { content, special: isSpecial, normalized: !isSpecial };
    byId.set(Number(id), writtenToken(token, Number(id), "added_tokens.json"));
  }
  for (const token of own) byId.set(token.id, { ...token, bare: false });
  return [...byId.values()].sort((a, b) => a.id - b.id);
}
