/** A heap of merges: the lowest rank first, then the lowest position. */
export interface MergeHeap {
  clear(): void;
  push(rank: number, position: number, result: number): void;
  /** Takes the first one out: `position` and `result` are then its; false if there is none. */
  pop(): boolean;
  position(): number;
  result(): number;
}

export function minHeap(): MergeHeap {
  let ranks = new Int32Array(256);
  let positions = new Int32Array(256);
  let results = new Int32Array(256);
  let size = 0;
  let position = 0;
  let result = 0;
  const less = (rank: number, at: number, i: number): boolean =>
    rank < ranks[i]! || (rank === ranks[i]! && at < positions[i]!);
  function set(i: number, rank: number, at: number, to: number): void {
    ranks[i] = rank;
    positions[i] = at;
    results[i] = to;
  }
  function grow(): void {
    const doubled = (array: Int32Array<ArrayBuffer>): Int32Array<ArrayBuffer> => {
      const out = new Int32Array(array.length * 2);
      out.set(array);
      return out;
    };
    ranks = doubled(ranks);
    positions = doubled(positions);
    results = doubled(results);
  }
  return {
    clear() {
      size = 0;
    },
    push(rank, at, to) {
      if (size === ranks.length) grow();
      let i = size++;
      while (i > 0) {
        const parent = (i - 1) >> 1;
        if (!less(rank, at, parent)) break;
        set(i, ranks[parent]!, positions[parent]!, results[parent]!);
        i = parent;
      }
      set(i, rank, at, to);
    },
    pop() {
      if (size === 0) return false;
      position = positions[0]!;
      result = results[0]!;
      size--;
      const rank = ranks[size]!;
      const at = positions[size]!;
      const to = results[size]!;
      let i = 0;
      for (;;) {
        let child = 2 * i + 1;
        if (child >= size) break;
        if (child + 1 < size && less(ranks[child + 1]!, positions[child + 1]!, child)) child++;
        if (less(rank, at, child)) break;
        set(i, ranks[child]!, positions[child]!, results[child]!);
        i = child;
      }
      set(i, rank, at, to);
      return true;
    },
    position: () => position,
    result: () => result,
  };
}
