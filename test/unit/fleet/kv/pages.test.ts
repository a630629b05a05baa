/** Caches whose pages are smaller than a block of the index, on the real index. */
import { describe, expect, test } from "bun:test";
import type { KvEvent } from "../../../../src/engines/kv-events.ts";
import { CacheMirror, indexBlockSize } from "../../../../src/fleet/kv/mirror.ts";
import { chainRoot } from "../../../../src/routing/chain.ts";
import { PrefixBoard } from "../../../../src/threads/prefix-board.ts";
import { hashWords } from "../../../support/hash-words.ts";
import { chainOf } from "../../../support/prefix.ts";

/** An engine's cache of pages, each of which is told of by itself, and a mirror of it. */
function world(page: number) {
  const board = PrefixBoard.create(1, 16);
  const index = board.writer();
  const reader = board.reader(0);
  const member = index.claim(0, 0);
  let orphans = 0;
  const mirror = new CacheMirror(index, member, "m", {
    stored() {},
    removed() {},
    ignored() {},
    cleared() {},
    orphan: (blocks) => (orphans += blocks),
  });
  const pages = new Map<string, bigint>();
  let lastHash = 1_000_000n;
  const apply = (events: readonly KvEvent[]) => {
    for (const _ of mirror.apply(events));
  };
  const prefixes = (ids: readonly number[]) =>
    Array.from({ length: Math.floor(ids.length / page) }, (_, i) => ids.slice(0, (i + 1) * page).join(" "));
  return {
    orphans: () => orphans,
    /** What is new of a prompt is stored, and told page by page, or as one event. */
    store(ids: readonly number[], asOne = false) {
      let parent: bigint | undefined;
      const events: (KvEvent & { kind: "stored" })[] = [];
      for (const [i, prefix] of prefixes(ids).entries()) {
        const known = pages.get(prefix);
        if (known === undefined) {
          pages.set(prefix, ++lastHash);
          const tokenIds = Uint32Array.from(ids.slice(i * page, (i + 1) * page));
          const hashes = hashWords(lastHash);
          events.push({
            kind: "stored",
            parent: parent === undefined ? parent : hashWords(parent),
            hashes,
            tokenIds,
            blockSize: page,
            isLocalDevice: true,
          });
        }
        parent = known ?? lastHash;
      }
      if (!asOne || events.length === 0) return apply(events);
      const hashes = Int32Array.from(events.flatMap((event) => [...event.hashes]));
      const tokenIds = Uint32Array.from(events.flatMap((event) => [...event.tokenIds]));
      apply([{ ...events[0]!, hashes, tokenIds }]);
    },
    /** The last pages of a prompt leave. */
    remove(ids: readonly number[], count: number) {
      const gone = prefixes(ids).slice(-count).reverse();
      const hashes = hashWords(...gone.map((prefix) => pages.get(prefix)!));
      for (const prefix of gone) pages.delete(prefix);
      apply([{ kind: "removed", hashes, isLocalDevice: true }]);
    },
    forget() {
      pages.clear();
      apply([{ kind: "cleared" }]);
    },
    depth(ids: readonly number[]): number {
      const blockSize = indexBlockSize(page);
      return reader.match(chainOf(chainRoot("m", blockSize), Uint32Array.from(ids), blockSize)).depth(member);
    },
  };
}

const ids = (first: number, count: number): number[] => Array.from({ length: count }, (_, i) => first * 10_000 + i);
const whole = (prompt: readonly number[], page: number) => Math.floor(prompt.length / indexBlockSize(page));

for (const page of [1, 2, 5]) {
  describe(`pages of ${page}`, () => {
    test("prompts that part inside of a block are all known", () => {
      const w = world(page);
      const template = ids(0, page * 3);
      const prompts = [1, 2, 3, 4].map((n) => [...template, ...ids(n, 100)]);
      for (const [i, prompt] of prompts.entries()) w.store(prompt, i % 2 === 1);
      for (const prompt of prompts) expect(w.depth(prompt)).toBe(whole(prompt, page));
      // a system prompt behind which they part far inside, again and again
      const system = [...prompts[0]!.slice(0, page * 11), ...ids(9, 70)];
      const talks = Array.from({ length: 60 }, (_, n) => [...system.slice(0, 40 + n), ...ids(10 + n, 80)]);
      for (const talk of [system, ...talks]) w.store(talk);
      for (const talk of talks) expect(w.depth(talk)).toBe(whole(talk, page));
      expect(w.orphans()).toBe(0);
    });

    test("what left from inside of a block on comes back, and goes on there in another way", () => {
      const w = world(page);
      const prompt = ids(1, 120);
      w.store(prompt);
      const most = whole(prompt, page);
      w.remove(prompt, Math.ceil(23 / page));
      expect(w.depth(prompt)).toBeLessThan(most);
      const other = [...prompt.slice(0, 60), ...ids(2, 60)];
      w.store(other);
      w.store(prompt);
      expect([w.depth(prompt), w.depth(other), w.orphans()]).toEqual([most, most, 0]);
    });

    test("nothing is gone on from that has left", () => {
      const w = world(page);
      const prompt = ids(1, 120);
      w.store(prompt);
      w.forget();
      w.store(ids(2, 60));
      expect([w.depth(prompt), w.depth(ids(2, 60))]).toEqual([0, whole(ids(2, 60), page)]);
    });
  });
}

test("what prompts have in common is known as long as some come, after however many", () => {
  const w = world(1);
  const template = ids(0, 5);
  for (let n = 1; n <= 1500; n++) w.store([...template, ...ids(n, 200)]);
  expect(w.orphans()).toBe(0);
  expect(w.depth([...template, ...ids(1500, 200)])).toBe(12);
}, 60_000);
