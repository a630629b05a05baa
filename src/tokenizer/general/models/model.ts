import type { Ids } from "../ids.ts";
import type { Trie } from "../trie.ts";

/** Turns a pre-tokenized piece (not empty) into ids. */
export type Model = (piece: string, out: Ids) => void;

const utf8 = new TextEncoder();

/** Ids of `<0x00>` to `<0xFF>`, -1 for those that a vocabulary lacks. */
export function byteIds(trie: Trie): Int32Array {
  return Int32Array.from({ length: 256 }, (_, byte) => {
    const name = `<0x${byte.toString(16).toUpperCase().padStart(2, "0")}>`;
    return trie.find(name, 0, name.length);
  });
}

/** Adds the ids of a text's bytes; false, and nothing is added, if one is missing. */
export function pushBytes(text: string, ids: Int32Array, push: (id: number) => void): boolean {
  const bytes = utf8.encode(text);
  if (bytes.some((b) => ids[b]! < 0)) return false;
  for (const b of bytes) push(ids[b]!);
  return true;
}

/** Units of the character at `at`, 1 or 2. */
export const widthAt = (text: string, at: number): number => ((text.charCodeAt(at) & 0xfc00) === 0xd800 ? 2 : 1);

/** Longest piece that is kept, in UTF-16 units, and how many are. */
const LONGEST = 48;
const MOST = 8192;

/** A model that keeps the ids of short pieces. */
export function remembering(model: Model, list: () => Ids): Model {
  const known = new Map<string, Uint32Array>();
  return (piece, out) => {
    if (piece.length > LONGEST) return model(piece, out);
    let ids = known.get(piece);
    if (ids === undefined) {
      const fresh = list();
      model(piece, fresh);
      ids = fresh.from(0);
      if (known.size >= MOST) known.clear();
      known.set(piece, ids);
    }
    out.pushAll(ids);
  };
}
