/** Sets of code points: ascending, disjoint half-open ranges, flat: from, to, from, to … */
export type Ranges = readonly number[];

const END = 0x110000;

export const NOTHING: Ranges = [];
export const EVERYTHING: Ranges = [0, END];

export function union(a: Ranges, b: Ranges): Ranges {
  const out: number[] = [];
  let i = 0;
  let j = 0;
  while (i < a.length || j < b.length) {
    const takeA = j >= b.length || (i < a.length && a[i]! <= b[j]!);
    const from = takeA ? a[i]! : b[j]!;
    const to = takeA ? a[i + 1]! : b[j + 1]!;
    if (takeA) i += 2;
    else j += 2;
    const last = out.length - 1;
    if (last > 0 && from <= out[last]!) out[last] = Math.max(out[last]!, to);
    else out.push(from, to);
  }
  return out;
}

export function complement(a: Ranges): Ranges {
  const out: number[] = [];
  let from = 0;
  for (let i = 0; i < a.length; i += 2) {
    if (a[i]! > from) out.push(from, a[i]!);
    from = a[i + 1]!;
  }
  if (from < END) out.push(from, END);
  return out;
}

export const intersection = (a: Ranges, b: Ranges): Ranges => complement(union(complement(a), complement(b)));

/** A class of these code points for a JS pattern with the flag `u`. */
export function classSource(a: Ranges): string {
  let out = "";
  for (let i = 0; i < a.length; i += 2) {
    out += escapedPoint(a[i]!);
    if (a[i + 1]! - a[i]! > 1) out += `-${escapedPoint(a[i + 1]! - 1)}`;
  }
  return `[${out}]`;
}

/** A code point as a JS pattern with the flag `u` writes it. */
export const escapedPoint = (code: number): string => `\\u{${code.toString(16)}}`;
