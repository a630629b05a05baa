/**
 * The decoder ByteFallback as a stream. Tokens of the form `<0xE2>` are bytes. The Rust library looks at each run of them as a whole:
 * if it is UTF-8 it is that text, else every byte of it is one U+FFFD. So a run is held back until it ends or can't be UTF-8 any more.
 */
import { unfinished } from "../utf8-decoder.ts";

export interface ByteFallbackStream {
  /** Takes a token; `emit` gets the tokens that are certain, in order. */
  push(token: string, emit: (token: string) => void): void;
  /** Takes a byte of a run. */
  pushByte(byte: number, emit: (token: string) => void): void;
  /** Ends the run, if there is one. */
  end(emit: (token: string) => void): void;
}

/** The byte that a token stands for, or -1. */
export function byteOfToken(token: string): number {
  if (token.length !== 6 || !token.startsWith("<0x") || token[5] !== ">") return -1;
  const digits = token.slice(3, 5);
  // a sign before a digit is a number to the library
  return /^(?:[0-9a-fA-F]{2}|\+[0-9a-fA-F])$/.test(digits) ? Number.parseInt(digits.replace("+", ""), 16) : -1;
}

export function byteFallbackStream(): ByteFallbackStream {
  let run: number[] = [];
  /** Start of the character that the run ends in: all before it is valid. */
  let open = 0;
  let broken = false;

  function end(emit: (token: string) => void): void {
    if (run.length > 0) {
      if (open === run.length) emit(Buffer.from(run).utf8Slice(0, run.length));
      else for (let i = 0; i < run.length; i++) emit("\ufffd");
    }
    run = [];
    open = 0;
    broken = false;
  }
  function pushByte(byte: number, emit: (token: string) => void): void {
    if (broken) {
      emit("\ufffd");
      return;
    }
    run.push(byte);
    const tail = Uint8Array.from(run.slice(open));
    if (unfinished(tail, tail.length) === tail.length) return;
    if (isCharacter(tail)) {
      open = run.length;
      return;
    }
    broken = true;
    for (let i = 0; i < run.length; i++) emit("\ufffd");
    run = [];
    open = 0;
  }
  return {
    push(token, emit) {
      const byte = byteOfToken(token);
      if (byte >= 0) return pushByte(byte, emit);
      end(emit);
      emit(token);
    },
    pushByte,
    end,
  };
}

const utf8 = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true });

function isCharacter(bytes: Uint8Array): boolean {
  try {
    utf8.decode(bytes);
    return true;
  } catch {
    return false;
  }
}
