/**
 * NFC as the Rust `tokenizers` library does it. Its tables are older than the JS engine's: the 166 code points below are plain
 * starters to it, so nothing composes with them and no mark moves across them.
 * Found by asking `tokenizers` 0.23.2 about every code point with Bun 1.4.5.
 */
const NEWER = `7FD 897-89F 8CA-8D3 9FE C3C D3B-D3C EBA 1715 1ABF-1ADD 1AE0-1AEB 1DF6-1DFA A82C 105D2 105DA 10D24-10D27
10D69-10D6D 10EAB-10EAC 10EFA-10EFB 10EFD-10EFF 10F46-10F50 10F82-10F85 11070 1133B 11382 11384 1138B 11390 113C2
113CE-113D0 1145E 11839-1183A 11935 1193D-1193E 11943 119E0 11A34 11A47 11A99 11D42 11D44-11D45 11D97 11F41-11F42
1611E 16129 1612F 16D63 16D67 16FF0-16FF1 1E08F 1E130-1E136 1E2AE 1E2EC-1E2EF 1E4EC-1E4EF 1E5EE-1E5EF 1E6E3 1E6E6
1E6EE-1E6EF 1E6F5`;
const escaped = NEWER.split(/\s+/).map((range) => range.replace(/[0-9A-F]+/g, (hex) => `\\u{${hex}}`));
const newer = new RegExp(`[${escaped.join("")}]`, "u");
const newerAll = new RegExp(newer, "gu");

/** NFC of `text` by the Rust library's tables. */
export function rustNfc(text: string): string {
  if (!newer.test(text)) return nfc(text);
  let out = "";
  let from = 0;
  for (const match of text.matchAll(newerAll)) {
    out += nfc(text.slice(from, match.index)) + match[0];
    from = match.index + match[0].length;
  }
  return out + nfc(text.slice(from));
}

const longRun = /\p{M}{17,}/u;
const longRuns = new RegExp(longRun, "gu");
const sameMark = /^(.)\1*$/su;

/** Has the text more marks in a row than real text has? Such runs are put in order by hand, which takes longer. */
export const hasLongRuns = (text: string): boolean => longRun.test(text);

/** The engine's NFC. It takes quadratic time to put a run of different marks in order, so long ones are given to it in order. */
const nfc = (text: string): string =>
  (hasLongRuns(text) ? text.replace(longRuns, (run) => inOrder(run)) : text).normalize("NFC");

const decomposed = (text: string): string => text.normalize("NFD");

/** Is a mark of a higher class than another one, and neither of class 0? Only then they change places. */
const isAbove = (a: string, b: string): boolean => a !== b && decomposed(a + b) === b + a;

/** A class of marks, by one of them, and its place among the classes met so far. */
interface MarkClass {
  readonly mark: string;
  rank: number;
}
const classes: MarkClass[] = [];
// of the lowest and of the highest class
const [OVERLAY, IOTA] = ["\u0334", "\u0345"];
const isStarter = (c: string): boolean => c !== OVERLAY && c !== IOTA && !isAbove(c, OVERLAY) && !isAbove(IOTA, c);

/** Parts of a mark: what it decomposes to, each with its class (undefined: class 0). At most as many as there are marks. */
const known = new Map<string, readonly [string, MarkClass | undefined][]>();
function partsOf(mark: string): readonly [string, MarkClass | undefined][] {
  let parts = known.get(mark);
  if (parts === undefined) {
    parts = [...decomposed(mark)].map((part) => [part, isStarter(part) ? undefined : classOf(part)]);
    known.set(mark, parts);
  }
  return parts;
}

function classOf(mark: string): MarkClass {
  let at = 0;
  while (at < classes.length && isAbove(mark, classes[at]!.mark)) at++;
  const found = classes[at];
  if (found !== undefined && !isAbove(found.mark, mark)) return found;
  const made = { mark, rank: at };
  classes.splice(at, 0, made);
  for (const [rank, one] of classes.entries()) one.rank = rank;
  return made;
}

/** A run of marks, decomposed and in canonical order. */
function inOrder(run: string): string {
  if (sameMark.test(run)) return run;
  for (const mark of run) partsOf(mark); // no rank changes from here on
  let out = "";
  let rows: string[] = [];
  for (const mark of run) {
    for (const [part, { rank } = { rank: -1 }] of partsOf(mark)) {
      if (rank < 0) {
        out += rows.join("") + part;
        rows = [];
      } else rows[rank] = (rows[rank] ?? "") + part;
    }
  }
  return out + rows.join("");
}
