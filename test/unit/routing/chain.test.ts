import { describe, expect, test } from "bun:test";
import { chainMedia, chainRoot, textKey } from "../../../src/routing/chain.ts";
import { PrefixBoard } from "../../../src/threads/prefix-board.ts";
import { chainOf } from "../../support/prefix.ts";
import { random } from "../generation/random.ts";

const { below } = random(5);
const ids = new Uint32Array(600).map(() => below(150_000));

function keysOf(
  tokens: Uint32Array,
  size = 16,
  root = chainRoot("model", size),
  media?: Parameters<typeof chainOf>[3],
) {
  const { keys, count } = chainOf(root, tokens, size, media);
  return Array.from({ length: count }, (_, i) => `${keys[i * 2]} ${keys[i * 2 + 1]}`);
}
const { keys: maker } = PrefixBoard.create(1, 1);
const room = maker.newRoom(1);
/** The key of one block of 16 ids. */
function blockKey([hi, lo]: readonly [number, number], block: number): readonly [number, number] {
  maker.hash(ids, block * 16, 1, 16, hi, lo, room);
  return [room.keys[0]!, room.keys[1]!];
}
/** Blocks from the front that are the same. */
const shared = (one: readonly string[], other: readonly string[]) => {
  let count = 0;
  while (count < one.length && one[count] === other[count]) count++;
  return count;
};

describe("a chain", () => {
  test("has a key for each full block", () => {
    for (const [length, size, count] of [
      [0, 16, 0],
      [15, 16, 0],
      [16, 16, 1],
      [599, 16, 37],
      [599, 64, 9],
      [30, 1, 30],
      [30, 7, 4],
    ] as const)
      expect(keysOf(ids.subarray(0, length), size)).toHaveLength(count);
  });

  test("is that of another prompt up to the first id that differs, and nowhere again", () => {
    const keys = keysOf(ids);
    expect(new Set(keys).size).toBe(keys.length);
    expect(keysOf(ids.subarray(0, 100))).toEqual(keys.slice(0, 6));
    for (let i = 0; i < 592; i++) {
      const other = keysOf(ids.with(i, ids[i]! ^ (1 << below(17))));
      expect(shared(keys, other)).toBe(Math.floor(i / 16));
      expect(other.slice(Math.floor(i / 16)).some((key) => keys.includes(key))).toBe(false);
    }
  });

  test("tells in which order ids are", () => {
    const keys = keysOf(ids);
    for (const [one, other] of [
      [0, 1],
      [0, 4],
      [3, 12],
      [5, 14],
    ] as const) {
      const swapped = ids.with(one, ids[other]!).with(other, ids[one]!);
      expect(shared(keys, keysOf(swapped))).toBe(0);
    }
  });

  test("of sizes that four does not divide takes in every id", () => {
    for (const size of [1, 2, 3, 5, 7, 18]) {
      const keys = keysOf(ids.subarray(0, 2 * size), size);
      for (let i = 0; i < size; i++) expect(shared(keys, keysOf(ids.subarray(0, 2 * size).with(i, 7), size))).toBe(0);
    }
  });

  test("can be made block by block", () => {
    const keys = keysOf(ids);
    let key = chainRoot("model", 16);
    for (let i = 0; i < keys.length; i++) {
      key = blockKey(key, i);
      expect(key.join(" ")).toBe(keys[i]!);
    }
  });

  // Gateways of one version tell each other of blocks by their keys: other keys need another version.
  test("has always the same keys", () => {
    expect(chainRoot("model", 16, "adapter", "salt")).toEqual(chainRoot("model", 16, "adapter", "salt"));
    expect(keysOf(Uint32Array.from({ length: 40 }, (_, i) => i * i))).toMatchInlineSnapshot(`
      [
        "-1971342520 -1521911617",
        "-929307230 902136893",
      ]
    `);
    expect(chainRoot("model", 16)).toMatchInlineSnapshot(`
      [
        1505403974,
        -874003523,
      ]
    `);
  });
});

describe("roots", () => {
  test("differ by model, size of a block, adapter and salt, and by which is which", () => {
    const roots = [
      chainRoot("model", 16),
      chainRoot("model2", 16),
      chainRoot("model", 32),
      chainRoot("model", 16, "x"),
      chainRoot("model", 16, undefined, "x"),
      chainRoot("model", 16, "x", "x"),
      chainRoot("model", 16, "", "x"),
      chainRoot("modelx", 16),
      chainRoot("model", 16, "xx"),
      chainRoot("", 16, "model"),
    ];
    const firsts = roots.map((root) => keysOf(ids, 16, root)[0]);
    expect(new Set(roots.map(String)).size).toBe(roots.length);
    expect(new Set(firsts).size).toBe(roots.length);
  });
});

describe("media", () => {
  const span = (start: number, end: number, name: string) => {
    const [hi, lo] = textKey(name);
    return { start, end, hi, lo };
  };
  const plain = keysOf(ids);

  test("change the blocks that they overlap with, and so all behind", () => {
    for (const [start, end, first] of [
      [0, 1, 0],
      [15, 16, 0],
      [16, 17, 1],
      [40, 100, 2],
      [47, 49, 2],
    ] as const)
      expect(shared(plain, keysOf(ids, 16, undefined, [span(start, end, "a")]))).toBe(first);
    expect(keysOf(ids, 16, undefined, [span(592, 600, "a")])).toEqual(plain);
    expect(keysOf(ids, 16, undefined, [])).toEqual(plain);
  });

  test("are told apart by what they show, and how many they are", () => {
    const one = keysOf(ids, 16, undefined, [span(20, 60, "a")]);
    expect(keysOf(ids, 16, undefined, [span(20, 60, "a")])).toEqual(one);
    expect(shared(one, keysOf(ids, 16, undefined, [span(20, 60, "b")]))).toBe(1);
    expect(shared(one, keysOf(ids, 16, undefined, [span(20, 30, "a"), span(30, 60, "a")]))).toBe(1);
    const two = [span(20, 25, "a"), span(25, 60, "b")];
    expect(
      shared(keysOf(ids, 16, undefined, two), keysOf(ids, 16, undefined, [span(20, 25, "b"), span(25, 60, "a")])),
    ).toBe(1);
  });

  test("are taken in as an engine's events tell of them, block by block", () => {
    const [hi, lo] = textKey("a");
    let key = chainRoot("model", 16);
    const keys = keysOf(ids, 16, undefined, [span(20, 40, "a")]);
    for (let i = 0; i < 4; i++) {
      const shown = Int32Array.from(blockKey(key, i));
      if (i === 1 || i === 2) chainMedia(shown, 0, hi, lo);
      key = [shown[0]!, shown[1]!];
      expect(key.join(" ")).toBe(keys[i]!);
    }
  });
});

test("keys are spread evenly, whatever ids look like", () => {
  for (const make of [(i: number) => i, (i: number) => i * 1024, (i: number) => (i % 2 === 0 ? 0 : i), () => 0]) {
    const { keys, count } = chainOf(
      chainRoot("model", 4),
      Uint32Array.from({ length: 160_000 }, (_, i) => make(i)),
      4,
    );
    const counts = [new Uint32Array(256), new Uint32Array(256), new Uint32Array(256), new Uint32Array(256)];
    for (let i = 0; i < count; i++) {
      const [hi, lo] = [keys[i * 2]! >>> 0, keys[i * 2 + 1]! >>> 0];
      for (const [n, bits] of [hi >>> 24, lo >>> 24, hi & 255, lo & 255].entries()) counts[n]![bits]!++;
    }
    // 40,000 in 256 bins: 156 each, and 12.5 is one standard deviation
    for (const bins of counts) {
      expect(Math.min(...bins)).toBeGreaterThan(100);
      expect(Math.max(...bins)).toBeLessThan(220);
    }
  }
});
