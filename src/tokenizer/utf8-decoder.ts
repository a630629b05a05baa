import type { TokenDecoder } from "./tokenizer.ts";

declare global {
  // in Bun and Node, missing from the type packages
  interface Buffer {
    utf8Slice(from: number, to: number): string;
  }
}

/** What a streaming decoder reads of a vocabulary. Ids outside of it have no bytes. */
export interface TokenTable {
  /** Text of a token whose bytes are whole characters, else undefined. */
  whole(id: number): string | undefined;
  /** Number of its bytes. */
  length(id: number): number;
  /** Writes them to `out` from `at` on. */
  copy(id: number, out: Uint8Array, at: number): void;
  isSpecial(id: number): boolean;
}

/** Bytes in, text out: all pieces joined plus `end()` are the UTF-8 decoding of all bytes, as `TextDecoder` gives it. */
export interface Utf8Stream {
  /** Bytes held back: at most the 3 of an unfinished character. */
  held(): number;
  /** A buffer with the held bytes at its start and room for `more` after them; to be filled and `taken` at once. */
  room(more: number): Uint8Array;
  /** Text of the held bytes and of `more` bytes written after them. */
  taken(more: number): string;
  /** What was held back, as U+FFFD. */
  end(): string;
}

export function utf8Stream(): Utf8Stream {
  let carry = Buffer.alloc(64);
  let held = 0;
  return {
    held: () => held,
    room(more) {
      if (held + more > carry.length) carry = Buffer.concat([carry.subarray(0, held)], (held + more) * 2);
      return carry;
    },
    taken(more) {
      const n = held + more;
      held = unfinished(carry, n);
      const done = n - held;
      if (done === 0) return "";
      const text = carry.utf8Slice(0, done);
      for (let i = 0; i < held; i++) carry[i] = carry[done + i]!;
      return text;
    },
    end() {
      const text = carry.utf8Slice(0, held);
      held = 0;
      return text;
    },
  };
}

/** Streaming decoder over a vocabulary: O(1) per token. */
export function utf8Decoder(table: TokenTable, skipSpecialTokens: boolean): TokenDecoder {
  const stream = utf8Stream();
  return {
    push(id) {
      if (skipSpecialTokens && table.isSpecial(id)) return "";
      if (stream.held() === 0) {
        const text = table.whole(id);
        if (text !== undefined) return text;
      }
      const length = table.length(id);
      table.copy(id, stream.room(length), stream.held());
      return stream.taken(length);
    },
    end: stream.end,
  };
}

/** A decoder without up to `count` times `content` at the start of the whole output. */
export function strippedStart(decoder: TokenDecoder, content: string, count: number): TokenDecoder {
  let left = count;
  const strip = (text: string): string => {
    let out = text;
    while (left > 0 && out !== "") {
      if (!out.startsWith(content)) left = 0;
      else {
        out = out.slice(content.length);
        left--;
      }
    }
    return out;
  };
  return {
    push: (id) => strip(decoder.push(id)),
    end() {
      const text = strip(decoder.end());
      left = count;
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
