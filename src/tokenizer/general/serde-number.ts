/**
 * Numbers as serde_json reads them without its exact mode: the digits become an integer, which is then multiplied or divided by a
 * power of ten. One in ten scores of a Unigram model differs in its last bit from the nearest number, and ties with it.
 */
export interface NumberText {
  readonly negative: boolean;
  readonly whole: string;
  readonly fraction: string;
  readonly exponent: number;
}

const MOST = 2n ** 64n - 1n;

export function numberValue({ negative, whole, fraction, exponent }: NumberText): number {
  let digits = whole + fraction;
  let power = exponent - fraction.length;
  if (digits.length > 19) {
    // digits that do not fit in 64 bits are dropped
    let value = 0n;
    let kept = 0;
    for (; kept < digits.length; kept++) {
      const more = value * 10n + BigInt(digits[kept]!);
      if (more > MOST) break;
      value = more;
    }
    power += digits.length - kept;
    digits = String(value);
  }
  const value = scaled(Number(digits), power);
  return negative ? -value : value;
}

function scaled(significand: number, exponent: number): number {
  let value = significand;
  let power = exponent;
  while (Math.abs(power) > 308) {
    if (value === 0 || power > 0) return value === 0 ? 0 : Number.POSITIVE_INFINITY;
    value /= 1e308;
    power += 308;
  }
  return power >= 0 ? value * POWERS[power]! : value / POWERS[-power]!;
}

const POWERS = Float64Array.from({ length: 309 }, (_, k) => Number(`1e${k}`));
