/**
 * A trie over UTF-16 code units in flat arrays, so that it can lie in shared memory. Nodes are numbered level by level: those below
 * node `n` are `first[n]` to `first[n + 1]` - 1, ascending by their units.
 */
export interface TrieTables {
  readonly first: Uint32Array;
  /** The unit that leads to a node. */
  readonly units: Uint16Array;
  /** Value of the text that ends at a node, or -1. */
  readonly values: Int32Array;
  /** Node below the root by unit, 0: none. */
  readonly root: Uint32Array;
}

/** Texts one after the other: text `i` is `units[offsets[i], offsets[i + 1])`. */
export interface Texts {
  readonly count: number;
  readonly units: Uint16Array;
  readonly offsets: Uint32Array;
}

export interface Trie {
  /** The node that `unit` leads to from `node` (0 is the root), or 0. */
  step(node: number, unit: number): number;
  /** Value of the text that ends at a node, or -1. */
  value(node: number): number;
  /** Value of `text[from, to)`, or -1. */
  find(text: string, from: number, to: number): number;
  findUnits(text: Uint16Array, from: number, to: number): number;
}

/** Builds a trie of texts and their values (not negative). Of equal texts the last one counts; empty ones do not. */
export function buildTrie({ count, units, offsets }: Texts, values: ArrayLike<number>): TrieTables {
  const order = new Uint32Array(count);
  for (let i = 0; i < count; i++) order[i] = i;
  order.sort((a, b) => {
    const endA = offsets[a + 1]!;
    const endB = offsets[b + 1]!;
    let i = offsets[a]!;
    let j = offsets[b]!;
    while (i < endA && j < endB) {
      const d = units[i++]! - units[j++]!;
      if (d !== 0) return d;
    }
    return endA - i - (endB - j) || a - b;
  });
  // node by node: the span of `order` that runs through it
  const from: number[] = [0];
  const to: number[] = [count];
  const first: number[] = [];
  const labels: number[] = [0];
  const ends: number[] = [];
  let level = 1; // end of the level
  let depth = 0;
  for (let node = 0; node < from.length; node++) {
    if (node === level) {
      level = from.length;
      depth++;
    }
    first.push(from.length);
    let i = from[node]!;
    const last = to[node]!;
    let value = -1;
    for (; i < last && offsets[order[i]!]! + depth === offsets[order[i]! + 1]!; i++) value = values[order[i]!]!;
    ends.push(node === 0 ? -1 : value);
    while (i < last) {
      const unit = units[offsets[order[i]!]! + depth]!;
      const start = i++;
      while (i < last && units[offsets[order[i]!]! + depth] === unit) i++;
      from.push(start);
      to.push(i);
      labels.push(unit);
    }
  }
  first.push(from.length);
  const root = new Uint32Array(0x10000);
  for (let node = first[0]!; node < first[1]!; node++) root[labels[node]!] = node;
  return { first: Uint32Array.from(first), units: Uint16Array.from(labels), values: Int32Array.from(ends), root };
}

export function openTrie({ first, units, values, root }: TrieTables): Trie {
  function step(node: number, unit: number): number {
    if (node === 0) return root[unit]!;
    let low = first[node]!;
    let high = first[node + 1]!;
    while (low < high) {
      const middle = (low + high) >> 1;
      const u = units[middle]!;
      if (u === unit) return middle;
      if (u < unit) low = middle + 1;
      else high = middle;
    }
    return 0;
  }
  return {
    step,
    value: (node) => values[node]!,
    find(text, from, to) {
      let node = 0;
      for (let i = from; i < to; i++) {
        node = step(node, text.charCodeAt(i));
        if (node === 0) return -1;
      }
      return values[node]!;
    },
    findUnits(text, from, to) {
      let node = 0;
      for (let i = from; i < to; i++) {
        node = step(node, text[i]!);
        if (node === 0) return -1;
      }
      return values[node]!;
    },
  };
}

/** Texts of JavaScript strings. */
export function textsOf(list: readonly string[]): Texts {
  const offsets = new Uint32Array(list.length + 1);
  for (const [i, text] of list.entries()) offsets[i + 1] = offsets[i]! + text.length;
  const units = new Uint16Array(offsets[list.length]!);
  for (const [i, text] of list.entries())
    for (let k = 0; k < text.length; k++) units[offsets[i]! + k] = text.charCodeAt(k);
  return { count: list.length, units, offsets };
}
