/** 64 bits in two numbers, which the processor has at hand where a `bigint` would have to be made. */
export interface Halves {
  readonly low: number;
  readonly high: number;
}

export type Hash = bigint | Halves;

/** Those that `TextBuffer.digest` gives: of what a text begins with, and of all of it. */
export const startIn = (digest: Int32Array): Halves => ({ low: digest[0]!, high: digest[1]! });
export const wholeIn = (digest: Int32Array): Halves => ({ low: digest[2]!, high: digest[3]! });

export const bigOf = ({ low, high }: Halves): bigint => (BigInt(high >>> 0) << 32n) | BigInt(low >>> 0);

export const hashOf = (bytes: Uint8Array, seed: bigint): bigint => Bun.hash.xxHash3(bytes, seed);
