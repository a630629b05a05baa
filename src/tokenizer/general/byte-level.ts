/** Text as the letters that stand for its bytes in byte-level vocabularies. */
import { byteAlphabet, NO_BYTE } from "../image/byte-alphabet.ts";

const utf8 = new TextEncoder();
let letters: string[] | undefined;

function lettersByByte(): string[] {
  if (!letters) {
    letters = new Array<string>(256).fill("");
    const alphabet = byteAlphabet();
    for (let unit = 0; unit < alphabet.length; unit++)
      if (alphabet[unit] !== NO_BYTE) letters[alphabet[unit]!] = String.fromCharCode(unit);
  }
  return letters;
}

/** Nothing but printable ASCII: such a text stands for itself. */
const itself = /^[!-~]*$/;

export function toByteLetters(text: string): string {
  if (itself.test(text)) return text;
  const table = lettersByByte();
  let out = "";
  for (const byte of utf8.encode(text)) out += table[byte]!;
  return out;
}

/** The bytes that letters stand for; undefined if there is another character. */
export function fromByteLetters(text: string): Uint8Array | undefined {
  const alphabet = byteAlphabet();
  const out = new Uint8Array(text.length);
  for (let i = 0; i < text.length; i++) {
    const byte = alphabet[text.charCodeAt(i)]!;
    if (byte === NO_BYTE) return undefined;
    out[i] = byte;
  }
  return out;
}
