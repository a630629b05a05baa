/**
 * Where everything of the prefix index lies in its memory, which all threads share. This is the layout's one home: TypeScript asks for
 * addresses. All of them, and all sizes, are bytes.
 *
 *     header   counts, and where the parts lie; the first 64 bytes say how large it shall be, and are TypeScript's
 *     members  two bitmaps, then [slot + 1, rank, generation] of each
 *     table    finds a segment by the key of its first block: lines of four entries
 *     records  segments: up to ten blocks that follow each other in a chain
 *     rows     positions of blocks by the hashes that engines have for them
 *     sets     [hash, size, uses, next] of each, their bits, and the table in which they are found
 *     rings    what each thread has promised, for other gateways
 *
 * Behind all that, each thread that opens the memory adds room of its own.
 */

/** Blocks of a segment at most, and of a group: a chain's blocks 0 to 9, 10 to 19... No segment goes on into another group. */
export const GROUP: u32 = 10;

export const MAX_MEMBERS: u32 = 1024;
export const MEMBER_WORDS: u32 = 32;

// Header. What is written often does not lie in one line with what is read often.
/** 0 = free; else the number of the thread that writes, plus one. */
export const LOCK: usize = 64;
/** Counts what makes ids of sets mean something else than before. */
export const VERSION: usize = 128;
/** Seconds since 1970, as somebody last told. */
export const CLOCK: usize = 132;
/** Members are below this number. */
export const MEMBERS_END: usize = 136;
export const EVICTED: usize = 140;
export const DROPPED: usize = 192;
export const BLOCKS: usize = 196;
/** Segments that are in use. */
export const USED: usize = 200;
/** Segment at which the search for an old one goes on, and that at which the sweep does. */
export const OLD_HAND: usize = 204;
export const HAND: usize = 208;
/** Sets that were ever made: their ids are 1 to this. */
export const SETS_MADE: usize = 212;
/** First of those that were given up, which are a list. */
export const FIRST_FREE: usize = 216;
export const FREE_SETS: usize = 220;
/** Sets that no block has, and that were not given up yet. */
export const IDLE_SETS: usize = 224;
export const LAST_CLAIMED: usize = 228;
/** Segments that were ever used, and the first of those that are free again, plus one: they are a list. */
export const MADE: usize = 232;
export const FREE: usize = 236;
// Written once: numbers of things, and where the parts lie.
const STATE: usize = 252;
const NEW: u32 = 0;
const BEGUN: u32 = 1;
const DONE: u32 = 2;
const FAILED: u32 = 3;
const THREADS: usize = 256;
const SEGMENTS: usize = 260;
const SETS: usize = 264;
const PARTS: usize = 268; // nine addresses

/** Bits of the members that are there, and of those that send events. */
export const LIVE: usize = 512;
export const EXACT: usize = 640;
export const MEMBERS: usize = 1024;
export const MEMBER: usize = 16;

/** Caches whose blocks engines name by hashes of their own: a byte each. */
export const CACHES: usize = MEMBERS + <usize>MAX_MEMBERS * MEMBER;
export const MAX_CACHES: u32 = 2048;

/** A line of the table: [tags, checks of the last keys, sets, segments] of four entries each. */
export const LINE: usize = 64;
export const LASTS: usize = 16;
export const ENTRY_SETS: usize = 32;
export const IDS: usize = 48;
/** The upper bits of the first segment's number count entries that had no room in the line. */
export const ID_BITS: u32 = 25;
export const ID_MASK: u32 = (1 << 25) - 1;
export const MOST_OVER: u32 = 127;
/** Lines for a segment: half of the entries stay free. */
const LINES_PER_SEGMENT: f64 = 0.5;

/** A segment: ten keys, then for each the set of those that told << 16 | set of those of which it is guessed (0 = no block). */
export const RECORD: usize = 128;
export const BLOCK_SETS: usize = 80;
/** When it was last used << 16 | when something of it was last guessed. */
export const STAMP: usize = 120;
/** Number of its first block in the group << 8 | blocks; 0 = free. */
export const SHAPE: usize = 124;

/** Ten rows of the engines' hashes: tags, then positions, then whose they are; and copies that two rows have beyond what they count. */
export const BUCKET: usize = 128;
export const ROWS: u32 = 10;
export const PLACES: usize = 40;
export const WHOSE: usize = 80;
export const EXTRA: usize = 120;

export const FACTS: usize = 16;
export const SET_HASH: usize = 0;
export const SIZE: usize = 4;
/** Blocks that have it, or more where a thread died; -1 = given up. */
export const USES: usize = 8;
export const NEXT: usize = 12;
/** Ids are 16 bits, 0 is the empty set, and all bits stand for "look into the segment". */
const MOST_SETS: u32 = 65534;
const SET_BYTES: u32 = 16 + 128 + 8;
/** Part of the memory that is for sets. */
const SETS_PART: u32 = 16;

/** Addresses of parts, and numbers of things, that `open` reads. */
export let table: usize = 0;
export let lines: u64 = 0;
export let records: usize = 0;
export let segments: u32 = 0;
export let rows: usize = 0;
export let buckets: u64 = 0;
export let facts: usize = 0;
export let bits: usize = 0;
export let sets: u32 = 0; // ids are below this
export let found: usize = 0;
export let foundMask: u32 = 0;
let rings: usize = 0;
let ringSize: usize = 0;

/**
 * Lays the parts out for so many threads and bytes, of which `ring` for each thread come on top. Whoever comes first does it; all others
 * wait for that. False: there is no such memory.
 */
export function create(threads: u32, bytes: f64, ring: u32, seconds: u32): bool {
  if (atomic.cmpxchg<u32>(STATE, NEW, BEGUN) != NEW) {
    while (atomic.load<u32>(STATE) == BEGUN);
    return atomic.load<u32>(STATE) == DONE;
  }
  const isDone = layOut(threads, bytes, ring, seconds);
  atomic.store<u32>(STATE, isDone ? DONE : FAILED);
  return isDone;
}

function layOut(threads: u32, bytes: f64, ring: u32, seconds: u32): bool {
  const most = <u32>Math.max(16, Math.min(<f64>MOST_SETS, Math.floor(bytes / SETS_PART / SET_BYTES)));
  const perSegment: f64 = <f64>RECORD + LINES_PER_SEGMENT * <f64>LINE + <f64>BUCKET;
  const count = <u32>Math.max(1, Math.floor((bytes - <f64>(most * SET_BYTES)) / perSegment));
  const lineCount = <u32>Math.ceil(<f64>count * LINES_PER_SEGMENT) + 1;
  let places: u32 = 64;
  while (places < most * 2) places <<= 1;
  let at: usize = CACHES + <usize>MAX_CACHES;
  let part = PARTS;
  at = put(part, at, <usize>lineCount * LINE);
  at = put(part + 4, at, <usize>count * RECORD);
  at = put(part + 8, at, <usize>count * BUCKET);
  at = put(part + 12, at, <usize>most * FACTS);
  at = put(part + 16, at, <usize>most * 128);
  at = put(part + 20, at, <usize>places << 1);
  at = put(part + 24, at, <usize>threads * ring);
  const end = (at + 0xffff) >> 16;
  if (end > <usize>memory.size() && memory.grow(<i32>(end - <usize>memory.size())) < 0) return false;
  store<u32>(THREADS, threads);
  store<u32>(SEGMENTS, count);
  store<u32>(SETS, most);
  store<u32>(PARTS + 28, lineCount);
  store<u32>(PARTS + 32, places);
  store<u32>(PARTS + 36, ring);
  store<u32>(CLOCK, seconds);
  store<u32>(LAST_CLAIMED, MAX_MEMBERS - 1);
  return true;
}

function put(part: usize, at: usize, size: usize): usize {
  at = (at + 127) & ~127;
  // addresses are known before there is memory for them: the first page is there from the start
  store<u32>(part, <u32>at);
  return at + size;
}

export function openLayout(): void {
  table = load<u32>(PARTS);
  records = load<u32>(PARTS, 4);
  rows = load<u32>(PARTS, 8);
  facts = load<u32>(PARTS, 12);
  bits = load<u32>(PARTS, 16);
  found = load<u32>(PARTS, 20);
  rings = load<u32>(PARTS, 24);
  lines = load<u32>(PARTS, 28);
  foundMask = load<u32>(PARTS, 32) - 1;
  ringSize = load<u32>(PARTS, 36);
  segments = load<u32>(SEGMENTS);
  buckets = segments;
  sets = load<u32>(SETS);
}

export function threads(): u32 {
  return load<u32>(THREADS);
}

export function ringAt(thread: u32): usize {
  return rings + <usize>thread * ringSize;
}

/** Blocks that there is room for: positions are below it. */
export function capacity(): u32 {
  return segments * GROUP;
}

/** Bytes of what is in use: segments with their share of the table, and sets. */
export function bytesUsed(): f64 {
  const perSegment: f64 = <f64>RECORD + LINES_PER_SEGMENT * <f64>LINE;
  return <f64>load<u32>(USED) * perSegment + <f64>(load<u32>(SETS_MADE) - load<u32>(FREE_SETS)) * <f64>SET_BYTES;
}

@inline
export function recordOf(segment: u32): usize {
  return records + <usize>segment * RECORD;
}
@inline
export function keyAt(record: usize, i: u32): u64 {
  return load<u64>(record + (<usize>i << 3));
}
@inline
export function setsAt(record: usize, i: u32): usize {
  return record + BLOCK_SETS + (<usize>i << 2);
}
@inline
export function firstOf(shape: u32): u32 {
  return shape >> 8;
}
@inline
export function countOf(shape: u32): u32 {
  return shape & 0xff;
}
@inline
export function memberAt(member: u32): usize {
  return MEMBERS + <usize>member * MEMBER;
}
@inline
export function isLive(member: u32): bool {
  return <bool>((atomic.load<u32>(LIVE + ((<usize>member >> 5) << 2)) >> (member & 31)) & 1);
}
@inline
export function sendsEvents(member: u32): bool {
  return <bool>((atomic.load<u32>(EXACT + ((<usize>member >> 5) << 2)) >> (member & 31)) & 1);
}
/** Words of a bitmap that can have members now. */
@inline
export function words(): u32 {
  return (atomic.load<u32>(MEMBERS_END) + 31) >> 5;
}
@inline
export function add(at: usize, value: u32): void {
  store<u32>(at, load<u32>(at) + value);
}
