import { dlopen, type FFIFunction, FFIType } from "bun:ffi";

/** C libraries by the name under which the dynamic loader knows them: glibc, then musl. */
const NAMES = ["libc.so.6", `libc.musl-${process.arch === "arm64" ? "aarch64" : "x86_64"}.so.1`];

/** Functions of the C library, which stays open; undefined where there is none of a known name. */
export function cLibrary<T extends Readonly<Record<string, FFIFunction>>>(functions: T) {
  for (const name of NAMES)
    try {
      return dlopen(name, functions).symbols;
    } catch {
      // not this one; the next
    }
  return undefined;
}

/** `madvise(2)` of memory from an address on; undefined where there is none. */
export function memoryAdvice(): ((start: number, bytes: number, advice: number) => void) | undefined {
  if (process.platform !== "linux") return undefined;
  const { u64, i32 } = FFIType;
  const library = cLibrary({ madvise: { args: [u64, u64, i32], returns: i32 } });
  return library && ((start, bytes, advice) => library.madvise(start, bytes, advice));
}
