import type { HashWords } from "../../src/engines/kv-events.ts";

/** Hashes as events have them. */
export const hashWords = (...hashes: readonly bigint[]): HashWords => new Int32Array(BigInt64Array.from(hashes).buffer);

/** The same the other way. */
export const hashesOf = (words: HashWords): BigInt64Array => new BigInt64Array(words.slice().buffer);
