import { paddingOf } from "./frame-reader.ts";
import { ConnectionError, ErrorCode, Flag } from "./frames.ts";
import { HpackDecoder } from "./hpack.ts";

/** A whole header block of a stream. */
export interface HeaderBlock {
  readonly id: number;
  /** The stream ends with this block. */
  readonly ended: boolean;
  readonly headers: ReadonlyMap<string, string>;
  /** The header list is over the limit, and `headers` holds only its beginning. */
  readonly tooLarge: boolean;
}

const MAX_BLOCK_BYTES = 1 << 18;
/** Frames of one block: tiny ones without end would cost much time and no space. */
const MAX_FRAMES = 128;
const PRIORITY_BYTES = 5;
const EMPTY = new Uint8Array(0);

/** Puts HEADERS and CONTINUATION frames together and decodes them. Throws ConnectionError. */
export class HeaderBlockReader {
  private readonly decoder = new HpackDecoder();
  private id = 0;
  private flags = 0;
  private frames = 0;
  private block: Uint8Array = EMPTY;

  /** A block has begun and not ended: only CONTINUATION may follow. */
  get open(): boolean {
    return this.id !== 0;
  }

  /** A HEADERS frame with the payload `bytes[start .. end)`; the headers, if it is all of them. */
  begin(flags: number, id: number, bytes: Uint8Array, start: number, end: number): HeaderBlock | undefined {
    let from = start;
    let to = end;
    if (flags & Flag.PADDED) {
      to -= paddingOf(bytes, from, to);
      from++;
    }
    if (flags & Flag.PRIORITY) from += PRIORITY_BYTES;
    if (from > to) throw new ConnectionError(ErrorCode.FRAME_SIZE_ERROR, "HEADERS length");
    if (id % 2 === 0) throw new ConnectionError(ErrorCode.PROTOCOL_ERROR, "even stream id");
    this.id = id;
    this.flags = flags;
    this.frames = 0;
    this.block = EMPTY;
    return this.add(flags, bytes.subarray(from, to));
  }

  /** A CONTINUATION frame. */
  continue(flags: number, id: number, bytes: Uint8Array, start: number, end: number): HeaderBlock | undefined {
    if (!this.open || id !== this.id) throw new ConnectionError(ErrorCode.PROTOCOL_ERROR, "unexpected CONTINUATION");
    return this.add(flags, bytes.subarray(start, end));
  }

  private add(flags: number, block: Uint8Array): HeaderBlock | undefined {
    if (this.block.length + block.length > MAX_BLOCK_BYTES || ++this.frames > MAX_FRAMES)
      throw new ConnectionError(ErrorCode.ENHANCE_YOUR_CALM, "header block too large");
    const last = (flags & Flag.END_HEADERS) !== 0;
    if (this.block.length === 0 && last) this.block = block;
    else {
      const joined = new Uint8Array(this.block.length + block.length);
      joined.set(this.block);
      joined.set(block, this.block.length);
      this.block = joined;
    }
    if (!last) return undefined;
    const { id, decoder } = this;
    this.id = 0;
    const headers = decoder.decode(this.block);
    this.block = EMPTY;
    return { id, ended: (this.flags & Flag.END_STREAM) !== 0, headers, tooLarge: decoder.tooLarge };
  }
}
