/** The prefix index in AssemblyScript, on memory that all threads share: see layout.as.ts for what lies where. */
import { BUCKET, GROUP as BLOCKS_OF_GROUP, MAX_MEMBERS as MEMBERS, openLayout, ROWS } from "./layout.as";
import { MATCH_BYTES, openMatch } from "./match.as";
import { openSets, STEPS_BYTES } from "./sets.as";
import { openSweep, SAMPLES_BYTES } from "./sweep.as";
export { hash } from "./chain.as";
export { bytesUsed, capacity, create, isLive, ringAt, sendsEvents, threads } from "./layout.as";
export { depths, endOf, exacts, guessed, isCurrent, match, spans, told } from "./match.as";
export {
  addDropped, blocks, claim, clock, dropped, evicted, forget, generation, hide, keyHigh, keyLow, setExact, setClock, setsKept, used, wordsOfMembers,
} from "./members.as";
export { closeCache, openCache, sweepRows } from "./rows.as";
export { sweep } from "./sweep.as";
export { forgetThread, guess, lock, mark, positionOfHash, remove, tell, unlock, wasUsed } from "./write.as";

/** Blocks of a group, and members at most. */
export const GROUP: u32 = BLOCKS_OF_GROUP;
export const MAX_MEMBERS: u32 = MEMBERS;
/** Bytes of an engine's hash of a block. */
export const ROW_BYTES: f64 = <f64>BUCKET / ROWS;

/** Ids, keys of blocks, and blocks of events that are handed over at once. */
export const MOST_IDS: u32 = 8192;
export const MOST_KEYS: u32 = 1024;
export const MOST_TOLD: u32 = 256;

// Room of this thread, for what it hands over and gets back.
export let idsAt: usize = 0;
export let keysAt: usize = 0;
export let hashesAt: usize = 0;
export let knownAt: usize = 0;

/** Makes room for a thread on memory that was laid out. False: there is none left. */
export function open(): bool {
  openLayout();
  const page = memory.grow(1);
  if (page < 0) return false;
  let at = <usize>page << 16;
  openMatch(at);
  at += MATCH_BYTES;
  openSets(at);
  at += STEPS_BYTES;
  openSweep(at);
  at += SAMPLES_BYTES;
  keysAt = at;
  at += <usize>MOST_KEYS << 3;
  hashesAt = at;
  at += <usize>MOST_TOLD << 3;
  knownAt = at;
  at += <usize>MOST_TOLD;
  idsAt = (at + 15) & ~15; // and 12 readable bytes behind them
  return true;
}
