/** Writing large JSON as bytes: vocabularies and merges would take hundreds of megabytes as one JavaScript string. */
import { byteAlphabet, NO_BYTE } from "../image/byte-alphabet.ts";

/** A growing JSON text. */
export interface JsonWriter {
  /** Appends text of ASCII characters as it stands. */
  raw(ascii: string): void;
  /** Appends a JSON string. */
  string(text: string): void;
  /** Appends bytes (a binary string, a code unit is a byte) in the byte alphabet, as the inside of a JSON string. */
  signs(binary: string): void;
  /** What was written; the writer must not be used any more. */
  bytes(): Uint8Array;
}

const utf8 = new TextEncoder();

export function jsonWriter(): JsonWriter {
  const signs = signsOfBytes();
  let out = new Uint8Array(1 << 20);
  let at = 0;
  function room(bytes: number): void {
    if (at + bytes <= out.length) return;
    const larger = new Uint8Array(Math.max(out.length * 2, at + bytes));
    larger.set(out.subarray(0, at));
    out = larger;
  }
  function append(text: string): void {
    room(text.length * 3);
    at += utf8.encodeInto(text, out.subarray(at)).written;
  }
  return {
    raw: append,
    string: (text) => append(JSON.stringify(text)),
    signs(binary) {
      room(binary.length * 2);
      for (let i = 0; i < binary.length; i++) {
        const sign = signs[binary.charCodeAt(i)]!;
        out[at++] = sign;
        if (sign > 0xff) out[at++] = sign >> 8;
      }
    },
    bytes: () => out.subarray(0, at),
  };
}

/** By byte: its sign in the byte alphabet as UTF-8, escaped where JSON asks for it: one byte, or two, the second in the higher bits. */
function signsOfBytes(): Uint16Array {
  const signs = new Uint16Array(256);
  byteAlphabet().forEach((byte, unit) => {
    if (byte === NO_BYTE) return;
    const [first = 0, second = 0] = utf8.encode(JSON.stringify(String.fromCharCode(unit)).slice(1, -1));
    signs[byte] = first | (second << 8);
  });
  return signs;
}
