import type { CacheBoard } from "./board.ts";

const PLACES = 8;
/** UTF-16 units of a text, and ids: all places together hold 2 MB at most. */
const LONGEST = 1 << 16;
const MOST_IDS = 1 << 15;

interface Hot {
  readonly text: string;
  readonly asText: boolean;
  /** Position of the record. */
  readonly at: number;
  readonly ids: Uint32Array;
}

/**
 * Texts that a thread takes from L0 again and again, as strings, with their ids: such a text need not be made bytes and hashed, nor its ids
 * be looked at whether others write there.
 */
export class HotTexts {
  private readonly kept: (Hot | undefined)[] = new Array(PLACES).fill(undefined);
  /** Positions of the records that were found last. */
  private readonly last = new Float64Array(PLACES).fill(-1);

  constructor(private readonly board: CacheBoard) {}

  /** A copy, as long as the record is there. */
  idsOf(text: string, asText: boolean): Uint32Array | undefined {
    const hot = this.kept[text.length % PLACES];
    if (hot === undefined || hot.text.length !== text.length || hot.asText !== asText) return undefined;
    return hot.text === text && this.board.isThere(hot.at) ? new Uint32Array(hot.ids) : undefined;
  }

  /** A text was found in the record at `at`. It is kept if it was so the last time, too: texts that take turns are not copied for nothing. */
  see(text: string, asText: boolean, at: number, ids: Uint32Array): void {
    const place = text.length % PLACES;
    if (this.last[place] !== at) this.last[place] = at;
    else if (text.length <= LONGEST && ids.length <= MOST_IDS)
      // copies: the ids are the caller's, and a text may be a piece of a larger one
      this.kept[place] = { text: Buffer.from(text).toString(), asText, at, ids: new Uint32Array(ids) };
  }
}
