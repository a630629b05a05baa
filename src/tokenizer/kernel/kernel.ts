import { readFileSync } from "node:fs";
import { HEADER_WORDS, Word } from "../image/header.ts";
import { TokenizerError } from "../tokenizer.ts";
import { adviseHugePages } from "./huge-pages.ts";
import wasmFile from "./kernel.wasm" with { type: "file" };

/** The kernel's functions; addresses and sizes are bytes of its memory. `kernel.as.ts` says what each does. */
export interface Kernel {
  init(header: number, cache: number, wordBits: number, longBits: number): void;
  encode(from: number, to: number, out: number, split: number, budget: number, cuts: number, room: number): number;
  cutsFound(): number;
  budgetLeft(): number;
  findAdded(from: number, to: number, split: number): number;
  lookAhead(from: number, to: number): number;
  forgetAhead(): void;
  digest(from: number, to: number, first: number, seed: bigint, out: number): void;
  addedId(): number;
  addedEnd(): number;
  normal(from: number, to: number): number;
  insertToken(id: number): void;
  insertWholeOnly(id: number): void;
  /** 0 if the pair was there before, or there is no room. */
  insertPair(left: number, right: number, rank: number, merged: number): number;
  insertJoin(a: number, b: number): void;
  insertAnyJoin(a: number, b: number): void;
  encodesItself(id: number): number;
  insertSplit(id: number): void;
}

/** Bytes of a WebAssembly page. */
export const PAGE = 65536;
/** Pages that a tokenizer's memory may grow to: 1 GiB. Only pages in use take room. */
const MAX_PAGES = 16384;
/** Where the table image lies in memory; the first page stays empty. */
export const IMAGE_AT = PAGE;

let read: Buffer<ArrayBuffer> | undefined;
let compiled: WebAssembly.Module | undefined;

function kernelBytes(): Buffer<ArrayBuffer> {
  read ??= readFileSync(wasmFile);
  return read;
}

/** The compiled kernel, once per thread; it can be sent to other threads. */
export function kernelModule(): WebAssembly.Module {
  compiled ??= new WebAssembly.Module(kernelBytes());
  return compiled;
}

/** Tells one build of the kernel from another: it fills the tables that it reads. */
export const kernelHash = (): string => Bun.hash.xxHash3(kernelBytes()).toString(16);

/** Shared memory with room for an image of `size` bytes at `IMAGE_AT`. */
export function imageMemory(size: number): WebAssembly.Memory {
  const initial = Math.ceil((IMAGE_AT + size) / PAGE);
  if (initial > MAX_PAGES) throw new TokenizerError("the tokenizer's tables are larger than 1 GiB");
  const memory = new WebAssembly.Memory({ initial, maximum: MAX_PAGES, shared: true });
  adviseHugePages(memory.buffer, 0, MAX_PAGES * PAGE); // its place is reserved at once
  return memory;
}

/** Memory with a copy of the image in `memory`, and nothing else. */
export function copiedImage(memory: WebAssembly.Memory): WebAssembly.Memory {
  const size = new Uint32Array(memory.buffer, IMAGE_AT, HEADER_WORDS)[Word.size]!;
  const copy = imageMemory(size);
  new Uint8Array(copy.buffer, IMAGE_AT, size).set(new Uint8Array(memory.buffer, IMAGE_AT, size));
  return copy;
}

/** A kernel over `memory`; `init` must be called before use. */
export function instantiate(module: WebAssembly.Module, memory: WebAssembly.Memory): Kernel {
  const abort = (): never => {
    throw new TokenizerError("the tokenizer kernel stopped");
  };
  return new WebAssembly.Instance(module, { env: { memory, abort } }).exports as unknown as Kernel;
}

/** Adds whole pages for `size` bytes; returns their address. Safe when several threads grow at once: each gets pages of its own. */
export function growBy(memory: WebAssembly.Memory, size: number): number {
  try {
    return memory.grow(Math.ceil(size / PAGE)) * PAGE;
  } catch {
    throw new TokenizerError("no memory is left for the tokenizer: the text is too long");
  }
}
