/** The `decoder` part of a tokenizer.json, turned into a function from one token to bytes, so that decoding can stream exactly. */
import { byteAlphabet, NO_BYTE } from "./image/byte-alphabet.ts";
import { isObject } from "./image/tokenizer-json.ts";
import { TokenizerError } from "./tokenizer.ts";

export interface TokenTexts {
  /** Bytes of a token; `first`: it is the first of the output. */
  bytes(token: string, first: boolean): Uint8Array;
  /** Character removed from the start of the whole output, and how often at most. */
  readonly strip: { readonly content: string; readonly count: number };
}

type Step = (token: string, first: boolean) => string | Uint8Array;

const utf8 = new TextEncoder();
const NO_STRIP = { content: "", count: 0 };

/** Throws `TokenizerError` for decoders whose output for one token depends on later ones. */
export function tokenTexts(decoder: unknown): TokenTexts {
  const steps: Step[] = [];
  let strip = NO_STRIP;
  let fused = false;
  for (const part of parts(decoder)) {
    if (part["type"] === "Fuse") fused = true;
    else if (part["type"] === "Strip" && fused && !part["stop"] && typeof part["content"] === "string") {
      strip = { content: part["content"], count: Number(part["start"] ?? 0) };
    } else if (fused) throw unsupported(part);
    else steps.push(step(part));
  }
  // without a decoder the library puts a space between tokens
  if (steps.length === 0 && !fused) steps.push((token, first) => (first ? token : ` ${token}`));
  return {
    strip,
    bytes(token, first) {
      let out: string | Uint8Array = token;
      for (const next of steps) {
        if (typeof out !== "string") break;
        out = next(out, first);
      }
      return typeof out === "string" ? utf8.encode(out) : out;
    },
  };
}

function parts(decoder: unknown): Record<string, unknown>[] {
  if (decoder === null || decoder === undefined) return [];
  if (!isObject(decoder)) throw new TokenizerError("the decoder of tokenizer.json is not an object");
  if (decoder["type"] !== "Sequence") return [decoder];
  const list = decoder["decoders"];
  if (!Array.isArray(list) || !list.every(isObject)) throw unsupported(decoder);
  return list;
}

const unsupported = (part: Record<string, unknown>): TokenizerError =>
  new TokenizerError(`tokenizer.json uses the decoder ${JSON.stringify(part)}, which is not supported here`);

function step(part: Record<string, unknown>): Step {
  switch (part["type"]) {
    case "ByteLevel":
      return byteLevel;
    case "ByteFallback":
      return (token) =>
        /^<0x[0-9A-Fa-f]{2}>$/.test(token) ? Uint8Array.of(Number.parseInt(token.slice(3, 5), 16)) : token;
    case "Replace": {
      const pattern = isObject(part["pattern"]) ? part["pattern"]["String"] : undefined;
      const { content } = part;
      if (typeof pattern !== "string" || typeof content !== "string") throw unsupported(part);
      return (token) => token.replaceAll(pattern, () => content);
    }
    case "Metaspace": {
      const replacement = String(part["replacement"] ?? "▁");
      const never = part["prepend_scheme"] === "never" || part["add_prefix_space"] === false;
      return (token, first) => token.replaceAll(replacement, first && !never ? "" : " ");
    }
    case "WordPiece": {
      const prefix = String(part["prefix"] ?? "##");
      const tidy = part["cleanup"] ? cleanUp : (token: string): string => token;
      const bare = (token: string): string => (token.startsWith(prefix) ? token.slice(prefix.length) : ` ${token}`);
      return (token, first) => tidy(first ? token : bare(token));
    }
    default:
      throw unsupported(part);
  }
}

/** A token with a character outside the alphabet stands for its own text. */
function byteLevel(token: string): string | Uint8Array {
  const alphabet = byteAlphabet();
  const out = new Uint8Array(token.length);
  for (let i = 0; i < token.length; i++) {
    const byte = alphabet[token.charCodeAt(i)]!;
    if (byte === NO_BYTE) return token;
    out[i] = byte;
  }
  return out;
}

/** What the Rust library's WordPiece decoder does to each token when `cleanup` is on. */
const cleanUp = (token: string): string =>
  token
    .replaceAll(" .", ".")
    .replaceAll(" ?", "?")
    .replaceAll(" !", "!")
    .replaceAll(" ,", ",")
    .replaceAll(" ' ", "'")
    .replaceAll(" n't", "n't")
    .replaceAll(" 'm", "'m")
    .replaceAll(" do not", " don't")
    .replaceAll(" 's", "'s")
    .replaceAll(" 've", "'ve")
    .replaceAll(" 're", "'re");
