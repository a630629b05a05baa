/** The `pre_tokenizer` of a tokenizer.json. */
import { toByteLetters } from "./byte-level.ts";
import { Is, rangesWhere, scriptNumbers } from "./characters.ts";
import { character, count, flag, type Part, partOf, parts, pattern, typeOf, unsupported } from "./json-part.ts";
import { compilePattern, findMatches } from "./pattern.ts";
import { classSource } from "./ranges.ts";
import { BEHAVIORS, type Behavior, cut } from "./splits.ts";

/** Pieces of a section, none of them empty. */
export interface Pieces {
  readonly texts: readonly string[];
  /** As `atStart` of a section, for each piece; undefined if nobody asks for it. */
  readonly atStart: readonly number[] | undefined;
}

export type PreTokenizer = (pieces: Pieces) => Pieces;

/** Does the pre-tokenizer of this JSON value ask what is at the start of the text? */
export const asksForStart = (json: unknown): boolean => JSON.stringify(json ?? null).includes('"first"');

/** Throws `TokenizerError` for one that is not supported. */
export function preTokenizer(json: unknown): PreTokenizer {
  return json === null || json === undefined ? (pieces) => pieces : make(partOf("pre_tokenizer", json));
}

/** A pre-tokenizer that cuts each piece at the places (flat pairs) that `places` says. */
const cutting =
  (places: (text: string) => readonly number[]): PreTokenizer =>
  ({ texts, atStart }) => {
    const out: string[] = [];
    const outAtStart: number[] = [];
    for (let k = 0; k < texts.length; k++) {
      const text = texts[k]!;
      const kept = places(text);
      for (let i = 0; i < kept.length; i += 2) {
        const from = kept[i]!;
        const to = kept[i + 1]!;
        if (from === to) continue;
        out.push(text.slice(from, to));
        if (atStart) outAtStart.push(Math.max(0, Math.min(atStart[k]!, to) - from));
      }
    }
    return { texts: out, atStart: atStart && outAtStart };
  };

/** A pre-tokenizer whose pieces are the matches of a JS expression. */
function matching(source: string): PreTokenizer {
  const compiled = new RegExp(source, "gu");
  const slow = cutting((text) => findMatches(compiled, text));
  return (pieces) => {
    if (pieces.atStart) return slow(pieces);
    const { texts } = pieces;
    if (texts.length === 1) return { texts: texts[0]!.match(compiled) ?? [], atStart: undefined };
    const out: string[] = [];
    for (const text of texts) for (const piece of text.match(compiled) ?? []) out.push(piece);
    return { texts: out, atStart: undefined };
  };
}

/** One that changes each piece. */
const changing =
  (change: (text: string) => string): PreTokenizer =>
  ({ texts, atStart }) => ({
    texts: texts.map((text) => change(text)),
    atStart: atStart?.map((n, i) => (n > 0 ? change(texts[i]!.slice(0, n)).length : 0)),
  });

const inOrder =
  (list: readonly PreTokenizer[]): PreTokenizer =>
  (pieces) =>
    list.reduce((all, next) => next(all), pieces);

/** What stands in the brackets of a class of the characters that have one of these bits. */
const having = (bits: number): string => classSource(rangesWhere((s) => (s & bits) !== 0)).slice(1, -1);

function make(part: Part): PreTokenizer {
  switch (typeOf(part)) {
    case "Sequence":
      return inOrder(parts(part, "pretokenizers").map(make));
    case "BertPreTokenizer":
      return matching(`[^${having(Is.white | Is.punctuation)}]+|(?![${having(Is.white)}])[${having(Is.punctuation)}]`);
    case "Whitespace":
      return matching(`[${having(Is.regexWord)}]+|[^${having(Is.regexWord | Is.regexSpace)}]+`);
    case "WhitespaceSplit":
      return matching(`[^${having(Is.white)}]+`);
    case "Punctuation":
      return atCharacters(having(Is.punctuation), behaviorOf(part, "Isolated"));
    case "Digits":
      return atCharacters(having(Is.numeric), flag(part, "individual_digits") ? "Isolated" : "Contiguous");
    case "CharDelimiterSplit":
      return atLiteral(character(part, "delimiter"), "Removed", false);
    case "Split":
      return split(part);
    case "ByteLevel":
      return byteLevel(flag(part, "add_prefix_space"), flag(part, "use_regex", true));
    case "Metaspace":
      return metaspace(part);
    case "UnicodeScripts":
      return cutting(scriptRuns());
    case "FixedLength":
      return cutting(fixedLength(part.json["length"] === undefined ? 5 : count(part, "length"), part));
    default:
      throw unsupported(part);
  }
}

function behaviorOf(part: Part, otherwise?: Behavior): Behavior {
  const value = part.json["behavior"] ?? otherwise;
  const found = BEHAVIORS.find((b) => b === value);
  if (!found) throw unsupported(part);
  return found;
}

/** Cuts at each character of a class. */
function atCharacters(inBrackets: string, behavior: Behavior): PreTokenizer {
  if (behavior === "Isolated") return matching(`[^${inBrackets}]+|[${inBrackets}]`);
  if (behavior === "Contiguous") return matching(`[^${inBrackets}]+|[${inBrackets}]+`);
  if (behavior === "Removed") return matching(`[^${inBrackets}]+`);
  const compiled = new RegExp(`[${inBrackets}]`, "gu");
  return cutting((text) => cut(text.length, findMatches(compiled, text), behavior, false));
}

function atLiteral(wanted: string, behavior: Behavior, invert: boolean): PreTokenizer {
  return cutting((text) => {
    const matches: number[] = [];
    for (let at = text.indexOf(wanted); at >= 0; at = text.indexOf(wanted, at + wanted.length))
      matches.push(at, at + wanted.length);
    return cut(text.length, matches, behavior, invert);
  });
}

function split(part: Part): PreTokenizer {
  const wanted = pattern(part);
  const behavior = behaviorOf(part);
  const invert = flag(part, "invert");
  if ("literal" in wanted) return atLiteral(wanted.literal, behavior, invert);
  const compiled = compilePattern(wanted.expression);
  return cutting((text) => cut(text.length, findMatches(compiled, text), behavior, invert));
}

/** GPT-2's pattern. */
const WORDS = "'s|'t|'re|'ve|'m|'ll|'d| ?\\p{L}+| ?\\p{N}+| ?[^\\s\\p{L}\\p{N}]+|\\s+(?!\\S)|\\s+";

function byteLevel(addPrefixSpace: boolean, useRegex: boolean): PreTokenizer {
  const steps: PreTokenizer[] = [];
  if (addPrefixSpace) steps.push(prefixing(" ", () => true));
  if (useRegex) steps.push(matching(compilePattern(WORDS).source)); // every character is in some match
  return inOrder([...steps, changing(toByteLetters)]);
}

/** Puts `prefix` before pieces that do not begin with it, if `wanted`. */
const prefixing =
  (prefix: string, wanted: (atStart: boolean) => boolean): PreTokenizer =>
  ({ texts, atStart }) => {
    const adds = texts.map((text, i) => !text.startsWith(prefix) && wanted((atStart?.[i] ?? 0) > 0));
    return {
      texts: texts.map((text, i) => (adds[i] ? prefix + text : text)),
      atStart: atStart?.map((n, i) => (adds[i] && n > 0 ? n + prefix.length : n)),
    };
  };

function metaspace(part: Part): PreTokenizer {
  const sign = character(part, "replacement");
  const scheme = part.json["prepend_scheme"] ?? "always";
  if (part.json["add_prefix_space"] === false && scheme !== "never") throw unsupported(part);
  const steps: PreTokenizer[] = [changing((text) => text.replaceAll(" ", () => sign))];
  if (scheme === "always") steps.push(prefixing(sign, () => true));
  else if (scheme === "first") steps.push(prefixing(sign, (atStart) => atStart));
  else if (scheme !== "never") throw unsupported(part);
  if (flag(part, "split", true)) steps.push(atLiteral(sign, "MergedWithNext", false));
  return inOrder(steps);
}

/** Runs of one script. What stands before the first character of a known script is dropped, as in the library. */
function scriptRuns(): (text: string) => number[] {
  const scriptOf = scriptNumbers();
  return (text) => {
    const starts: number[] = [];
    let last = 0;
    for (let at = 0; at < text.length; ) {
      const code = text.codePointAt(at)!;
      const script = scriptOf(code);
      if (script !== 0) {
        if (script !== last) starts.push(at);
        last = script;
      }
      at += code > 0xffff ? 2 : 1;
    }
    return starts.flatMap((from, i) => [from, starts[i + 1] ?? text.length]);
  };
}

function fixedLength(length: number, part: Part): (text: string) => number[] {
  if (length === 0) throw unsupported(part);
  return (text) => {
    const out: number[] = [];
    let from = 0;
    let characters = 0;
    for (let at = 0; at < text.length; ) {
      at += text.codePointAt(at)! > 0xffff ? 2 : 1;
      if (++characters === length || at === text.length) {
        out.push(from, at);
        from = at;
        characters = 0;
      }
    }
    return out;
  };
}
