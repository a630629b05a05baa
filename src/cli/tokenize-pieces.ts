/** How a terminal shows tokens: each piece of text on a ground of its own, the ids below. */
import type { Tokenizer } from "../tokenizer/tokenizer.ts";

/** Grounds that take turns (256 colours), and one for special tokens; dark letters on all of them. */
const GROUNDS = [153, 157, 223, 218, 189];
const SPECIAL_GROUND = 210;
const LETTERS = 16;
const RESET = "\u001b[0m";
const NAMES: Readonly<Record<string, string>> = { "\n": "\\n", "\r": "\\r", "\t": "\\t" };

/** Text of one token; a part of a character is U+FFFD. */
export function pieceText(tokenizer: Tokenizer, id: number): string {
  return Buffer.from(tokenizer.tokenBytes(id)).toString("utf8");
}

/** Tokens for a terminal, with a line end. Without colours a bar stands between pieces. */
export function drawTokens(ids: Uint32Array, tokenizer: Tokenizer, colours: boolean): string {
  let out = "";
  for (const [i, id] of ids.entries()) {
    const text = shown(tokenizer.tokenBytes(id));
    if (colours) {
      const ground = tokenizer.isSpecial(id) ? SPECIAL_GROUND : GROUNDS[i % GROUNDS.length];
      out += `\u001b[48;5;${ground};38;5;${LETTERS}m${text}${RESET}`;
    } else out += (i === 0 ? "" : "|") + text;
    if (text.endsWith("\\n")) out += "\n";
  }
  const count = `${ids.length} token${ids.length === 1 ? "" : "s"}`;
  return `${out}${out === "" || out.endsWith("\n") ? "" : "\n"}${[...ids].join(" ")}${ids.length > 0 ? "\n" : ""}${count}\n`;
}

/** A token as visible text: nothing in it may steer the terminal, and bytes that are no characters show as what they are. */
function shown(bytes: Uint8Array): string {
  let text: string;
  try {
    text = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true }).decode(bytes.slice());
  } catch {
    return Array.from(bytes, (byte) => `\\x${byte.toString(16).padStart(2, "0")}`).join("");
  }
  return text.replace(
    /[\p{Cc}\p{Cf}\p{Co}\p{Cn}\p{Zl}\p{Zp}]/gu,
    (c) => NAMES[c] ?? `\\u{${c.codePointAt(0)!.toString(16)}}`,
  );
}
