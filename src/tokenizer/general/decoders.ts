/** The `decoder` of a tokenizer.json. */
import { byteOfToken } from "./byte-fallback.ts";
import { fromByteLetters } from "./byte-level.ts";
import { character, count, flag, type Part, partOf, parts, pattern, text, typeOf, unsupported } from "./json-part.ts";
import { compilePattern, findMatches } from "./pattern.ts";
import {
  byteFallbackStage,
  byteLevelStage,
  ctcStage,
  each,
  replaceStage,
  type Stage,
  stripStage,
  suffixStage,
  wholeStage,
} from "./stages.ts";

export interface Decoder {
  /** Fresh stages for one stream of tokens. */
  stages(): Stage[];
  /** The bytes of one token in the middle of a text. */
  bytes(token: string): Uint8Array;
}

interface Step {
  readonly stage: () => Stage;
  /** What the step makes of one token in the middle; undefined: nothing by itself. */
  readonly token?: (token: string) => string | Uint8Array;
}

/** Throws `TokenizerError` for a decoder that is not supported. */
export function decoderOf(json: unknown): Decoder {
  const steps: Step[] = [];
  if (json === null || json === undefined) {
    const spaced = (token: string, first: boolean): string => (first ? token : ` ${token}`);
    steps.push({ stage: each(spaced), token: (t) => spaced(t, false) });
  } else {
    let fused = false;
    for (const part of flat(partOf("decoder", json))) {
      if (typeOf(part) === "Fuse") fused = true;
      else {
        steps.push(fused ? fusedStep(part) : tokenStep(part));
        fused ||= typeOf(part) === "ByteLevel";
      }
    }
  }
  return {
    stages: () => steps.map((step) => step.stage()),
    bytes(token) {
      let out: string | Uint8Array = token;
      for (const { token: change } of steps) if (typeof out === "string" && change) out = change(out);
      return typeof out === "string" ? Buffer.from(out) : out;
    },
  };
}

const flat = (part: Part): Part[] => (typeOf(part) === "Sequence" ? parts(part, "decoders").flatMap(flat) : [part]);

/** A step that sees tokens. */
function tokenStep(part: Part): Step {
  const simple = (change: (token: string, first: boolean) => string): Step => ({
    stage: each(change),
    token: (t) => change(t, false),
  });
  switch (typeOf(part)) {
    case "ByteLevel":
      return { stage: byteLevelStage, token: (t) => fromByteLetters(t) ?? t };
    case "ByteFallback":
      return {
        stage: byteFallbackStage,
        token: (t) => (byteOfToken(t) < 0 ? t : Uint8Array.of(byteOfToken(t))),
      };
    case "Replace":
      return simple(replacing(part));
    case "Strip":
      return simple(stripping(part));
    case "Metaspace":
      return simple(metaspace(part));
    case "WordPiece":
      return simple(wordPiece(part));
    case "BPEDecoder": {
      const suffix = text(part, "suffix");
      return suffix === ""
        ? simple((t) => t)
        : { stage: suffixStage(suffix), token: (t) => t.replaceAll(suffix, () => " ") };
    }
    case "CTC": {
      const change = ctc(part);
      return { stage: ctcStage(change), token: change };
    }
    default:
      throw unsupported(part);
  }
}

/** A step that sees one token, in parts: all that came before is joined. */
function fusedStep(part: Part): Step {
  switch (typeOf(part)) {
    case "Strip":
      return { stage: stripStage(character(part, "content"), count(part, "start"), count(part, "stop")) };
    case "Replace": {
      const wanted = pattern(part);
      const content = text(part, "content");
      if ("literal" in wanted) {
        return {
          stage: replaceStage(wanted.literal, content),
          token: (t) => t.replaceAll(wanted.literal, () => content),
        };
      }
      return { stage: wholeStage(replacing(part)) };
    }
    case "ByteLevel":
    case "ByteFallback":
      throw unsupported(part, "tokens that are joined already");
    case "Metaspace": {
      const change = metaspace(part);
      return { stage: each((t) => change(t, true)) };
    }
    case "WordPiece": {
      const change = wordPiece(part);
      return { stage: wholeStage((all) => change(all, true)) };
    }
    case "BPEDecoder": {
      const suffix = text(part, "suffix");
      return { stage: suffix === "" ? each((t) => t) : replaceStage(suffix, "") };
    }
    case "CTC":
      return { stage: wholeStage(ctc(part)) };
    default:
      throw unsupported(part);
  }
}

function replacing(part: Part): (token: string) => string {
  const wanted = pattern(part);
  const content = text(part, "content");
  if ("literal" in wanted) return (token) => token.replaceAll(wanted.literal, () => content);
  const compiled = compilePattern(wanted.expression);
  return (token) => {
    let out = "";
    let at = 0;
    const matches = token === "" ? [] : findMatches(compiled, token);
    for (let i = 0; i < matches.length; i += 2) {
      out += token.slice(at, matches[i]) + content;
      at = matches[i + 1]!;
    }
    return out + token.slice(at);
  };
}

function stripping(part: Part): (token: string) => string {
  const content = character(part, "content");
  const [start, stop] = [count(part, "start"), count(part, "stop")];
  return (token) => {
    let from = 0;
    for (let n = 0; n < start && token.startsWith(content, from); n++) from += content.length;
    let to = token.length;
    for (let n = 0; n < stop && to - content.length >= from && token.endsWith(content, to); n++) to -= content.length;
    return token.slice(from, to);
  };
}

function metaspace(part: Part): (token: string, first: boolean) => string {
  const sign = character(part, "replacement");
  const never = part.json["prepend_scheme"] === "never";
  return (token, first) => token.replaceAll(sign, first && !never ? "" : " ");
}

function wordPiece(part: Part): (token: string, first: boolean) => string {
  const prefix = text(part, "prefix");
  const tidy = flag(part, "cleanup") ? cleanUp : (token: string): string => token;
  return (token, first) => tidy(first ? token : token.startsWith(prefix) ? token.slice(prefix.length) : ` ${token}`);
}

function ctc(part: Part): (token: string) => string {
  const [pad, delimiter] = [text(part, "pad_token"), text(part, "word_delimiter_token")];
  if (pad === "" || delimiter === "") throw unsupported(part);
  const tidy = flag(part, "cleanup");
  return (token) => {
    const bare = token.replaceAll(pad, "");
    return tidy ? cleanUp(bare).replaceAll(delimiter, " ") : bare;
  };
}

/** What the library's `cleanup` replaces, in this order. */
const TIDIED: readonly (readonly [string, string])[] = [
  [" .", "."],
  [" ?", "?"],
  [" !", "!"],
  [" ,", ","],
  [" ' ", "'"],
  [" n't", "n't"],
  [" 'm", "'m"],
  [" do not", " don't"],
  [" 's", "'s"],
  [" 've", "'ve"],
  [" 're", "'re"],
];
const cleanUp = (token: string): string =>
  TIDIED.reduce((out, [untidy, tidy]) => out.replaceAll(untidy, () => tidy), token);
