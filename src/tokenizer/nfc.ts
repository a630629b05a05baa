import { TokenizerError } from "./tokenizer.ts";

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

/** Putting a run of different marks in order takes the engine quadratic time; real text has a handful in a row. */
const MOST_MARKS = 256;
const marks = /\p{M}+/gu;

/** NFC of `text` by the Rust library's tables. Throws TokenizerError for a text with more than 256 different marks in a row. */
export function rustNfc(text: string): string {
  for (const [run] of text.matchAll(marks))
    if (run.length > MOST_MARKS && new Set(run).size > 1)
      throw new TokenizerError(`the text has more than ${MOST_MARKS} combining marks in a row`);
  if (!newer.test(text)) return text.normalize("NFC");
  let out = "";
  let from = 0;
  for (const match of text.matchAll(newerAll)) {
    out += text.slice(from, match.index).normalize("NFC") + match[0];
    from = match.index + match[0].length;
  }
  return out + text.slice(from).normalize("NFC");
}
