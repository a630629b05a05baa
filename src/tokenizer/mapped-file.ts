/** A part of a file in place of memory: only pages that are used take room, and the system may take them back. */
import { FFIType, ptr } from "bun:ffi";
import { fstatSync } from "node:fs";
import { cLibrary } from "../c-library.ts";

/** What a file's part must begin at: a multiple of the page size of any machine. */
export const MAP_STEP = 65536;

const PROT_READ_WRITE = 3;
const MAP_PRIVATE_FIXED = 0x12;
const MADV_DONTNEED = 4;

const { u64, i64, i32 } = FFIType;
const functions = {
  mmap: { args: [u64, u64, i32, i32, i32, i64], returns: u64 },
  madvise: { args: [u64, u64, i32], returns: i32 },
} as const;
let opened: ReturnType<typeof cLibrary<typeof functions>> | null | undefined;

function library() {
  if (opened === undefined) opened = (process.platform === "linux" && cLibrary(functions)) || null;
  return opened;
}

/**
 * Puts the file's bytes from `at` in place of `memory`, which must have pages of its own up to the end of its last one, as the memory
 * of a WebAssembly module has. Writing changes the memory, not the file. False, and nothing has happened, where that can't be had.
 * The file must be replaced, never written to: what is cut off ends the process that reads it.
 */
export function mapFile(memory: Uint8Array, file: number, at: number): boolean {
  const symbols = library();
  if (!symbols || at % MAP_STEP !== 0 || fstatSync(file).size < at + memory.length) return false;
  const address = BigInt(ptr(memory));
  return symbols.mmap(address, BigInt(memory.length), PROT_READ_WRITE, MAP_PRIVATE_FIXED, file, BigInt(at)) === address;
}

/** Takes what has been read of a mapped file, and was not written to since, out of memory; it comes back when it is read again. */
export function releaseMapped(memory: Uint8Array): void {
  library()?.madvise(BigInt(ptr(memory)), BigInt(memory.length), MADV_DONTNEED);
}
