/** A model's large files are read late; tables never come from what a file was before. */
import { afterEach, beforeEach, describe, expect, test } from "bun:test";
import { mkdtempSync, renameSync, rmSync, statSync, truncateSync, utimesSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { hashOfBytes, hashOfFile, PIECE } from "../../../src/tokenizer/content-hash.ts";
import { builtTables, loadBuilt, loadTokenizer, openTokenizer } from "../../../src/tokenizer/load.ts";
import { readModelFiles } from "../../../src/tokenizer/model-files.ts";
import { TokenizerError } from "../../../src/tokenizer/tokenizer.ts";
import { random, smallJson } from "./fixtures.ts";

let folder = "";
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "model-"));
});
afterEach(() => rmSync(folder, { recursive: true, force: true }));

const model = (): string => join(folder, "tokenizer.json");
const options = (): { cacheDir: string } => ({ cacheDir: join(folder, "cache") });
/** A small tokenizer.json, padded to be a large file. */
const large = (name: string): Buffer => Buffer.concat([Buffer.from(smallJson(name)), Buffer.alloc(3 << 20, " ")]);
/** The same with another id for two tokens: as many bytes, other ids. */
function swapped(json: Buffer): Buffer {
  const text = json.toString();
  const [a, b] = ['"a":', '"b":'].map((key) => new RegExp(`${key} ?(\\d+)`).exec(text)!);
  expect(a![1]!.length).toBe(b![1]!.length);
  return Buffer.from(text.replace(a![0], a![0].replace(a![1]!, b![1]!)).replace(b![0], b![0].replace(b![1]!, a![1]!)));
}
const ids = async (text: string): Promise<number[]> => [
  ...openTokenizer(await loadTokenizer(await readModelFiles(folder), options())).encode(text),
];

describe("a changed tokenizer.json", () => {
  const before = large("cl100k");
  const after = swapped(before);

  test.each<[string, (path: string) => void]>([
    ["written in place", (path) => writeFileSync(path, after)],
    [
      "put in its place",
      (path) => {
        writeFileSync(`${path}.new`, after);
        renameSync(`${path}.new`, path);
      },
    ],
  ])("of the same size and time, %s, is never answered from the old one's tables", async (_, change) => {
    writeFileSync(model(), before);
    utimesSync(model(), 1000, 1000);
    const old = await ids("a b");
    expect(await ids("a b")).toEqual(old);
    change(model());
    utimesSync(model(), 1000, 1000);
    expect(statSync(model())).toMatchObject({ size: before.length, mtimeMs: 1_000_000 });
    const now = await ids("a b");
    expect(now).not.toEqual(old);
    expect(now).toEqual([...openTokenizer(await loadTokenizer(new Map([["tokenizer.json", after]]))).encode("a b")]);
    writeFileSync(model(), before);
    expect(await ids("a b")).toEqual(old);
  });

  test("between the look at the folder and the load is taken as it is at the load", async () => {
    writeFileSync(model(), before);
    await ids("a");
    const files = await readModelFiles(folder);
    writeFileSync(model(), after);
    expect(await loadBuilt(files, options())).toBeUndefined();
    const handle = await loadTokenizer(files, options());
    expect([...openTokenizer(handle).encode("a b")]).toEqual(await ids("a b"));
  });
});

test("where the tables are built already the large file's bytes are not asked for", async () => {
  writeFileSync(model(), large("cl100k"));
  await ids("a");
  const files = await readModelFiles(folder);
  const asked: string[] = [];
  const { get } = files;
  files.get = (name) => {
    asked.push(name);
    return get.call(files, name);
  };
  const handle = await loadBuilt(files, options());
  expect(handle).toBeDefined();
  expect(asked).not.toContain("tokenizer.json");
  // the key is that of the bytes
  expect(builtTables(new Map([["tokenizer.json", large("cl100k")]]))[0]).toContain(handle!.key);
});

test("what is there can be listed, and is read as it is asked for", async () => {
  writeFileSync(model(), large("cl100k"));
  writeFileSync(join(folder, "config.json"), "{}");
  const files = await readModelFiles(folder);
  expect([files.size, ...files.keys()]).toEqual([2, "config.json", "tokenizer.json"]);
  expect([files.has("tokenizer.json"), files.has("x"), files.get("x")]).toEqual([true, false, undefined]);
  const copy = new Map(files);
  expect(large("cl100k").equals(copy.get("tokenizer.json")!)).toBe(true);
  expect([...files.values()]).toEqual([...copy.values()]);
  const visited = new Map<string, Uint8Array>();
  files.forEach((bytes, name) => void visited.set(name, bytes));
  expect(visited).toEqual(copy);
});

test("a large file that is gone meanwhile is named", async () => {
  writeFileSync(model(), large("cl100k"));
  const files = await readModelFiles(folder);
  rmSync(model());
  for (const use of [() => files.get("tokenizer.json"), () => files.hash("tokenizer.json"), () => new Map(files)]) {
    expect(use).toThrow(TokenizerError);
    expect(use).toThrow(`${model()} can't be read`);
  }
  expect(loadBuilt(files, options())).rejects.toThrow(`${model()} can't be read`);
});

test("a file's hash is that of its bytes, at any length, and each byte of it counts", () => {
  const next = random(3);
  const bytes = Buffer.from(Array.from({ length: PIECE * 2 + 100 }, () => Math.floor(next() * 256)));
  const path = join(folder, "file");
  writeFileSync(path, bytes);
  const seen = new Set<string>();
  const lengths = [PIECE * 2 + 100, PIECE * 2 + 1, PIECE * 2, PIECE * 2 - 1, PIECE + 1, PIECE, PIECE - 1, 1, 0];
  for (const length of lengths) {
    truncateSync(path, length);
    const hash = hashOfFile(path);
    expect(hash).toBe(hashOfBytes(bytes.subarray(0, length)));
    seen.add(hash);
  }
  for (const at of [0, 1, PIECE - 1, PIECE, PIECE + 7, PIECE * 2, PIECE * 2 + 99]) {
    const other = Buffer.from(bytes);
    other[at]! ^= 1;
    seen.add(hashOfBytes(other));
  }
  expect(seen.size).toBe(lengths.length + 7);
});
