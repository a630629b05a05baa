/** Characters and their classes (as in ../image/classes.ts). */
import { classBits, classIndex, classPages } from "./state.as";

export const UP: u32 = 1;
export const LO: u32 = 2;
export const NU: u32 = 4;
export const WS: u32 = 8;
export const NL: u32 = 16;
export const LT: u32 = 32;
export const OT: u32 = 64;
export const HAN: u32 = 128; // with `cls2` only
export const D_LM: u32 = 1;
export const D_PFX: u32 = 2;
export const D_PS: u32 = 4;
export const D_WS: u32 = 8;
export const D_NL: u32 = 16;
export const D_N: u32 = 32;
export const D_CJK: u32 = 64;
export const D_AL: u32 = 128;

@inline
export function width(b: u32): usize {
  return b < 0xc0 ? 1 : b < 0xe0 ? 2 : b < 0xf0 ? 3 : b < 0xf8 ? 4 : 1;
}

@inline
function wide(p: usize, b: u32): u32 {
  let c: u32;
  if (b < 0xe0) c = ((b & 31) << 6) | (load<u8>(p, 1) & 63);
  else if (b < 0xf0) c = ((b & 15) << 12) | ((<u32>load<u8>(p, 1) & 63) << 6) | (load<u8>(p, 2) & 63);
  else if (b < 0xf8) c = ((b & 7) << 18) | ((<u32>load<u8>(p, 1) & 63) << 12) | ((<u32>load<u8>(p, 2) & 63) << 6) | (load<u8>(p, 3) & 63);
  else return 0;
  return load<u8>(classPages + (<usize>load<u16>(classIndex + ((<usize>c >> 8) << 1)) << 8) + (c & 255));
}

/** Class of the character at p. 0 for the sentinel 255. */
@inline
export function cls(p: usize): u32 {
  const b: u32 = load<u8>(p);
  return b < 128 ? <u32>load<u8>(classBits + b) : wide(p, b) & 127;
}

@inline
export function isNewline(b: u32): bool {
  return b == 10 || b == 13;
}

/** All eight bits: DeepSeek's classes, and Kimi's. */
@inline
export function cls2(p: usize): u32 {
  const b: u32 = load<u8>(p);
  if (b < 128) return load<u8>(classBits + b);
  return wide(p, b);
}

@inline
export function three(p: usize): u32 {
  return ((<u32>load<u8>(p) & 15) << 12) | ((<u32>load<u8>(p, 1) & 63) << 6) | (<u32>load<u8>(p, 2) & 63);
}

/** Character at p as a number of at most 21 bits; a space and U+2581 are the same symbol. */
@inline
export function codePoint(p: usize): u32 {
  const b: u32 = load<u8>(p);
  if (b < 0x80) return b;
  if (b < 0xe0) return ((b & 31) << 6) | (load<u8>(p, 1) & 63);
  if (b < 0xf0) return three(p);
  return ((b & 7) << 18) | ((<u32>load<u8>(p, 1) & 63) << 12) | ((<u32>load<u8>(p, 2) & 63) << 6) | (load<u8>(p, 3) & 63);
}
