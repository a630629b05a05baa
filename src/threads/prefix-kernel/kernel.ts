import { readFileSync } from "node:fs";
import wasmFile from "./kernel.wasm" with { type: "file" };

/** The kernel's functions and numbers; addresses are bytes of its memory. Its sources, `*.as.ts`, say what each does. */
export interface PrefixKernel {
  readonly GROUP: WebAssembly.Global;
  readonly MAX_MEMBERS: WebAssembly.Global;
  readonly ROW_BYTES: WebAssembly.Global;
  readonly MOST_IDS: WebAssembly.Global;
  readonly MOST_KEYS: WebAssembly.Global;
  readonly MOST_TOLD: WebAssembly.Global;
  readonly idsAt: WebAssembly.Global;
  readonly keysAt: WebAssembly.Global;
  readonly hashesAt: WebAssembly.Global;
  readonly knownAt: WebAssembly.Global;
  readonly depths: WebAssembly.Global;
  readonly exacts: WebAssembly.Global;
  readonly spans: WebAssembly.Global;

  create(threads: number, bytes: number, ring: number, seconds: number): number;
  open(): number;
  threads(): number;
  capacity(): number;
  ringAt(thread: number): number;

  lock(owner: number, looks: number): number;
  unlock(owner: number): void;
  forgetThread(dead: number, owner: number): void;

  hash(ids: number, count: number, size: number, parentLow: number, parentHigh: number, keys: number): void;
  match(keys: number, count: number, seconds: number): void;
  isCurrent(): number;
  endOf(span: number): number;
  told(span: number, word: number): number;
  guessed(span: number, word: number): number;
  wordsOfMembers(): number;

  guess(keys: number, from: number, to: number, member: number, seconds: number): number;
  wasUsed(keys: number, to: number, seconds: number, units: number): number;
  mark(keys: number, to: number, member: number, seconds: number): void;

  tell(
    keys: number,
    count: number,
    parent: number,
    member: number,
    owner: number,
    cache: number,
    hashes: number,
  ): number;
  remove(hashes: number, count: number, member: number, owner: number, cache: number, known: number): number;
  positionOfHash(cache: number, low: number, high: number): number;
  openCache(): number;
  closeCache(cache: number): void;
  sweepRows(count: number): number;
  keyLow(position: number): number;
  keyHigh(position: number): number;

  claim(slot: number, rank: number): number;
  setExact(member: number, isExact: boolean): void;
  isLive(member: number): number;
  sendsEvents(member: number): number;
  generation(member: number): number;
  hide(member: number): number;
  forget(member: number, isReleased: boolean): void;

  sweep(places: number, seconds: number, owner: number): void;
  setClock(seconds: number): void;
  addDropped(count: number): void;
  blocks(): number;
  used(): number;
  bytesUsed(): number;
  setsKept(): number;
  evicted(): number;
  dropped(): number;
}

/** Bytes of a WebAssembly page. */
export const PAGE = 65_536;
/** Pages that any memory may have. */
export const MAX_PAGES = 65_536;

let compiled: WebAssembly.Module | undefined;

/** A kernel over `memory`, for one thread. */
export function instantiate(memory: WebAssembly.Memory): PrefixKernel {
  compiled ??= new WebAssembly.Module(readFileSync(wasmFile));
  const abort = (): never => {
    throw new Error("the kernel of the prefix index stopped");
  };
  return new WebAssembly.Instance(compiled, { env: { memory, abort } }).exports as unknown as PrefixKernel;
}
