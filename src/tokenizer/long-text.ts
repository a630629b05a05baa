/**
 * Long texts are encoded in parts, so that a thread's buffers stay small. A cut between an ASCII letter and a space after it is
 * exact: no pre-tokenizer pattern has a piece that goes on from a letter to a space or looks beyond it, NFC moves nothing across
 * it, and the caller sees to it that no added token and no merge lies across (`maySplit`).
 */

/** UTF-16 units of a part, about. */
const PART = 1 << 18;

/** Calls `visit` with the parts of a text in order. Where a text has no place to cut, a part is longer. */
export function eachPart(text: string, visit: (part: string) => void, size = PART): void {
  let from = 0;
  while (text.length - from > size) {
    const cut = cutBefore(text, from, from + size) ?? cutAfter(text, from + size);
    if (cut === undefined) break;
    visit(text.slice(from, cut));
    from = cut;
  }
  visit(from === 0 ? text : text.slice(from));
}

/** Is a text longer than one part? */
export const isLong = (text: string): boolean => text.length > PART;

function cutBefore(text: string, from: number, to: number): number | undefined {
  for (let i = to; i > from + 1; i--) if (isCut(text, i)) return i;
  return undefined;
}

function cutAfter(text: string, from: number): number | undefined {
  for (let i = from; i < text.length; i++) if (isCut(text, i)) return i;
  return undefined;
}

const isCut = (text: string, at: number): boolean => text.charCodeAt(at) === 0x20 && isLetter(text.charCodeAt(at - 1));

const isLetter = (unit: number): boolean => (unit | 0x20) >= 0x61 && (unit | 0x20) <= 0x7a;

/** May texts be cut, with these added tokens and (where there is no pre-tokenizer) these merges? */
export function maySplit(addedTokens: Iterable<string>, joins: (a: number, b: number) => boolean): boolean {
  for (const token of addedTokens) if (/[A-Za-z] /.test(token)) return false;
  for (let letter = 0; letter < 128; letter++) if (isLetter(letter) && joins(letter, 0x20)) return false;
  return true;
}
