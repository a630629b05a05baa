import { ptr } from "bun:ffi";
import { expect, test } from "bun:test";
import { existsSync, readFileSync } from "node:fs";
import { createTokenizerCache } from "../../../src/tokenizer/cache/board.ts";
import { adviseHugePages } from "../../../src/tokenizer/kernel/huge-pages.ts";
import { growBy, imageMemory } from "../../../src/tokenizer/kernel/kernel.ts";

const SIZE_FILE = "/sys/kernel/mm/transparent_hugepage/hpage_pmd_size";
const hasThem = existsSync(SIZE_FILE) && Number(readFileSync(SIZE_FILE, "utf8")) <= 1 << 21;

/** What the system knows of the mapping that an address is in. */
function mappingOf(address: number): string {
  for (const block of readFileSync("/proc/self/smaps", "utf8").split(/\n(?=[\da-f]+-[\da-f]+ )/)) {
    const [, from, to] = /^([\da-f]+)-([\da-f]+) /.exec(block) ?? [];
    if (Number.parseInt(from!, 16) <= address && address < Number.parseInt(to!, 16)) return block;
  }
  return "";
}

test.skipIf(!hasThem)("tables may lie in large pages, and so may the buffers that come behind them", () => {
  const memory = imageMemory(5 << 20);
  const behind = growBy(memory, 3 << 20);
  const start = ptr(new Uint8Array(memory.buffer));
  for (const at of [0, behind]) expect(mappingOf(start + at)).toMatch(/^VmFlags:.* hg\b/m);
  // no more is in use than was written to, but for the rest of a page; the mapping may have other memory in it
  const used = () => Number(/^Rss: +(\d+) kB$/m.exec(mappingOf(start))?.[1]);
  const before = used();
  new Uint8Array(memory.buffer).fill(1, 0, 5 << 20);
  expect(used() - before).toBeLessThan(10 << 10);
});

test.skipIf(!hasThem)("the texts of a cache may, but not what is looked at of an idle one", () => {
  // a memory that had large pages everywhere and is gone: its addresses may be given again
  for (let i = 0; i < 4; i++) adviseHugePages(new SharedArrayBuffer(48 << 20), 0, 48 << 20);
  Bun.gc(true);
  const memory = createTokenizerCache({ l0: true, l1: true, l0Entries: 10_000, bytes: 32 << 20 });
  const start = ptr(new Uint8Array(memory));
  expect(mappingOf(start)).not.toMatch(/^VmFlags:.* hg\b/m);
  expect(mappingOf(start + (16 << 20))).toMatch(/^VmFlags:.* hg\b/m);
});
