/** Prints how much the resident memory grows, in bytes, with eight idle caches, and with one of them filled. */
import { createTokenizerCache, Level, openCacheBoard } from "../../../../src/tokenizer/cache/board.ts";
import { cacheStats } from "../../../../src/tokenizer/cache/stats.ts";

const settings = { l0: true, l1: true, l0Entries: 10_000, bytes: 52_428_800 };
const text = Buffer.alloc(32_000, "text ");
const ids = new Uint32Array(8000);
const grown = (before: number): number => process.memoryUsage().rss - before;

// what the code itself takes comes before
const small = openCacheBoard(createTokenizerCache({ ...settings, bytes: 1_000_000 }));
for (let i = 0; i < 1000; i++) small.put(Level.l0, BigInt(i), small.append(text, ids), text.length, ids.length);
Bun.gc(true);

const before = process.memoryUsage().rss;
const memories = Array.from({ length: 8 }, () => createTokenizerCache(settings));
for (const memory of memories) cacheStats(memory);
const idle = grown(before);
const board = openCacheBoard(memories[0]!);
for (let i = 0; i < 3000; i++) board.put(Level.l0, BigInt(i) << 32n, board.append(text, ids), text.length, ids.length);
console.log(JSON.stringify({ idle, full: grown(before), bytes: board.bytes(Level.l0, 0) }));
