/** NFC, NFD, NFKC and NFKD as the Rust library has them. */
import { combiningClasses } from "./characters.ts";
import { type Change, unitsFromStart } from "./from-start.ts";

export type Form = "NFC" | "NFD" | "NFKC" | "NFKD";

/**
 * The library's tables are older than the JS engine's. To it the code points below are plain starters in all four forms: nothing
 * composes with them and no mark moves across them. Found by asking `tokenizers` 0.23.3 about every code point with Bun 1.4.5
 * (test/golden/tokenizer-general/make_newer.ts); everywhere else the engine's single characters are equal.
 */
const INERT = `7FD 897-89F 8CA-8D3 9FE C3C D3B-D3C EBA 1715 1ABF-1ADD 1AE0-1AEB 1DF6-1DFA 32FF A7F1-A7F4 A82C AB69 105C9
105D2 105DA 105E4 10781-10785 10787-107B0 107B2-107BA 10D24-10D27 10D69-10D6D 10EAB-10EAC 10EFA-10EFB 10EFD-10EFF 10F46-10F50
10F82-10F85 11070 1133B 11382-11385 1138B 1138E 11390-11391 113B8 113BB 113C2 113C5 113C7-113C9 113CE-113D0 1145E 11839-1183A
11930 11935 11938 1193D-1193E 11943 119E0 11A34 11A47 11A99 11D42 11D44-11D45 11D97 11F41-11F42 1611E-16129 1612F 16D63
16D67-16D6A 16FF0-16FF1 1CCD6-1CCF9 1E030-1E06D 1E08F 1E130-1E136 1E2AE 1E2EC-1E2EF 1E4EC-1E4EF 1E5EE-1E5EF 1E6E3 1E6E6
1E6EE-1E6EF 1E6F5 1F16C 1FBF0-1FBF9`;
const escaped = INERT.split(/\s+/).map((range) => range.replace(/[0-9A-F]+/g, (hex) => `\\u{${hex}}`));
const inert = new RegExp(`[${escaped.join("")}]`, "u");
const inertAll = new RegExp(inert, "gu");
const inertOnce = new RegExp(`(${inert.source})`, "u");

/** The engine takes quadratic time for a run of marks that are out of order. */
const LONG_RUN = 64;
/** Every mark with a combining class is an \p{M}, or one of two that become such; some starters do no harm here. */
const longRun = new RegExp(`[\\p{M}\uFF9E\uFF9F]{${LONG_RUN},}`, "u");
const beyondAscii = /[^\0-\x7f]/;

/** The normal form of a text, in linear time. */
export function normalForm(form: Form, text: string): string {
  if (!beyondAscii.test(text)) return text;
  if (!inert.test(text)) return part(form, text);
  let out = "";
  let from = 0;
  for (const match of text.matchAll(inertAll)) {
    out += part(form, text.slice(from, match.index)) + match[0];
    from = match.index + match[0].length;
  }
  return out + part(form, text.slice(from));
}

const part = (form: Form, text: string): string => (longRun.test(text) ? ordered(form, text) : text.normalize(form));

/** The same for long runs of marks: character by character, with a sort of our own. */
const ordered = (form: Form, text: string): string =>
  characters(form, text)
    .map(({ text }) => text)
    .join("");

interface Character {
  text: string;
  readonly combiningClass: number;
  /** As in `Change`. */
  change: number;
}

const decompose = {
  NFD: remembered((c) => c.normalize("NFD")),
  NFKD: remembered((c) => c.normalize("NFKD")),
};

/** A normal form character by character. The text has no inert ones. */
function characters(form: Form, text: string): Character[] {
  const classOf = combiningClasses();
  const decomposed = decompose[form === "NFC" || form === "NFD" ? "NFD" : "NFKD"];
  const out: Character[] = [];
  let marks: Character[] = [];
  const flush = (): void => {
    marks.sort((a, b) => a.combiningClass - b.combiningClass); // stable
    for (const mark of marks) out.push(mark);
    marks = [];
  };
  for (const c of text) {
    let change = 0;
    for (const d of decomposed(c)) {
      const made = { text: d, combiningClass: classOf(d.codePointAt(0)!), change };
      change = 1;
      if (made.combiningClass > 0) marks.push(made);
      else {
        flush();
        out.push(made);
      }
    }
  }
  flush();
  return form === "NFC" || form === "NFKC" ? composed(out) : out;
}

/** What two characters compose to, or "". */
const pair = remembered((text) => {
  const whole = text.normalize("NFC");
  const single = whole.length === (whole.codePointAt(0)! > 0xffff ? 2 : 1);
  return single && whole !== text ? whole : "";
});

/** Canonical composition of characters in canonical order: a mark joins the last starter if none of its class stayed between. */
function composed(characters: readonly Character[]): Character[] {
  const out: Character[] = [];
  let starter = -1;
  let last = 0;
  for (const c of characters) {
    const free = starter >= 0 && (out.length === starter + 1 || last < c.combiningClass);
    const whole = free ? pair(out[starter]!.text + c.text) : "";
    if (whole !== "") {
      out[starter]!.text = whole;
      out[starter]!.change += c.change - 1;
      continue;
    }
    if (c.combiningClass === 0) starter = out.length;
    last = c.combiningClass;
    out.push(c);
  }
  return out;
}

/** Starters that can compose with one another, and one more. */
const STARTERS = 4;

/**
 * Of a text whose first `length` units come from the start of an older one: how many units of its normal form the library takes to come
 * from there. It counts characters in their new order.
 */
export function normalFormLength(form: Form, text: string, length: number): number {
  const from = [...text.slice(0, length)].length;
  let end = 0;
  let starters = 0;
  const classOf = combiningClasses();
  for (const c of text) {
    if (end >= length && classOf(c.codePointAt(0)!) === 0 && ++starters > STARTERS) break;
    end += c.length;
  }
  const changes = withInert(form, text.slice(0, end)).map((c): Change => [c.text.length, c.change]);
  return unitsFromStart(changes, from);
}

function withInert(form: Form, text: string): Character[] {
  return text
    .split(inertOnce)
    .flatMap((part, i) => (i % 2 === 0 ? characters(form, part) : { text: part, combiningClass: 0, change: 0 }));
}

function remembered(make: (key: string) => string): (key: string) => string {
  const known = new Map<string, string>();
  return (key) => {
    let value = known.get(key);
    if (value === undefined) {
      if (known.size >= 4096) known.clear();
      value = make(key);
      known.set(key, value);
    }
    return value;
  };
}
