import { unpadded } from "./frame-reader.ts";
import { ConnectionError, ErrorCode, Flag } from "./frames.ts";
import { HpackDecoder } from "./hpack.ts";

/** A whole header block of a stream. */
export interface RequestHeaders {
  readonly id: number;
  /** The request has no body (or, for a second block, is over). */
  readonly ended: boolean;
  readonly headers: ReadonlyMap<string, string>;
}

const MAX_BLOCK_BYTES = 1 << 18;
const PRIORITY_BYTES = 5;
const EMPTY = new Uint8Array(0);

/** Puts HEADERS and CONTINUATION frames together and decodes them. Throws ConnectionError and HpackError. */
export class HeaderBlockReader {
  private readonly decoder = new HpackDecoder();
  private id = 0;
  private flags = 0;
  private block: Uint8Array = EMPTY;

  /** A block has begun and not ended: only CONTINUATION may follow. */
  get open(): boolean {
    return this.id !== 0;
  }

  /** A HEADERS frame; the headers, if it is all of them. */
  begin(flags: number, id: number, payload: Uint8Array): RequestHeaders | undefined {
    let block = payload;
    if (flags & Flag.PADDED) block = unpadded(block);
    if (flags & Flag.PRIORITY) block = block.subarray(PRIORITY_BYTES);
    if (id % 2 === 0) throw new ConnectionError(ErrorCode.PROTOCOL_ERROR, "even stream id");
    this.id = id;
    this.flags = flags;
    this.block = EMPTY;
    return this.add(flags, block);
  }

  /** A CONTINUATION frame. */
  continue(flags: number, id: number, payload: Uint8Array): RequestHeaders | undefined {
    if (!this.open || id !== this.id) throw new ConnectionError(ErrorCode.PROTOCOL_ERROR, "unexpected CONTINUATION");
    return this.add(flags, payload);
  }

  private add(flags: number, block: Uint8Array): RequestHeaders | undefined {
    if (this.block.length + block.length > MAX_BLOCK_BYTES)
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
    const { id } = this;
    this.id = 0;
    return { id, ended: (this.flags & Flag.END_STREAM) !== 0, headers: this.decoder.decode(this.block) };
  }
}
