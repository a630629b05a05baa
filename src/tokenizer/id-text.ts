/** Most bytes that `writeIds` needs for one id: ten digits and a comma. */
export const ID_BYTES = 11;

const COMMA = 44;
/** Digits of 0 to 9999, four bytes each. */
const FOUR = new Uint8Array(40_000);
for (let n = 0; n < 10_000; n++)
  for (let i = 0, d = 1000; i < 4; i++, d /= 10) FOUR[n * 4 + i] = 48 + (((n / d) % 10) | 0);

/** Writes `ids[from, to)` as decimal numbers with commas between them, in ASCII, to `out` from `at` on; gives where they end. */
export function writeIds(ids: Uint32Array, from: number, to: number, out: Uint8Array, at: number): number {
  let end = at;
  for (let i = from; i < to; i++) {
    if (i > from) out[end++] = COMMA;
    const id = ids[i]!;
    if (id < 10_000) end = first(id, out, end);
    else if (id < 100_000_000) {
      const high = (id / 10_000) | 0;
      end = four(id - high * 10_000, out, first(high, out, end));
    } else {
      const high = (id / 100_000_000) | 0;
      const low = id - high * 100_000_000;
      const middle = (low / 10_000) | 0;
      end = four(low - middle * 10_000, out, four(middle, out, first(high, out, end)));
    }
  }
  return end;
}

/** The leading digits: no zeros in front. */
function first(n: number, out: Uint8Array, at: number): number {
  let end = at;
  const digits = n * 4;
  if (n >= 1000) out[end++] = FOUR[digits]!;
  if (n >= 100) out[end++] = FOUR[digits + 1]!;
  if (n >= 10) out[end++] = FOUR[digits + 2]!;
  out[end++] = FOUR[digits + 3]!;
  return end;
}

function four(n: number, out: Uint8Array, at: number): number {
  const digits = n * 4;
  out[at] = FOUR[digits]!;
  out[at + 1] = FOUR[digits + 1]!;
  out[at + 2] = FOUR[digits + 2]!;
  out[at + 3] = FOUR[digits + 3]!;
  return at + 4;
}
