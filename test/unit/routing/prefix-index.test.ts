import { describe, expect, test } from "bun:test";
import { prefixIndex } from "../../../src/routing/prefix-index.ts";
import { PrefixBoard } from "../../../src/threads/prefix-board.ts";
import { random } from "../generation/random.ts";

const NOW = 1_800_000_000_000;
const { below } = random(2);
const tokens = (length: number) => new Uint32Array(length).map(() => below(150_000));

function world() {
  const board = PrefixBoard.create(2, 8);
  return { board, writer: board.writer(), index: prefixIndex(board, 0) };
}

describe("the prefix index", () => {
  test("finds a prompt that was sent, as far as another begins like it", () => {
    const { board, writer, index } = world();
    const other = prefixIndex(PrefixBoard.open(board.memory), 1);
    const member = writer.claim(1, 0);
    const prompt = tokens(1000);
    const root = index.root("model", 16);
    index.promise(index.chain(root, prompt, 16), 0, member, NOW);
    for (const at of [0, 15, 16, 500, 991, 992, 999]) {
      const asked = prompt.with(at, 200_000);
      expect(other.match(other.chain(root, asked, 16), NOW).depth(member)).toBe(Math.floor(at / 16));
    }
    expect(other.match(other.chain(root, prompt.subarray(0, 40), 16), NOW).depth(member)).toBe(2);
  });

  test("never finds it for another model, size of a block, adapter, salt or picture", () => {
    const { writer, index } = world();
    const member = writer.claim(1, 0);
    const prompt = tokens(256);
    const media = [{ start: 3, end: 9, hi: 1, lo: 2 }];
    const keys = [
      [index.root("model", 16), 16],
      [index.root("other", 16), 16],
      [index.root("model", 32), 32],
      [index.root("model", 16, "adapter"), 16],
      [index.root("model", 16, undefined, "salt"), 16],
      [index.root("model", 16, "adapter", "salt"), 16],
      [index.root("model", 16, undefined, "adapter"), 16],
    ] as const;
    for (const [i, [root, size]] of keys.entries()) {
      writer.clear(member);
      index.promise(index.chain(root, prompt, size), 0, member, NOW);
      for (const [j, [asked, askedSize]] of keys.entries()) {
        const depth = index.match(index.chain(asked, prompt, askedSize), NOW).depth(member);
        expect(depth).toBe(i === j ? 256 / size : 0);
        expect(index.match(index.chain(asked, prompt, askedSize, media), NOW).depth(member)).toBe(0);
      }
    }
  });

  test("makes the same root every time, and others for names that look alike", () => {
    const { index } = world();
    for (let i = 0; i < 3000; i++) index.root(`model ${i}`, 16);
    expect(index.root("model 0", 16)).toEqual(index.root("model 0", 16));
    const roots = [index.root("a", 16, "b"), index.root("a+b", 16), index.root("a", 16, ""), index.root("a", 16)];
    expect(new Set(roots.map(String)).size).toBe(4);
  });

  test("makes room for prompts of any length, and keeps chains of other sizes of blocks", () => {
    const { index } = world();
    const long = index.chain(index.root("model", 16), tokens(100_000), 16);
    expect(long.count).toBe(6250);
    const keys = [...long.keys.subarray(0, long.count * 2)];
    index.chain(index.root("model", 32), tokens(100_000), 32);
    expect([...long.keys.subarray(0, long.count * 2)]).toEqual(keys);
    expect(index.chain(index.root("model", 16), tokens(10), 16).count).toBe(0);
  });
});
