import type { TokenDecoder } from "./tokenizer.ts";

declare global {
  // in Bun and Node, missing from the type packages
  interface Buffer {
    utf8Slice(from: number, to: number): string;
  }
}

/** What a streaming decoder reads of a vocabulary. */
export interface TokenTable {
  /** Text of a token whose bytes are whole characters, else undefined. */
  whole(id: number): string | undefined;
  /** Its bytes, empty for ids outside the vocabulary. */
  bytes(id: number): Uint8Array;
  isSpecial(id: number): boolean;
}

/**
 * Streaming decoder over token bytes: O(1) per token. All pieces joined plus `end()` equal the UTF-8 decoding of all bytes, with
 * U+FFFD for what is not UTF-8 (as `TextDecoder` puts it). At most the 3 bytes of an unfinished character are held back.
 */
export function utf8Decoder(table: TokenTable, skipSpecialTokens: boolean): TokenDecoder {
  let carry = Buffer.alloc(64);
  let held = 0;
  return {
    push(id) {
      if (skipSpecialTokens && table.isSpecial(id)) return "";
      if (held === 0) {
        const text = table.whole(id);
        if (text !== undefined) return text;
      }
      const bytes = table.bytes(id);
      const n = held + bytes.length;
      if (n > carry.length) carry = Buffer.concat([carry.subarray(0, held)], n * 2);
      carry.set(bytes, held);
      const done = n - unfinished(carry, n);
      const text = done > 0 ? carry.utf8Slice(0, done) : "";
      carry.copyWithin(0, done, n);
      held = n - done;
      return text;
    },
    end() {
      const text = carry.utf8Slice(0, held);
      held = 0;
      return text;
    },
  };
}

/** How many bytes at the end of `bytes[0, n)` begin a character that more bytes could complete. */
export function unfinished(bytes: Uint8Array, n: number): number {
  for (let back = 1; back <= 3 && back <= n; back++) {
    const lead = bytes[n - back]!;
    if (lead < 0x80) return 0;
    if (lead < 0xc0) continue;
    const length = lead < 0xc2 || lead > 0xf4 ? 1 : lead < 0xe0 ? 2 : lead < 0xf0 ? 3 : 4;
    if (back >= length) return 0;
    return back === 1 || maySecond(lead, bytes[n - back + 1]!) ? back : 0;
  }
  return 0;
}

/** May `second` follow the lead byte? Overlong forms, surrogates and values above U+10FFFF are ruled out by the second byte. */
function maySecond(lead: number, second: number): boolean {
  if (lead === 0xe0) return second >= 0xa0;
  if (lead === 0xed) return second < 0xa0;
  if (lead === 0xf0) return second >= 0x90;
  if (lead === 0xf4) return second < 0x90;
  return true;
}
