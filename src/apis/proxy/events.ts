/** A stream of server-sent events, cut between events: what goes on can be followed by an event of our own at any time. */

const [LF, CR] = [0x0a, 0x0d];
/** An event that gets longer goes on in pieces. */
const LONGEST_EVENT = 1 << 18;
const NOTHING = Buffer.alloc(0);

export class EventCutter {
  private held: Buffer = NOTHING;

  /** Adds what came; gives all events that are whole now, as they came. May be empty. */
  push(bytes: Uint8Array): Buffer {
    const all = this.held.length === 0 ? bufferOf(bytes) : Buffer.concat([this.held, bytes]);
    const end = endOfLast(all) || (all.length > LONGEST_EVENT ? all.length : 0);
    this.held = end === all.length ? NOTHING : all.subarray(end);
    return all.subarray(0, end);
  }

  /** What is left when the stream has ended as it should. */
  get rest(): Buffer {
    return this.held;
  }
}

const bufferOf = (bytes: Uint8Array): Buffer => Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength);

/** Behind the last blank line; 0: there is none. */
function endOfLast(bytes: Buffer): number {
  const { length } = bytes;
  if (bytes[length - 1] === LF) {
    const before = bytes[length - 2];
    if (before === LF || (before === CR && bytes[length - 3] === LF)) return length;
  }
  return Math.max(behind(bytes, "\n\n"), behind(bytes, "\n\r\n"));
}

function behind(bytes: Buffer, mark: string): number {
  const at = bytes.lastIndexOf(mark);
  return at < 0 ? 0 : at + mark.length;
}
