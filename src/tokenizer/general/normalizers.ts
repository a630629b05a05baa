/** The `normalizer` of a tokenizer.json. */
import { toByteLetters } from "./byte-level.ts";
import { Is, rangesWhere } from "./characters.ts";
import { type CharsmapTables, charsmap } from "./charsmap.ts";
import { type Change, unitsFromStart } from "./from-start.ts";
import { flag, type Part, partOf, parts, pattern, text, typeOf, unsupported } from "./json-part.ts";
import { type Form, normalForm, normalFormLength } from "./normal-forms.ts";
import { compilePattern, findMatches } from "./pattern.ts";
import { classSource, type Ranges, union } from "./ranges.ts";

/**
 * A section of a text on its way. `atStart`: how many UTF-16 units at its beginning come from the very first character of the whole
 * text: Metaspace's `first` asks for it.
 */
export interface Section {
  text: string;
  atStart: number;
}

export type Normalizer = (section: Section) => void;

/** The normalizer of this JSON value; `maps` are the charsmaps, which stand as numbers in it. Throws `TokenizerError`. */
export function normalizer(json: unknown, maps: readonly CharsmapTables[]): Normalizer {
  if (json === null || json === undefined) return () => {};
  return make(partOf("normalizer", json), maps);
}

/** A normalizer that makes of each character something that does not depend on its neighbours. */
const characterwise =
  (change: (text: string) => string): Normalizer =>
  (section) => {
    if (section.atStart > 0) section.atStart = change(section.text.slice(0, section.atStart)).length;
    section.text = change(section.text);
  };

const inOrder =
  (steps: readonly Normalizer[]): Normalizer =>
  (section) => {
    for (const step of steps) step(section);
  };

const normalFormOf =
  (form: Form): Normalizer =>
  (section) => {
    if (section.atStart > 0) section.atStart = normalFormLength(form, section.text, section.atStart);
    section.text = normalForm(form, section.text);
  };

function make(part: Part, maps: readonly CharsmapTables[]): Normalizer {
  switch (typeOf(part)) {
    case "Sequence":
      return inOrder(parts(part, "normalizers").map((p) => make(p, maps)));
    case "NFC":
    case "NFD":
    case "NFKC":
    case "NFKD":
      return normalFormOf(typeOf(part) as Form);
    case "Lowercase":
      return characterwise(lowerCase);
    case "StripAccents":
      return characterwise(removing(where(Is.combining)));
    case "Nmt":
      return characterwise(nmt());
    case "ByteLevel":
      return characterwise(toByteLetters);
    case "BertNormalizer":
      return bert(part);
    case "Strip":
      return strip(flag(part, "strip_left"), flag(part, "strip_right"));
    case "Prepend":
      return prepend(text(part, "prepend"));
    case "Replace":
      return replace(part);
    case "Precompiled": {
      const map = maps[Number(part.json["precompiled_charsmap"])];
      if (!map) throw unsupported(part);
      return precompiled(map);
    }
    default:
      throw unsupported(part);
  }
}

/** Small letters as Rust's `char::to_lowercase` has them: by itself each, so that a final sigma is an ordinary one. */
const lowerCase = (s: string): string => s.replace(/Σ/g, "σ").toLowerCase();

const where = (bit: number): Ranges => rangesWhere((s) => (s & bit) !== 0);

function removing(ranges: Ranges): (text: string) => string {
  const some = new RegExp(`${classSource(ranges)}+`, "gu");
  return (s) => s.replace(some, "");
}

/** What Nmt removes, and what is a space to it. */
const NMT_REMOVED: Ranges = [1, 9, 0xb, 0xc, 0xe, 0x20, 0x7f, 0x80, 0x8f, 0x90, 0x9f, 0xa0];
const nmtSpaces = /[\t\n\f\r\u1680\u200b-\u200f\u2028\u2029\u2581\ufeff\ufffd]/g;

function nmt(): (text: string) => string {
  const remove = removing(NMT_REMOVED);
  return (s) => remove(s).replace(nmtSpaces, " ");
}

const ideographs =
  /[\u4e00-\u9fff\u3400-\u4dbf\u{20000}-\u{2a6df}\u{2a700}-\u{2b73f}\u{2b740}-\u{2b81f}\u{2b920}-\u{2ceaf}\uf900-\ufaff\u{2f800}-\u{2fa1f}]/gu;

function bert(part: Part): Normalizer {
  const lower = flag(part, "lowercase");
  const steps: Normalizer[] = [];
  if (flag(part, "clean_text")) {
    const clean = removing(union(where(Is.control), [0, 1, 0xfffd, 0xfffe]));
    const white = new RegExp(classSource(where(Is.white)), "gu");
    steps.push(characterwise((s) => clean(s).replace(white, " ")));
  }
  if (flag(part, "handle_chinese_chars")) steps.push(characterwise((s) => s.replace(ideographs, " $& ")));
  const accents = part.json["strip_accents"] ?? lower;
  if (typeof accents !== "boolean") throw unsupported(part);
  if (accents) steps.push(normalFormOf("NFD"), characterwise(removing(where(Is.mark))));
  if (lower) steps.push(characterwise(lowerCase));
  return inOrder(steps);
}

function strip(left: boolean, right: boolean): Normalizer {
  const white = classSource(where(Is.white));
  const start = new RegExp(`^${white}+`, "u");
  const one = new RegExp(white, "u");
  return (section) => {
    if (left) {
      const length = start.exec(section.text)?.[0].length ?? 0;
      section.text = section.text.slice(length);
      section.atStart = Math.max(0, section.atStart - length);
    }
    if (right) {
      let end = section.text.length;
      while (end > 0 && one.test(section.text[end - 1]!)) end--; // white space is in the basic plane
      section.text = section.text.slice(0, end);
      section.atStart = Math.min(section.atStart, end);
    }
  };
}

const prepend =
  (prefix: string): Normalizer =>
  (section) => {
    if (section.text === "") return;
    section.text = prefix + section.text;
    if (section.atStart > 0) section.atStart += prefix.length;
  };

function replace(part: Part): Normalizer {
  const content = text(part, "content");
  const wanted = pattern(part);
  const find = "literal" in wanted ? literalMatches(wanted.literal) : expressionMatches(wanted.expression);
  return (section) => {
    if (section.text !== "") replaceAt(section, find(section.text), content);
  };
}

const literalMatches =
  (wanted: string) =>
  (s: string): number[] => {
    const out: number[] = [];
    for (let at = s.indexOf(wanted); at >= 0; at = s.indexOf(wanted, at + wanted.length))
      out.push(at, at + wanted.length);
    return out;
  };

function expressionMatches(expression: string): (s: string) => number[] {
  const compiled = compilePattern(expression);
  return (s) => findMatches(compiled, s);
}

/** Puts `content` for the matches (flat pairs). It counts as coming from where the last replaced character came from. */
function replaceAt(section: Section, matches: readonly number[], content: string): void {
  if (matches.length === 0) return;
  const { text, atStart } = section;
  let out = "";
  let at = 0;
  let fromStart = 0;
  for (let i = 0; i < matches.length; i += 2) {
    const [from, to] = [matches[i]!, matches[i + 1]!];
    out += text.slice(at, from);
    if (at < atStart) fromStart += Math.min(from, atStart) - at;
    out += content;
    if (atStart > 0 && to <= atStart) fromStart += content.length;
    at = to;
  }
  if (at < atStart) fromStart += atStart - at;
  section.text = out + text.slice(at);
  section.atStart = fromStart;
}

function precompiled(map: CharsmapTables): Normalizer {
  const visitRules = charsmap(map);
  return (section) => {
    const { text, atStart } = section;
    let out = "";
    let at = 0;
    let changed = false;
    const changes: Change[] = [];
    const far = atStart + 16;
    const kept = (from: number, to: number): void => {
      out += text.slice(from, to);
      if (atStart > 0 && from < far) for (const c of text.slice(from, Math.min(to, far))) changes.push([c.length, 0]);
    };
    visitRules(text, (from, to, made) => {
      kept(at, from);
      out += made;
      if (atStart > 0 && from < far) replaced(changes, [...text.slice(from, to)].length, [...made]);
      changed = true;
      at = to;
    });
    if (!changed) return;
    kept(at, text.length);
    section.text = out;
    section.atStart = unitsFromStart(changes, [...text.slice(0, atStart)].length);
  };
}

/** How the library counts the characters that stand for `old` ones: what is too many is an addition, what is too few the last one's. */
function replaced(changes: Change[], old: number, made: readonly string[]): void {
  for (const [i, c] of made.entries()) changes.push([c.length, i < old ? 0 : 1]);
  const last = changes.at(-1);
  if (made.length < old && last) last[1] -= old - made.length;
}
