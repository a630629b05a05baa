/** Bytes that wait for a paused reader, in order: `bytes[start .. end)`. */
export class HeldBytes {
  bytes = new Uint8Array(1024);
  start = 0;
  end = 0;

  /** Adds a copy of `source[from .. to)`. */
  add(source: Uint8Array, from: number, to: number): void {
    const added = to - from;
    if (this.end + added > this.bytes.length) {
      const length = this.end - this.start;
      const grown = new Uint8Array(Math.max(2 * length, length + added, 1024));
      grown.set(this.bytes.subarray(this.start, this.end));
      this.bytes = grown;
      this.start = 0;
      this.end = length;
    }
    this.bytes.set(source.subarray(from, to), this.end);
    this.end += added;
  }
}
