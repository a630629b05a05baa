/** Steps of a decoder as streams: tokens go in and come out. After a step that joins them, what comes out are parts of one token. */
import { utf8Stream } from "../utf8-decoder.ts";
import { byteFallbackStream } from "./byte-fallback.ts";
import { fromByteLetters } from "./byte-level.ts";

export type Emit = (token: string) => void;

export interface Stage {
  push(token: string, emit: Emit): void;
  /** Emits what was held back, and begins anew. */
  end(emit: Emit): void;
}

/** A step that turns each token by itself into another; `first`: it is the first of the output. */
export function each(change: (token: string, first: boolean) => string): () => Stage {
  return () => {
    let first = true;
    return {
      push(token, emit) {
        emit(change(token, first));
        first = false;
      },
      end() {
        first = true;
      },
    };
  };
}

/** Tokens of byte letters become their bytes, others stay text; all bytes together are decoded. */
export function byteLevelStage(): Stage {
  const stream = utf8Stream();
  return {
    push(token, emit) {
      const bytes = fromByteLetters(token) ?? Buffer.from(token);
      stream.room(bytes.length).set(bytes, stream.held());
      const text = stream.taken(bytes.length);
      if (text !== "") emit(text);
    },
    end(emit) {
      const text = stream.end();
      if (text !== "") emit(text);
    },
  };
}

export const byteFallbackStage = (): Stage => byteFallbackStream();

/** Puts a space for the suffix of each token but the last, where it becomes nothing. What stands before the suffix goes out at once. */
export function suffixStage(suffix: string): () => Stage {
  return () => {
    let held = "";
    return {
      push(token, emit) {
        if (held !== "") emit(held.replaceAll(suffix, () => " "));
        const at = token.indexOf(suffix);
        const certain = at < 0 ? token : token.slice(0, at);
        held = at < 0 ? "" : token.slice(at);
        emit(certain);
      },
      end(emit) {
        if (held !== "") emit(held.replaceAll(suffix, () => ""));
        held = "";
      },
    };
  };
}

/** Drops a token that repeats the one before it, and those that `change` makes empty. */
export function ctcStage(change: (token: string) => string): () => Stage {
  return () => {
    let last: string | undefined;
    return {
      push(token, emit) {
        if (token === last) return;
        last = token;
        const changed = change(token);
        if (changed !== "") emit(changed);
      },
      end() {
        last = undefined;
      },
    };
  };
}

/** Holds everything back until the end: for steps that look at one long token as a whole. */
export function wholeStage(change: (text: string) => string): () => Stage {
  return () => {
    let all = "";
    return {
      push(token) {
        all += token;
      },
      end(emit) {
        const text = change(all);
        all = "";
        if (text !== "") emit(text);
      },
    };
  };
}

/** Replaces a text in parts of one token. */
export function replaceStage(wanted: string, content: string): () => Stage {
  return () => {
    let held = "";
    return {
      push(part, emit) {
        const text = held + part;
        let out = "";
        let from = 0;
        for (let at = text.indexOf(wanted); at >= 0; at = text.indexOf(wanted, from)) {
          out += text.slice(from, at) + content;
          from = at + wanted.length;
        }
        const keep = beginning(text, from, wanted);
        held = text.slice(text.length - keep);
        out += text.slice(from, text.length - keep);
        if (out !== "") emit(out);
      },
      end(emit) {
        if (held !== "") emit(held);
        held = "";
      },
    };
  };
}

/** Length of the longest end of `text`, from `from` on, that `wanted` begins with. */
function beginning(text: string, from: number, wanted: string): number {
  for (let n = Math.min(wanted.length - 1, text.length - from); n > 0; n--)
    if (text.endsWith(wanted.slice(0, n))) return n;
  return 0;
}

/** Removes a character up to `start` times from the beginning of parts of one token, and up to `stop` times from its end. */
export function stripStage(content: string, start: number, stop: number): () => Stage {
  return () => {
    let left = start;
    let held = "";
    return {
      push(part, emit) {
        let text = part;
        while (left > 0 && text !== "") {
          if (!text.startsWith(content)) left = 0;
          else {
            text = text.slice(content.length);
            left--;
          }
        }
        text = held + text;
        let end = text.length;
        for (let n = 0; n < stop && text.slice(0, end).endsWith(content); n++) end -= content.length;
        held = text.slice(end);
        if (end > 0) emit(text.slice(0, end));
      },
      end() {
        left = start;
        held = "";
      },
    };
  };
}
