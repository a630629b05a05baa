/**
 * Hashes of a text as the keys of a cache, which compares the text anyhow: fast, and not to be foreseen without the seed. Two texts that
 * differ in a few places only have the same one once in billions of times, others hardly ever.
 */
import { K0, K1 } from "./state.as";

/** Bytes that are taken in a turn: each two of them, mixed with a secret, times two others, and two more. */
const STRIDE: usize = 64;

let a: v128 = i64x2.splat(0);
let b: v128 = i64x2.splat(0);
let c: v128 = i64x2.splat(0);
let d: v128 = i64x2.splat(0);

@inline
function mixed(h: u64, lane: u64): u64 {
  h = (h ^ lane) * K1;
  return h ^ (h >> 32);
}

function sum(h: u64): u64 {
  h = mixed(h, v128.extract_lane<u64>(a, 0));
  h = mixed(h, v128.extract_lane<u64>(a, 1));
  h = mixed(h, v128.extract_lane<u64>(b, 0));
  h = mixed(h, v128.extract_lane<u64>(b, 1));
  h = mixed(h, v128.extract_lane<u64>(c, 0));
  h = mixed(h, v128.extract_lane<u64>(c, 1));
  h = mixed(h, v128.extract_lane<u64>(d, 0));
  return mixed(mixed(h, v128.extract_lane<u64>(d, 1)), K0);
}

/** Takes whole strides from p on, while they begin before n. The secrets are others in each: `turn` tells the first. */
function take(p: usize, n: usize, seed: u64, turn: u64): void {
  const step = i64x2(K0, K1);
  let k = i64x2(seed + turn * K0, (seed ^ K0) * K1 + turn * K1);
  let l = i64x2(rotl<u64>(seed, 23) * K0 + turn * K0, rotl<u64>(seed, 41) * K1 + turn * K1);
  let s = a, t = b, u = c, v = d;
  for (; p < n; p += STRIDE) {
    const w = v128.xor(v128.load(p), k);
    const x = i64x2.add(v128.load(p, 16), k);
    const y = v128.xor(v128.load(p, 32), l);
    const z = i64x2.add(v128.load(p, 48), l);
    s = i32x4.add(s, i32x4.dot_i16x8_s(w, x));
    t = i32x4.add(t, i32x4.dot_i16x8_s(y, z));
    u = i32x4.add(u, i32x4.dot_i16x8_s(w, z));
    v = i32x4.add(v, i32x4.dot_i16x8_s(y, x));
    k = i64x2.add(k, step);
    l = i64x2.add(l, step);
  }
  a = s;
  b = t;
  c = u;
  d = v;
}

/**
 * Writes two hashes to `out`: of the first `first` bytes of [p, n), a multiple of 64 (of none, where there are fewer), and of all, which are 64 or more.
 */
export function digest(p: usize, n: usize, first: usize, seed: u64, out: usize): void {
  const size = n - p;
  a = b = c = d = i64x2.splat(0);
  const start = size < first ? 0 : first;
  take(p, p + start, seed, 0);
  store<u64>(out, sum(seed));
  const last = n - STRIDE; // the last ones may be taken twice
  take(p + start, last, seed, start / STRIDE);
  take(last, n, seed, <u64>size << 20);
  store<u64>(out, sum(seed ^ <u64>size), 8);
}
