/** Where texts of a set lie in other texts: the automaton of Aho and Corasick, built and run in time linear in the lengths. */
export interface TextSearch {
  /** Which of the texts are part of another one of the set, by their place in it. */
  readonly inside: ReadonlySet<number>;
  /** The place of a text of the set that lies in `text`, or that a part of its end begins (all of it does not count); -1: none. */
  meets(text: string): number;
  /** The text of the set that begins first in `text` at or after `from`, of those the longest one; undefined: none. */
  next(text: string, from: number): Found | undefined;
}

export interface Found {
  /** Its place in the set. */
  readonly index: number;
  readonly from: number;
  readonly to: number;
}

/** Texts are compared by UTF-16 units; those of the set must not be empty. */
export function textSearch(texts: readonly string[]): TextSearch {
  const room = texts.reduce((sum, text) => sum + text.length, 1);
  const step = stepTable(room);
  /** Of each node: the text that ends there, one that runs through it (-1: none), its depth. */
  const ends = new Int32Array(room).fill(-1);
  const through = new Int32Array(room).fill(-1);
  const depth = new Int32Array(room);
  /** Parent and unit that lead to a node. */
  const parent = new Int32Array(room);
  const units = new Uint16Array(room);
  let count = 1;
  for (const [index, text] of texts.entries()) {
    let node = 0;
    for (let i = 0; i < text.length; i++) {
      const unit = text.charCodeAt(i);
      let next = step.find(node, unit);
      if (next < 0) {
        next = count++;
        step.add(node, unit, next);
        parent[next] = node;
        units[next] = unit;
        depth[next] = depth[node]! + 1;
        through[next] = index;
      }
      node = next;
    }
    ends[node] = index;
  }

  /** Of each node: the longest proper end of its text that is a node. */
  const shorter = new Int32Array(count);
  function follow(from: number, unit: number): number {
    for (let node = from; ; node = shorter[node]!) {
      const next = step.find(node, unit);
      if (next >= 0) return next;
      if (node === 0) return 0;
    }
  }
  const continued = new Uint8Array(count);
  /** Of each node: a text that its own ends with, -1: none. */
  const found = ends.slice(0, count);
  for (const node of byDepth(depth, count)) {
    const above = parent[node]!;
    continued[above] = 1;
    if (above !== 0) shorter[node] = follow(shorter[above]!, units[node]!);
    continued[shorter[node]!] = 1;
    if (found[node]! < 0) found[node] = found[shorter[node]!]!;
  }
  const inside = new Set<number>();
  for (const [index, text] of texts.entries()) {
    let node = 0;
    for (let i = 0; i < text.length; i++) node = step.find(node, text.charCodeAt(i));
    if (continued[node]) inside.add(index);
  }
  return {
    inside,
    meets(text) {
      let node = 0;
      for (let i = 0; i < text.length; i++) {
        node = follow(node, text.charCodeAt(i));
        if (found[node]! >= 0) return found[node]!;
      }
      return through[depth[node] === text.length ? shorter[node]! : node]!;
    },
    next(text, from) {
      let best: Found | undefined;
      let node = 0;
      for (let to = from + 1; to <= text.length; to++) {
        node = follow(node, text.charCodeAt(to - 1));
        if (best && to - depth[node]! > best.from) break;
        const index = found[node]!;
        if (index < 0) continue;
        const start = to - texts[index]!.length;
        if (!best || start <= best.from) best = { index, from: start, to };
      }
      return best;
    },
  };
}

/** The nodes but the root, those of less depth first. */
function byDepth(depth: Int32Array, count: number): Int32Array {
  const starts = new Int32Array(depth.subarray(0, count).reduce((a, b) => Math.max(a, b), 0) + 2);
  for (let node = 1; node < count; node++) starts[depth[node]! + 1]!++;
  for (let d = 1; d < starts.length; d++) starts[d]! += starts[d - 1]!;
  const order = new Int32Array(count - 1);
  for (let node = 1; node < count; node++) order[starts[depth[node]!]!++] = node;
  return order;
}

interface StepTable {
  /** The node that a unit leads to, or -1. */
  find(node: number, unit: number): number;
  add(node: number, unit: number, next: number): void;
}

/** A hash table for fewer than `most` steps. */
function stepTable(most: number): StepTable {
  let slots = 64;
  while (slots < most * 2) slots *= 2;
  const nodes = new Int32Array(slots).fill(-1);
  const units = new Uint16Array(slots);
  const nexts = new Int32Array(slots);
  function slotOf(node: number, unit: number): number {
    let slot = Math.imul(Math.imul(node, 0x9e3779b1) ^ unit, 0x85ebca6b);
    slot = (slot ^ (slot >>> 15)) & (slots - 1);
    while (nodes[slot]! >= 0 && (nodes[slot] !== node || units[slot] !== unit)) slot = (slot + 1) & (slots - 1);
    return slot;
  }
  return {
    find(node, unit) {
      const slot = slotOf(node, unit);
      return nodes[slot]! < 0 ? -1 : nexts[slot]!;
    },
    add(node, unit, next) {
      const slot = slotOf(node, unit);
      nodes[slot] = node;
      units[slot] = unit;
      nexts[slot] = next;
    },
  };
}
