/**
 * The Huffman code of HPACK (RFC 7541, appendix B). The code is canonical: it follows from the code lengths alone, symbols of
 * one length being numbered in order. Symbol 256 is EOS.
 */
const CODE_LENGTHS = [
  13, 23, 28, 28, 28, 28, 28, 28, 28, 24, 30, 28, 28, 30, 28, 28, 28, 28, 28, 28, 28, 28, 30, 28, 28, 28, 28, 28, 28,
  28, 28, 28, 6, 10, 10, 12, 13, 6, 8, 11, 10, 10, 8, 11, 8, 6, 6, 6, 5, 5, 5, 6, 6, 6, 6, 6, 6, 6, 7, 8, 15, 6, 12, 10,
  13, 6, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 8, 7, 8, 13, 19, 13, 14, 6, 15, 5, 6, 5, 6,
  5, 6, 6, 6, 5, 7, 7, 6, 6, 6, 5, 6, 7, 6, 5, 5, 6, 7, 7, 7, 7, 7, 15, 11, 14, 13, 28, 20, 22, 20, 20, 22, 22, 22, 23,
  22, 23, 23, 23, 23, 23, 24, 23, 24, 24, 22, 23, 24, 23, 23, 23, 23, 21, 22, 23, 22, 23, 23, 24, 22, 21, 20, 22, 22,
  23, 23, 21, 23, 22, 22, 24, 21, 22, 23, 23, 21, 21, 22, 21, 23, 22, 23, 23, 20, 22, 22, 22, 23, 22, 22, 23, 26, 26,
  20, 19, 22, 23, 22, 25, 26, 26, 26, 27, 27, 26, 24, 25, 19, 21, 26, 27, 27, 26, 27, 24, 21, 21, 26, 26, 28, 27, 27,
  27, 20, 24, 20, 21, 22, 21, 21, 23, 22, 22, 25, 25, 24, 24, 26, 23, 26, 27, 26, 26, 27, 27, 27, 27, 27, 28, 27, 27,
  27, 27, 27, 26, 30,
];

const EOS = 256;

/** Binary tree in one array: node n has its children at 2n and 2n + 1. Values: >= 0 a child node, < 0 the symbol -v - 1. */
const TREE = buildTree();

function buildTree(): Int16Array {
  const tree = new Int16Array(1024);
  let nodes = 1;
  let code = 0;
  let length = 0;
  const symbols = CODE_LENGTHS.map((_, symbol) => symbol).sort((a, b) => CODE_LENGTHS[a]! - CODE_LENGTHS[b]! || a - b);
  for (const symbol of symbols) {
    code *= 2 ** (CODE_LENGTHS[symbol]! - length);
    length = CODE_LENGTHS[symbol]!;
    let node = 0;
    for (let bit = length - 1; bit >= 0; bit--) {
      const slot = 2 * node + ((code >>> bit) & 1);
      if (bit === 0) tree[slot] = -symbol - 1;
      else {
        if (tree[slot] === 0) tree[slot] = nodes++;
        node = tree[slot]!;
      }
    }
    code++;
  }
  return tree;
}

/** Decodes `bytes[start .. end)` to a Latin-1 string, or undefined when the coding is malformed. */
export function decodeHuffman(bytes: Uint8Array, start: number, end: number): string | undefined {
  let text = "";
  let node = 0;
  let depth = 0;
  let ones = true;
  for (let at = start; at < end; at++) {
    const byte = bytes[at]!;
    for (let bit = 7; bit >= 0; bit--) {
      const one = (byte >>> bit) & 1;
      const next = TREE[2 * node + one]!;
      depth++;
      if (one === 0) ones = false;
      if (next < 0) {
        if (-next - 1 === EOS) return undefined;
        text += String.fromCharCode(-next - 1);
        node = 0;
        depth = 0;
        ones = true;
      } else node = next;
    }
  }
  // Padding is at most seven bits, all ones (the beginning of EOS).
  return depth <= 7 && ones ? text : undefined;
}
