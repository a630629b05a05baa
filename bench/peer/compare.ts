/** Figures of both gateways over the rounds, and their ratios. */

import {
  type Cell,
  FIRST,
  type Figure,
  type Group,
  IDLE_CPU,
  IDLE_RSS,
  type LoadFigure,
  READY,
  REST_GROUP,
  RESTED_CPU,
  whyNotCounted,
} from "../lab/cells.ts";
import { figureLabel, table, withSpread } from "../lab/output.ts";
import type { Session } from "../lab/session.ts";
import type { LoadResult } from "../loadgen/result.ts";
import { spread } from "../loadgen/stats.ts";

export type Side = "peer" | "own";

/** One life of one gateway in one round. */
export interface Life {
  readonly round: number;
  readonly side: Side;
  readonly group: Group;
  readonly session: Session;
}

/** A figure of one round; a pair is missing where a side had errors. */
export interface Comparison {
  readonly figure: Figure;
  readonly peer: readonly number[];
  readonly own: readonly number[];
  /** Own over peer, round by round. */
  readonly ratios: readonly number[];
}

const median = (values: readonly number[]): number => spread(values).median;

function ofCell(life: Life, cell: Cell, figure: LoadFigure): number | undefined {
  const results = life.session.cells.get(cell.id) ?? [];
  if (results.length === 0 || whyNotCounted(cell, results) !== undefined) return undefined;
  const values = results.map((r) => figure.value(r)).filter((v) => v !== undefined);
  return values.length === 0 ? undefined : median(values);
}

function compare(lives: readonly Life[], figure: Figure, read: (life: Life) => number | undefined): Comparison {
  const bySide = (side: Side): Map<string, number> => {
    const values = new Map<string, number>();
    for (const life of lives) {
      const value = life.side === side ? read(life) : undefined;
      if (value !== undefined) values.set(`${life.round} ${life.group.id}`, value);
    }
    return values;
  };
  const peer = bySide("peer");
  const own = bySide("own");
  const ratios: number[] = [];
  for (const [key, value] of peer) {
    const ours = own.get(key);
    if (ours !== undefined && value > 0) ratios.push(ours / value);
  }
  return { figure, peer: [...peer.values()], own: [...own.values()], ratios };
}

/** All figures, in the order of the table. */
export function compareAll(lives: readonly Life[], groups: readonly Group[]): Comparison[] {
  const all: Comparison[] = [];
  for (const group of groups) {
    const members = lives.filter((life) => life.group === group);
    for (const cell of group.cells)
      for (const figure of cell.figures) all.push(compare(members, figure, (life) => ofCell(life, cell, figure)));
  }
  all.push(compare(lives, READY, (life) => life.session.readyMs));
  const bulk = lives.filter((life) => life.group.gapMs === 0);
  all.push(compare(bulk, FIRST, (life) => life.session.firstMs));
  const rested = lives.filter((life) => life.group === REST_GROUP);
  const fresh = lives.filter((life) => life.group !== REST_GROUP);
  all.push(compare(fresh, IDLE_RSS, (life) => life.session.idle.rss_mb));
  all.push(compare(fresh, IDLE_CPU, (life) => life.session.idle.cpu_ms_per_s));
  if (rested.length > 0) all.push(compare(rested, RESTED_CPU, (life) => life.session.idle.cpu_ms_per_s));
  return all;
}

function verdict({ figure, ratios }: Comparison): string {
  if (figure.target === undefined) return "";
  if (ratios.length === 0) return `≤ ${figure.target}: not measured`;
  return `≤ ${figure.target}: ${median(ratios) <= figure.target ? "met" : "**missed**"}`;
}

/** The table for people. */
export function comparisonTable(comparisons: readonly Comparison[], peerName: string, ownName: string): string {
  return table(
    ["cell", peerName, ownName, "ratio", "target"],
    comparisons.map((c) => [
      figureLabel(c.figure),
      withSpread(c.peer, c.figure.digits),
      withSpread(c.own, c.figure.digits),
      withSpread(c.ratios, 2),
      verdict(c),
    ]),
  );
}

/** What makes a result doubtful: cells that do not count, and texts that differ although their requests were the same. */
export function problems(lives: readonly Life[]): string[] {
  const found: string[] = [];
  const texts = new Map<string, readonly LoadResult[]>();
  for (const { round, side, group, session } of lives) {
    for (const cell of group.cells) {
      const results = session.cells.get(cell.id);
      if (results === undefined) continue;
      const where = `round ${round}, ${cell.id}, ${side}`;
      const why = whyNotCounted(cell, results);
      if (why !== undefined) {
        found.push(`${where}: not counted, ${why}`);
        continue;
      }
      const key = `${round} ${cell.id}`;
      const other = texts.get(key);
      texts.set(key, results);
      // A cell that was sent again had other prompts.
      if (other?.some((r, i) => r.seed === results[i]?.seed && r.text_bytes !== results[i]?.text_bytes))
        found.push(`${where}: the answers' bytes differ between the gateways`);
    }
  }
  return found;
}
