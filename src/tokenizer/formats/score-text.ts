/**
 * Text of a number that serde_json, in the way the Rust library uses it, reads as exactly this number. It makes an integer of the
 * digits, then divides it by a power of ten: of one number in ten the shortest text comes out with another last bit, and scores that
 * are equal no longer are. For one number in 500 there is no such text: the shortest one then.
 */
export function scoreText(score: number): string {
  const shortest = JSON.stringify(score);
  const size = Math.abs(score);
  if (Number.isInteger(score) || asSerde(shortest) === score) return shortest;
  for (let power = 22; power > 0; power--) {
    const near = size * 10 ** power;
    if (near >= 2 ** 63 || near < 2 ** 50) continue;
    for (const digits of [near, up(near, 1), up(near, -1)]) {
      if (Number.isInteger(digits) && digits / 10 ** power === size)
        return `${score < 0 ? "-" : ""}${BigInt(digits)}e-${power}`;
    }
  }
  return shortest;
}

/** What serde_json reads from digits with a fraction and an exponent. */
function asSerde(text: string): number {
  const [, sign, whole, fraction = "", exponent = "0"] = /^(-?)(\d+)(?:\.(\d+))?(?:e([+-]?\d+))?$/.exec(text) ?? [];
  const power = Number(exponent) - fraction.length;
  const digits = Number(`${whole}${fraction}`);
  const size = power < 0 ? digits / 10 ** -power : digits * 10 ** power;
  return sign ? -size : size;
}

/** The number `steps` last bits away, for whole numbers from 2^50 on. */
function up(number: number, steps: number): number {
  return number + steps * 2 ** Math.max(0, Math.floor(Math.log2(number)) - 52);
}
