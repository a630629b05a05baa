/** Hashes of 64 bits as words, the lower of each first: numbers are cheaper than bigints. */
export const wordsOf = ({ buffer, byteOffset, length }: BigInt64Array): Int32Array =>
  new Int32Array(buffer, byteOffset, 2 * length);
