/** Ids that grow in number. */
export interface Ids {
  push(id: number): void;
  pushAll(ids: Uint32Array): void;
  readonly length: number;
  /** A copy of the ids from `from` on. */
  from(from: number): Uint32Array;
}

export function idList(): Ids {
  let ids = new Uint32Array(256);
  let length = 0;
  function room(more: number): void {
    if (length + more <= ids.length) return;
    const grown = new Uint32Array(Math.max(ids.length * 2, length + more));
    grown.set(ids.subarray(0, length));
    ids = grown;
  }
  return {
    push(id) {
      room(1);
      ids[length++] = id;
    },
    pushAll(more) {
      room(more.length);
      ids.set(more, length);
      length += more.length;
    },
    get length() {
      return length;
    },
    from: (from) => ids.slice(from, length),
  };
}
