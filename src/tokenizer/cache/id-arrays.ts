import type { PostProcessor } from "../tokenizer.ts";

export function joined(a: Uint32Array, b: Uint32Array): Uint32Array {
  const ids = new Uint32Array(a.length + b.length);
  ids.set(a);
  ids.set(b, a.length);
  return ids;
}

/** Ids with what the post-processor puts around them. */
export function around({ single }: PostProcessor, ids: Uint32Array): Uint32Array {
  const texts = single.filter((part) => part === "A").length;
  const out = new Uint32Array(single.length + texts * (ids.length - 1));
  let at = 0;
  for (const part of single) {
    if (part === "A") out.set(ids, at);
    else out[at] = part;
    at += part === "A" ? ids.length : 1;
  }
  return out;
}

/** What stands between the ids that the post-processor put; undefined if it does not take the text once. */
export function inside({ single }: PostProcessor, ids: Uint32Array): Uint32Array | undefined {
  const before = single.indexOf("A");
  if (before < 0 || before !== single.lastIndexOf("A")) return undefined;
  return ids.subarray(before, ids.length - (single.length - 1 - before));
}
