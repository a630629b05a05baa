/** Arithmetic of vectors, in double precision. */

function dot(a: Float32Array, b: Float32Array): number {
  let sum = 0;
  for (let i = 0; i < a.length; i++) sum += a[i]! * b[i]!;
  return sum;
}

/** The first `size` numbers, scaled to length 1; a vector of zeros stays one. */
export function shortened(vector: Float32Array, size: number): Float32Array {
  const cut = vector.slice(0, size);
  const length = Math.sqrt(dot(cut, cut));
  return length === 0 ? cut : cut.map((value) => value / length);
}

/** Cosine of the angle between two vectors of one size, -1 to 1; 0 where one is all zeros. */
export function cosine(a: Float32Array, b: Float32Array): number {
  const lengths = Math.sqrt(dot(a, a)) * Math.sqrt(dot(b, b));
  return lengths === 0 ? 0 : Math.min(1, Math.max(-1, dot(a, b) / lengths));
}

/** Probabilities that add up to 1. */
export function softmax(logits: Float32Array): number[] {
  const highest = logits.reduce((most, value) => Math.max(most, value), Number.NEGATIVE_INFINITY);
  const powers = Array.from(logits, (value) => Math.exp(value - highest));
  const sum = powers.reduce((all, power) => all + power, 0);
  return powers.map((power) => power / sum);
}

/** A probability for each, independent of the others. */
export const sigmoid = (logits: Float32Array): number[] => Array.from(logits, (value) => 1 / (1 + Math.exp(-value)));
