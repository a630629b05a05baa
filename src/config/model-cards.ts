/** Settings of one model, for fleets that serve several: `--model-card` and the list `model-card` of a file. */
import { quoted } from "./given.ts";

/** What is set for one model; the rest is as for all, or found. */
export interface ModelCard {
  /** The name that its workers serve it by. */
  readonly id: string;
  readonly reasoningParser: string | undefined;
  readonly toolCallParser: string | undefined;
  readonly chatTemplate: string | undefined;
  readonly aliases: readonly string[];
}

/** Keys of a card, also by the names of flags and of SMG's cards. */
const KEYS = {
  reasoning_parser: "reasoningParser",
  tool_call_parser: "toolCallParser",
  tool_parser: "toolCallParser",
  chat_template: "chatTemplate",
  alias: "alias",
} as const;
type Key = keyof typeof KEYS;

const isKey = (name: string): name is Key => Object.hasOwn(KEYS, name);
const KNOWN = Object.keys(KEYS).join(", ");
/** An id may have colons in it: the first setting ends it. */
const FORM = /^(.+?)((?::[a-z_]+=[^:]*)+)$/s;

/** What is wrong with the text of a card, `ID:key=value:key=value`, or undefined. */
export function cardProblem(text: string): string | undefined {
  const [, , settings] = FORM.exec(text) ?? [];
  if (settings === undefined) return `must be ID:key=value, with one or more of ${KNOWN}`;
  const seen = new Set<string>();
  for (const [key, value] of pairs(settings)) {
    if (!isKey(key)) return `has a key ${quoted(key)}; there are ${KNOWN}`;
    if (value.trim() === "") return `has no value for ${key}`;
    if (KEYS[key] !== "alias" && seen.has(KEYS[key])) return `has ${key} twice`;
    seen.add(KEYS[key]);
  }
  return undefined;
}

/** A card from its text, which `cardProblem` has seen. */
export function parseCard(text: string): ModelCard {
  const [, id = "", settings = ""] = FORM.exec(text) ?? [];
  const given = pairs(settings);
  const value = (name: string) => given.find(([key]) => isKey(key) && KEYS[key] === name)?.[1];
  return {
    id,
    reasoningParser: value("reasoningParser"),
    toolCallParser: value("toolCallParser"),
    chatTemplate: value("chatTemplate"),
    aliases: given.filter(([key]) => key === "alias").map(([, name]) => name),
  };
}

const pairs = (settings: string): [key: string, value: string][] =>
  settings
    .slice(1)
    .split(":")
    .map((pair) => {
      const at = pair.indexOf("=");
      return [pair.slice(0, at), pair.slice(at + 1)];
    });

/** The text of a card that a file gives as a group: `id`, the keys, and `aliases` as a list. Undefined where it is none. */
export function cardText(group: Readonly<Record<string, unknown>>): string | undefined {
  const { id, aliases = [], ...settings } = group;
  if (typeof id !== "string" || !Array.isArray(aliases)) return undefined;
  const all = [...Object.entries(settings), ...aliases.map((name: unknown) => ["alias", name] as const)];
  const isText = all.every(([, value]) => typeof value !== "object" && !String(value).includes(":"));
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
