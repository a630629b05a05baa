import { Grapheme, graphemeOf, signatures } from "./characters.ts";

const { any, incb, joins, linker, control, prepend, pictographic, consonant, l, v, t, lv, lvt } = Grapheme;
const CR = 13;
const LF = 10;
const ZWJ = 0x200d;

/** Walks over a text; `visit` gets the places of each extended grapheme cluster, but for the pairs of flags, which no one needs. */
export function eachGrapheme(text: string, visit: (from: number, to: number) => void): void {
  const signature = signatures();
  let from = 0;
  let before = -1;
  let kind: number = any;
  /** A consonant, then linkers and their like, with a linker among them: 0 none, 1 consonant, 2 linker seen. */
  let conjunct = 0;
  /** A pictograph, then extending characters: 0 none, 1 so far, 2 ZWJ after it. */
  let emoji = 0;
  for (let at = 0; at < text.length; ) {
    const code = text.codePointAt(at)!;
    const now = graphemeOf(signature(code));
    const extending = now === incb || now === linker || code === ZWJ;
    const attached =
      before >= 0 &&
      (before === CR && code === LF
        ? true
        : kind === control || now === control
          ? false
          : extending ||
            now === joins ||
            kind === prepend ||
            (now === consonant && conjunct === 2) ||
            (now === pictographic && emoji === 2) ||
            hangul(kind, now));
    if (before >= 0 && !attached) {
      visit(from, at);
      from = at;
    }
    if (now === consonant) conjunct = 1;
    else if (now === linker && conjunct > 0) conjunct = 2;
    else if (!extending) conjunct = 0;
    if (now === pictographic) emoji = 1;
    else if (code === ZWJ && emoji > 0) emoji = 2;
    else if (emoji > 0 && (now === incb || now === linker || now === joins)) emoji = 1;
    else emoji = 0;
    before = code;
    kind = now;
    at += code > 0xffff ? 2 : 1;
  }
  if (before >= 0) visit(from, text.length);
}

function hangul(before: number, now: number): boolean {
  if (before === l) return now === l || now === v || now === lv || now === lvt;
  if (before === lv || before === v) return now === v || now === t;
  return (before === lvt || before === t) && now === t;
}
