/** What a cache tells while a thread writes to the same index. */
import { expect, test } from "bun:test";
import { CacheMirror } from "../../../../src/fleet/kv/mirror.ts";
import { chainRoot } from "../../../../src/routing/chain.ts";
import { PrefixBoard } from "../../../../src/threads/prefix-board.ts";
import { instantiate } from "../../../../src/threads/prefix-kernel/kernel.ts";
import { hashWords } from "../../../support/hash-words.ts";
import { chainOf } from "../../../support/prefix.ts";

test("is written when the thread is done, however long it takes", () => {
  const board = PrefixBoard.create(1, 16);
  const index = board.writer();
  const member = index.claim(0, 0);
  let removed = 0;
  const mirror = new CacheMirror(index, member, "m", {
    stored() {},
    removed: (blocks) => (removed += blocks),
    ignored() {},
    cleared() {},
    orphan() {},
  });
  const tokenIds = Uint32Array.from({ length: 48 }, (_, i) => i);
  const chain = chainOf(chainRoot("m", 16), tokenIds, 16);
  const depth = () => board.reader(0).match(chain).depth(member);
  const thread = instantiate(board.memory);
  thread.open();
  const stored = {
    kind: "stored",
    hashes: hashWords(1n, 2n, 3n),
    tokenIds,
    blockSize: 16,
    isLocalDevice: true,
  } as const;
  for (const [event, expected] of [
    [{ ...stored, parent: undefined }, 3],
    [{ kind: "removed", hashes: hashWords(2n, 3n), isLocalDevice: true } as const, 1],
  ] as const) {
    const before = depth();
    expect(thread.lock(1, 1)).toBe(1);
    expect(index.isBusy).toBe(true);
    const work = mirror.apply([event]);
    for (let i = 0; i < 20; i++) expect(work.next().done).toBe(false);
    expect(depth()).toBe(before);
    thread.unlock(1);
    for (const _ of work);
    expect(depth()).toBe(expected);
  }
  expect(removed).toBe(2);
  expect(index.stats().dropped).toBe(0);
});
