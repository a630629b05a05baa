import { afterEach, beforeEach, expect, test } from "bun:test";
import { mkdtempSync, readdirSync, readFileSync, rmSync, statSync, utimesSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { tokenizerSource } from "../../../src/tokenizer/formats/source.ts";
import { IMAGE_AT } from "../../../src/tokenizer/kernel/kernel.ts";
import { builtTables, loadTokenizer, openTokenizer, type TokenizerHandle } from "../../../src/tokenizer/load.ts";
import { tableKey, tablesOfBytes } from "../../../src/tokenizer/table-cache.ts";
import { smallFiles } from "./fixtures.ts";

let folder = "";
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "images-"));
});
afterEach(() => rmSync(folder, { recursive: true, force: true }));

const files = smallFiles("deepseek");
const TEXT = "The parameter 12345 は <think> 完全な\n";
const expected = openTokenizer(await loadTokenizer(files)).encode(TEXT);

/** The one file of the cache. */
function stored(): string {
  const names = readdirSync(folder);
  expect(names).toHaveLength(1);
  return join(folder, names[0] as string);
}
async function works(cacheDir: string): Promise<TokenizerHandle> {
  const handle = await loadTokenizer(files, { cacheDir });
  expect(openTokenizer(handle).encode(TEXT)).toEqual(expected);
  return handle;
}

test("the second load reads what the first one wrote", async () => {
  await works(folder);
  const path = stored();
  const before = statSync(path);
  // what is built is written, as a new file
  await works(folder);
  expect(statSync(path).ino).toBe(before.ino);
  expect(statSync(path).mtimeMs).toBe(before.mtimeMs);
});

test("a damaged, shortened, older or foreign file is built again", async () => {
  await works(folder);
  const path = stored();
  const good = readFileSync(path);
  const spoil: ((bytes: Buffer) => Buffer)[] = [
    ...[0, 4, 8, 16, 40, 64, 70, 5000, good.length - 1].map((at) => (bytes: Buffer) => {
      bytes[at] = (bytes[at] as number) ^ 1;
      return bytes;
    }),
    (bytes) => bytes.subarray(0, bytes.length - 1),
    (bytes) => bytes.subarray(0, 64),
    (bytes) => bytes.subarray(0, 10),
    () => Buffer.alloc(0),
    (bytes) => bytes.fill(255, 8, 12), // a size of 4 GB
  ];
  for (const change of spoil) {
    writeFileSync(path, change(Buffer.from(good)));
    await works(folder);
    expect(readFileSync(stored()).equals(good)).toBe(true);
  }
});

test("another tokenizer does not take this one's file", async () => {
  await works(folder);
  const own = stored();
  const other = smallFiles("o200k");
  await loadTokenizer(other, { cacheDir: folder });
  const [name] = readdirSync(folder).filter((n) => join(folder, n) !== own);
  writeFileSync(own, readFileSync(join(folder, name as string)));
  await works(folder);
});

test("a folder that can't be written only costs time", async () => {
  const file = join(folder, "file");
  writeFileSync(file, "");
  await works(join(file, "below"));
});

test("a missing folder is made", async () => {
  await works(join(folder, "a", "b"));
  expect(readdirSync(join(folder, "a", "b"))).toHaveLength(1);
});

test("a built image is a file of the cache", async () => {
  const [name, bytes] = builtTables(files);
  await works(folder);
  expect(stored()).toBe(join(folder, name));
  expect(readFileSync(stored()).equals(bytes)).toBe(true);
  const key = tableKey(tokenizerSource(files).contents());
  expect(tablesOfBytes(bytes, key)).toBeDefined();
  for (const bad of [bytes.slice(0, 100), bytes.slice(0, -8), Buffer.alloc(0), builtTables(smallFiles("gemma"))[1]]) {
    expect(tablesOfBytes(bad, key)).toBeUndefined();
  }
});

test("the image in memory is the image on disk", async () => {
  const handle = await works(folder);
  if (handle.kind !== "kernel") throw new Error("not a kernel tokenizer");
  const file = readFileSync(stored());
  const body = file.subarray(64 + file.readUInt32LE(12));
  expect(
    Buffer.from(handle.memory.buffer)
      .subarray(IMAGE_AT, IMAGE_AT + body.length)
      .equals(body),
  ).toBe(true);
});

test("files of other versions go when a new one is written", async () => {
  const old = join(folder, "tokenizer-00.image");
  writeFileSync(old, Buffer.alloc(100, 1));
  const left = join(folder, "tokenizer-11.image.123.abcd");
  writeFileSync(left, "half");
  utimesSync(left, 0, 0);
  writeFileSync(join(folder, "kept.image"), "not ours");
  await works(folder);
  expect(readdirSync(folder).sort()).toEqual(["kept.image", expect.stringMatching(/^tokenizer-.{64}\.image$/)]);
});
