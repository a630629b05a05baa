/** Bytes that the scratch of a thread may grow to; longer texts get memory of their own, for as long as they are looked at. */
const MOST_SCRATCH = 1 << 20;
const LEAST_SCRATCH = 1 << 16;

const utf8 = new TextEncoder();
let scratch = Buffer.allocUnsafeSlow(LEAST_SCRATCH);

/** A text as UTF-8, valid until the next call on this thread. Lone surrogates become U+FFFD. */
export function textBytes(text: string): Buffer {
  if (text.length * 3 > scratch.length) {
    const size = Buffer.byteLength(text);
    if (size > MOST_SCRATCH) return Buffer.from(text);
    if (size > scratch.length) scratch = Buffer.allocUnsafeSlow(2 ** Math.ceil(Math.log2(size)));
  }
  return scratch.subarray(0, utf8.encodeInto(text, scratch).written);
}
