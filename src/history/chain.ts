import type { Chain, ChainLimits, ChainTurn } from "./store.ts";

export interface ChainLink {
  readonly turn: ChainTurn;
  readonly previous: string | null;
  /** UTF-8 bytes of this turn and all newer ones. */
  readonly bytes: number;
}

/**
 * A chain out of what was read of it, newest first: to the first turn, to one that is not there, to `maxTurns`, or to the first turn
 * that does not fit into `maxBytes`, which may be among them.
 */
export function chainOf(links: readonly ChainLink[], { maxTurns, maxBytes }: ChainLimits): Chain {
  const over = links.findIndex(({ bytes }, index) => index > 0 && bytes > maxBytes);
  const fitting = over < 0 ? links : links.slice(0, over);
  // a database from elsewhere may hold a circle
  const seen = new Set<string>();
  const circle = fitting.findIndex(({ turn }) => seen.size === seen.add(turn.id).size);
  const read = circle < 0 ? fitting : fitting.slice(0, circle);
  const oldest = read.at(-1);
  return {
    turns: read.map(({ turn }) => turn).toReversed(),
    begin:
      circle >= 0
        ? "missing"
        : oldest?.previous === null
          ? "first_turn"
          : over >= 0 || (oldest?.bytes ?? 0) > maxBytes
            ? "max_bytes"
            : read.length >= maxTurns
              ? "max_turns"
              : "missing",
  };
}
