import { mixSeed, Random } from "./random.ts";
import { WORDS } from "./words.ts";

/** How prompts relate: each one new, all the same, or new after one of `groups` shared beginnings of `tokens` tokens. */
export type PromptMode =
  | { readonly kind: "unique" }
  | { readonly kind: "same" }
  | { readonly kind: "shared"; readonly tokens: number; readonly groups: number };

/** Reads `unique`, `same` or `shared:TOKENS:GROUPS`; undefined for anything else. */
export function parsePromptMode(text: string): PromptMode | undefined {
  if (text === "unique" || text === "same") return { kind: text };
  const parts = /^shared:(\d+):(\d+)$/.exec(text);
  if (parts === null) return undefined;
  return { kind: "shared", tokens: Number(parts[1]), groups: Math.max(1, Number(parts[2])) };
}

function words(count: number, seed: number): string {
  const random = new Random(seed);
  let text = "";
  for (let i = 0; i < count; i++) text += ` ${WORDS[random.below(WORDS.length)]!}`;
  return text;
}

/** Text number `index` of a run, of `tokens` tokens (the template's come on top). */
export function promptText(mode: PromptMode, tokens: number, seed: number, index: number): string {
  switch (mode.kind) {
    case "same":
      return words(tokens, mixSeed(seed, 1));
    case "unique":
      return words(tokens, mixSeed(seed, 2, index));
    case "shared": {
      const group = new Random(mixSeed(seed, 3, index)).below(mode.groups);
      const head = Math.min(mode.tokens, tokens);
      return words(head, mixSeed(seed, 4, group)) + words(tokens - head, mixSeed(seed, 2, index));
    }
  }
}
