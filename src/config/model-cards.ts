/** Settings of one model, for fleets that serve several: `--model-card` and the list `model-card` of a file. */
import { parseAlias } from "./aliases.ts";
import { quoted } from "./given.ts";
import { MOST_SECONDS } from "./option.ts";

/** What is set for one model; the rest is as for all, or found. */
export interface ModelCard {
  /** The name that its workers serve it by. */
  readonly id: string;
  readonly reasoningParser: string | undefined;
  readonly toolCallParser: string | undefined;
  readonly chatTemplate: string | undefined;
  readonly aliases: readonly string[];
  /** Models that answer in its place where it cannot, best first. */
  readonly fallbacks: readonly string[];
  /** In place of the settings of these names; undefined: as for all. */
  readonly firstTokenTimeoutSecs: number | undefined;
  readonly interTokenTimeoutSecs: number | undefined;
  readonly requestTimeoutSecs: number | undefined;
  readonly hedgeAfterMs: number | undefined;
}

/** Keys of a card, also by the names of flags and of SMG's cards. */
const KEYS = {
  reasoning_parser: "reasoningParser",
  tool_call_parser: "toolCallParser",
  tool_parser: "toolCallParser",
  chat_template: "chatTemplate",
  alias: "alias",
  fallback: "fallback",
  first_token_timeout_secs: "firstTokenTimeoutSecs",
  inter_token_timeout_secs: "interTokenTimeoutSecs",
  request_timeout_secs: "requestTimeoutSecs",
  hedge_after_ms: "hedgeAfterMs",
} as const;
type Key = keyof typeof KEYS;

const isKey = (name: string): name is Key => Object.hasOwn(KEYS, name);
const KNOWN = Object.keys(KEYS).join(", ");
/** An id may have colons in it, as may values: a setting begins at a colon with a key behind it. */
const FORM = /^(.+?):([a-z_]+=.*)$/s;
const BETWEEN = /:(?=[a-z_]+=)/;

/** Keys that a card may have several times. */
const LISTS: ReadonlySet<string> = new Set(["alias", "fallback"] satisfies (typeof KEYS)[Key][]);
/** Numbers, and the largest of each. */
const NUMBERS: Readonly<Record<string, number>> = {
  firstTokenTimeoutSecs: MOST_SECONDS,
  interTokenTimeoutSecs: MOST_SECONDS,
  requestTimeoutSecs: MOST_SECONDS,
  hedgeAfterMs: 600_000,
} satisfies Partial<Record<(typeof KEYS)[Key], number>>;

/** What is wrong with the text of a card, `ID:key=value:key=value`, or undefined. */
export function cardProblem(text: string): string | undefined {
  const [, , settings] = FORM.exec(text) ?? [];
  if (settings === undefined) return `must be ID:key=value, with one or more of ${KNOWN}`;
  const seen = new Set<string>();
  for (const [key, value] of pairs(settings)) {
    if (!isKey(key)) return `has a key ${quoted(key)}; there are ${KNOWN}`;
    if (value.trim() === "") return `has no value for ${key}`;
    const name = KEYS[key];
    if (!LISTS.has(name) && seen.has(name)) return `has ${key} twice`;
    seen.add(name);
    const most = NUMBERS[name];
    if (most !== undefined && !(/^\d{1,9}$/.test(value) && Number(value) <= most))
      return `has ${quoted(value)} for ${key}, not a whole number from 0 to ${most}`;
  }
  return undefined;
}

/** A card from its text, which `cardProblem` has seen. */
export function parseCard(text: string): ModelCard {
  const [, id = "", settings = ""] = FORM.exec(text) ?? [];
  const given = pairs(settings);
  const all = (name: (typeof KEYS)[Key]) =>
    given.filter(([key]) => isKey(key) && KEYS[key] === name).map(([, value]) => value);
  const value = (name: (typeof KEYS)[Key]) => all(name)[0];
  const number = (name: (typeof KEYS)[Key]) => {
    const text = value(name);
    return text === undefined ? undefined : Number(text);
  };
  return {
    id,
    reasoningParser: value("reasoningParser"),
    toolCallParser: value("toolCallParser"),
    chatTemplate: value("chatTemplate"),
    aliases: all("alias"),
    fallbacks: all("fallback"),
    firstTokenTimeoutSecs: number("firstTokenTimeoutSecs"),
    interTokenTimeoutSecs: number("interTokenTimeoutSecs"),
    requestTimeoutSecs: number("requestTimeoutSecs"),
    hedgeAfterMs: number("hedgeAfterMs"),
  };
}

const pairs = (settings: string): [key: string, value: string][] =>
  settings.split(BETWEEN).map((pair) => {
    const at = pair.indexOf("=");
    return [pair.slice(0, at), pair.slice(at + 1)];
  });

/** The text of a card that a file gives as a group: `id`, the keys, and `aliases` and `fallbacks` as lists. Undefined where it is none. */
export function cardText(group: Readonly<Record<string, unknown>>): string | undefined {
  const { id, aliases = [], fallbacks = [], ...settings } = group;
  if (typeof id !== "string" || !Array.isArray(aliases) || !Array.isArray(fallbacks)) return undefined;
  const all = [
    ...Object.entries(settings),
    ...aliases.map((name: unknown) => ["alias", name] as const),
    ...fallbacks.map((name: unknown) => ["fallback", name] as const),
  ];
  const isText = all.every(([, value]) => typeof value !== "object" && !BETWEEN.test(String(value)));
  return isText ? [id, ...all.map(([key, value]) => `${key}=${value}`)].join(":") : undefined;
}

/** The first model that two cards are for. */
export function doubleCard(cards: readonly ModelCard[]): string | undefined {
  const ids = new Set<string>();
  for (const { id } of cards) {
    if (ids.has(id)) return id;
    ids.add(id);
  }
  return undefined;
}

/** The aliases that cards give, as `--model-alias` writes them. */
export const cardAliases = (cards: readonly ModelCard[]): string[] =>
  cards.flatMap(({ id, aliases }) => aliases.map((alias) => `${alias}=${id}`));

/** Cards by every name of their models. */
export type CardsByName = ReadonlyMap<string, ModelCard>;

/** Cards by the id and the aliases of their models; `pairs`: further aliases, as `--model-alias` writes them. */
export function namedCards(cards: readonly ModelCard[], pairs: readonly string[]): CardsByName {
  const named = new Map<string, ModelCard>();
  for (const card of cards) for (const alias of card.aliases) named.set(alias, card);
  for (const [alias, id] of pairs.map(parseAlias)) {
    const card = cards.find((each) => each.id === id);
    if (card !== undefined) named.set(alias, card);
  }
  for (const card of cards) named.set(card.id, card); // an alias never hides a model of that very name
  return named;
}

/** Models that answer in place of one, in their order: each one that its card names, and behind it those that stand in for that one. */
export function fallbackChain(name: string, cards: CardsByName): readonly string[] {
  const chain = new Set<string>();
  const add = (each: string): void => {
    for (const next of cards.get(each)?.fallbacks ?? []) {
      if (chain.has(next)) continue;
      chain.add(next);
      add(next);
    }
  };
  add(name);
  return [...chain];
}

/** Models that fall back on themselves, by whatever way: their names along it, or undefined. */
export function fallbackLoop(cards: CardsByName): readonly string[] | undefined {
  const idOf = (name: string): string => cards.get(name)?.id ?? name;
  const sound = new Set<string>();
  const find = (id: string, way: readonly string[]): readonly string[] | undefined => {
    if (way.includes(id)) return [...way.slice(way.indexOf(id)), id];
    if (sound.has(id)) return undefined;
    for (const next of cards.get(id)?.fallbacks ?? []) {
      const loop = find(idOf(next), [...way, id]);
      if (loop !== undefined) return loop;
    }
    sound.add(id);
    return undefined;
  };
  for (const { id } of cards.values()) {
    const loop = find(id, []);
    if (loop !== undefined) return loop;
  }
  return undefined;
}
