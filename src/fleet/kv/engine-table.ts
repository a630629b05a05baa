/**
 * Where the blocks that engines name by their own hashes lie in the prefix index. Control's alone. 12 bytes a block of a cache, at
 * one of two places that the hash chooses; where both are full, what would come is left out.
 */

/** Rows that lie together. */
const BUCKET = 8;
/** Cells of a row: a hash of the engine's, place and copies, and whose it is with a part of the block's key. */
const Row = { tag: 0, place: 1, whose: 2, SIZE: 3 } as const;
/** Copies that a row counts; more of them are counted elsewhere. */
const MANY = 3;
const KEY_BITS = 21;
const KEY_MASK = 2 ** KEY_BITS - 1;
const MAX_OWNERS = 2 ** (32 - KEY_BITS);

/** A block as the table knows it: where it lies in the index, and what must lie there for that to be still true. */
export interface KnownBlock {
  readonly row: number;
  readonly position: number;
  readonly keyPart: number;
}

/** Of a block's key what rows keep. */
export const keyPartOf = (hi: number): number => hi & KEY_MASK;

export class EngineTable {
  private readonly buckets: number;
  private cells: Int32Array | undefined;
  /** By number of an owner: undefined = free, false = its rows are to be swept away. */
  private readonly owners: (boolean | undefined)[] = new Array<boolean | undefined>(MAX_OWNERS).fill(undefined);
  private lastOwner = 0;
  private readonly copies = new Map<number, number>();
  private dead = 0;
  private hand = 0;
  private freeRows = 0;
  /** Nobody asks for it; but without it nothing would be read. */
  protected warmed = 0;

  constructor(rows: number) {
    this.buckets = Math.max(1, Math.floor(rows / BUCKET));
  }

  /** A number for a cache whose blocks are to be known; another one whenever it forgets them all. Throws RangeError. */
  open(): number {
    for (let round = 0; round < 2; round++) {
      for (let i = 1; i < MAX_OWNERS; i++) {
        const owner = 1 + ((this.lastOwner + i) % (MAX_OWNERS - 1));
        if (this.owners[owner] !== undefined) continue;
        this.owners[owner] = true;
        this.lastOwner = owner;
        return owner;
      }
      this.sweep(this.buckets * BUCKET); // rare: numbers of caches that were cleared come back
    }
    throw new RangeError("too many caches");
  }

  /** Its blocks are not found any more. */
  close(owner: number): void {
    if (this.owners[owner] !== true) return;
    this.owners[owner] = false;
    this.dead++;
    this.hand = 0;
  }

  /** Reads where hashes from one to another belong, so that all are on their way from memory when they are looked at one by one. */
  warm(owner: number, hashes: Int32Array, from: number, to: number): void {
    const { cells } = this;
    if (cells === undefined) return;
    let sum = 0;
    for (let i = from; i < to; i++) {
      mix(hashes[2 * i]!, hashes[2 * i + 1]!, owner);
      for (let choice = 1; choice < 3; choice++) {
        const start = this.bucket(words[choice]!);
        sum ^= cells[start]! ^ cells[start + BUCKET * Row.SIZE - 1]!;
      }
    }
    this.warmed = sum;
  }

  find(owner: number, hashLow: number, hashHigh: number): KnownBlock | undefined {
    const { cells } = this;
    if (cells === undefined) return undefined;
    const at = this.locate(cells, owner, hashLow, hashHigh);
    if (at < 0) return undefined;
    return { row: at, position: (cells[at + Row.place]! >>> 2) - 1, keyPart: cells[at + Row.whose]! & KEY_MASK };
  }

  /** Another copy of a block is there, or the first. False where there was no room. `isStale`: a row that means nothing any more. */
  put(
    owner: number,
    hashLow: number,
    hashHigh: number,
    position: number,
    keyPart: number,
    isStale: (position: number, keyPart: number) => boolean,
  ): boolean {
    // pages of shared memory that were never written to take no room
    this.cells ??= new Int32Array(new SharedArrayBuffer(this.buckets * BUCKET * Row.SIZE * 4));
    const { cells } = this;
    let at = this.locate(cells, owner, hashLow, hashHigh);
    if (at >= 0 && cells[at + Row.place]! >>> 2 === position + 1 && (cells[at + Row.whose]! & KEY_MASK) === keyPart) {
      const count = cells[at + Row.place]! & 3;
      if (count < MANY) cells[at + Row.place]!++;
      else this.copies.set(at, (this.copies.get(at) ?? MANY) + 1);
      return true;
    }
    if (at < 0) at = this.place(cells, isStale);
    if (at < 0) return false;
    this.copies.delete(at);
    cells[at + Row.tag] = words[0]!;
    cells[at + Row.place] = ((position + 1) << 2) | 1;
    cells[at + Row.whose] = (owner << KEY_BITS) | keyPart;
    return true;
  }

  /** One copy is gone: true if that was the last. */
  take(row: number): boolean {
    const cells = this.cells!;
    const more = this.copies.get(row);
    if (more !== undefined) {
      if (more - 1 > MANY) this.copies.set(row, more - 1);
      else this.copies.delete(row);
      return false;
    }
    if ((cells[row + Row.place]! & 3) > 1) {
      cells[row + Row.place]!--;
      return false;
    }
    this.drop(row);
    return true;
  }

  /** It means nothing any more, whatever copies there are. */
  drop(row: number): void {
    this.copies.delete(row);
    this.cells![row + Row.place] = 0;
  }

  /** Frees rows of caches that were closed, and looks at so many for that. False: nothing is left to do. */
  sweep(rows: number): boolean {
    const { cells, owners } = this;
    if (this.dead === 0) return false;
    const all = cells === undefined ? 0 : this.buckets * BUCKET;
    const end = Math.min(all, this.hand + rows);
    for (; this.hand < end; this.hand++) {
      const row = this.hand * Row.SIZE;
      if (cells![row + Row.place] !== 0 && owners[cells![row + Row.whose]! >>> KEY_BITS] === false) this.drop(row);
    }
    if (this.hand < all) return true;
    for (let owner = 0; owner < MAX_OWNERS; owner++) if (owners[owner] === false) owners[owner] = undefined;
    this.dead = 0;
    this.hand = 0;
    return false;
  }

  /** Leaves the words of the hash in `words` for `place`. */
  private locate(cells: Int32Array, owner: number, low: number, high: number): number {
    mix(low, high, owner);
    const tag = words[0]!;
    for (let choice = 1; choice < 3; choice++) {
      const start = this.bucket(words[choice]!);
      for (let at = start; at < start + BUCKET * Row.SIZE; at += Row.SIZE)
        if (cells[at] === tag && cells[at + Row.place] !== 0 && cells[at + Row.whose]! >>> KEY_BITS === owner)
          return at;
    }
    return -1;
  }

  /** A row for what was looked for last: in the emptier bucket, else that of one which means nothing any more. */
  private place(cells: Int32Array, isStale: (position: number, keyPart: number) => boolean): number {
    const first = this.free(cells, this.bucket(words[1]!));
    const firstFree = this.freeRows;
    const second = this.free(cells, this.bucket(words[2]!));
    if (firstFree + this.freeRows > 0) return firstFree >= this.freeRows ? first : second;
    for (let choice = 1; choice < 3; choice++) {
      const start = this.bucket(words[choice]!);
      for (let at = start; at < start + BUCKET * Row.SIZE; at += Row.SIZE) {
        if (isStale((cells[at + Row.place]! >>> 2) - 1, cells[at + Row.whose]! & KEY_MASK)) return at;
      }
    }
    return -1;
  }

  /** A free row of a bucket, -1 if there is none; leaves their number in `freeRows`. */
  private free(cells: Int32Array, start: number): number {
    let at = -1;
    let count = 0;
    for (let row = start; row < start + BUCKET * Row.SIZE; row += Row.SIZE) {
      if (cells[row + Row.place] !== 0 && this.owners[cells[row + Row.whose]! >>> KEY_BITS] !== false) continue;
      if (at < 0) at = row;
      count++;
    }
    this.freeRows = count;
    return at;
  }

  private bucket(word: number): number {
    return Math.floor(((word >>> 0) * this.buckets) / 2 ** 32) * BUCKET * Row.SIZE;
  }
}

/** Tag and the words that choose buckets, of the last `mix`. */
const words = new Int32Array(3);

function mix(low: number, high: number, owner: number): void {
  let a = Math.imul(low ^ Math.imul(owner, 0x9e3779b1), 0x85ebca77);
  let b = Math.imul(high ^ (a >>> 15), 0xc2b2ae3d);
  a = Math.imul(a ^ (b >>> 13), 0x27d4eb2f);
  b = Math.imul(b ^ (a >>> 16), 0x7feb352d);
  a = Math.imul(a ^ (b >>> 14), 0x846ca68b);
  words[0] = a ^ (a >>> 16);
  words[1] = b ^ (b >>> 15);
  words[2] = Math.imul(a ^ (b >>> 11), 0x165667b1) ^ (b >>> 7);
}
