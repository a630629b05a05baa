import { byteRun } from "./byte-run.ts";
import type { TokenDecoder } from "./tokenizer.ts";

/** What the decoder reads of a vocabulary whose tokens are whole texts or single bytes. */
export interface FallbackTable {
  /** Text of a token; undefined for a byte token, and for ids outside the vocabulary. */
  text(id: number): string | undefined;
  /** The byte of a byte token, else -1. */
  byte(id: number): number;
  isSpecial(id: number): boolean;
}

/** The ByteFallback decoder by ids, in a stream: see `ByteRun`. Left-out tokens don't end a run. */
export function fallbackDecoder(table: FallbackTable, skipSpecialTokens: boolean): TokenDecoder {
  const run = byteRun();
  const lost = (bytes: number): string => (bytes === 0 ? "" : "\ufffd".repeat(bytes));
  function end(): string {
    const rest = run.end() ?? "";
    return typeof rest === "number" ? lost(rest) : rest;
  }
  return {
    push(id) {
      if (skipSpecialTokens && table.isSpecial(id)) return "";
      const text = table.text(id);
      if (text !== undefined) return end() + text;
      const byte = table.byte(id);
      return byte < 0 ? "" : lost(run.push(byte));
    },
    end,
  };
}
