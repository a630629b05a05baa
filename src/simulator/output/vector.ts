/**
 * A vector of length 1 that stands for a text: each token has a direction of its own, and the text's is that of their sum. So equal texts
 * have equal vectors, texts that share many tokens near ones, and others are about at right angles. `special` tokens do not count unless
 * there are no others.
 */
export function unitVector(ids: Uint32Array, dimensions: number, special: ReadonlySet<number>): Float32Array {
  const words = ids.filter((id) => !special.has(id));
  const sum = new Float64Array(dimensions);
  for (const id of words.length > 0 ? words : ids) addDirection(id, sum);
  const length = Math.sqrt(sum.reduce((all, value) => all + value * value, 0));
  return Float32Array.from(sum, (value) => value / length);
}

/** Numbers from -1 to 1 by the generator "mulberry32", seeded with the id. */
function addDirection(id: number, sum: Float64Array): void {
  let state = Math.imul(id + 1, 0x9e3779b1);
  for (let i = 0; i < sum.length; i++) {
    state = (state + 0x6d2b79f5) | 0;
    let bits = Math.imul(state ^ (state >>> 15), state | 1);
    bits ^= bits + Math.imul(bits ^ (bits >>> 7), bits | 61);
    sum[i] = sum[i]! + ((bits ^ (bits >>> 14)) >>> 0) / 2 ** 31 - 1;
  }
}
