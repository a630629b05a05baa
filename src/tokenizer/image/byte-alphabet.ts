/** Marks code units that stand for no byte. */
export const NO_BYTE = 0xffff;

let table: Uint16Array | undefined;

/** Byte by code unit of the printable alphabet in which byte-level vocabularies are written (GPT-2's); `NO_BYTE` for others. */
export function byteAlphabet(): Uint16Array {
  if (table) return table;
  table = new Uint16Array(0x10000).fill(NO_BYTE);
  let next = 256;
  for (let b = 0; b < 256; b++) {
    const printable = (b >= 33 && b <= 126) || (b >= 161 && b <= 172) || b >= 174;
    table[printable ? b : next++] = b;
  }
  return table;
}
