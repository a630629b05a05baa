import { afterEach, beforeEach, expect, test } from "bun:test";
import {
  mkdtempSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  symlinkSync,
  utimesSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { hashOfBytes } from "../../../src/tokenizer/content-hash.ts";
import { KnownHashes } from "../../../src/tokenizer/known-hashes.ts";

const LATER = () => Date.now() + 60_000;
const CONTENT = Buffer.alloc(3000, "abc");
const OTHER = Buffer.alloc(3000, "abd");

let folder = "";
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "hashes-"));
  writeFileSync(file(), CONTENT);
});
afterEach(() => rmSync(folder, { recursive: true, force: true }));
const file = (): string => join(folder, "tokenizer.json");
const cache = (): string => join(folder, "cache");
const list = (): string => join(cache(), "file-hashes.json");
/** Makes the kept hash another one, so that it shows whether it was used. */
const forge = (): void => {
  const kept = readFileSync(list(), "utf8");
  writeFileSync(list(), kept.replace(hashOfBytes(CONTENT), "forged"));
};

test("a file that has not changed is not read again", () => {
  expect(new KnownHashes(cache(), LATER).of(file())).toBe(hashOfBytes(CONTENT));
  forge();
  expect(new KnownHashes(cache(), LATER).of(file())).toBe("forged");
});

test("a part is made again when the file has changed, or it is made in another way, and kept beside the whole", async () => {
  let made = 0;
  const part = (name: string) => new KnownHashes(cache(), LATER).ofPart(file(), name, () => `${name} ${++made}`);
  new KnownHashes(cache(), LATER).of(file());
  expect([part("a"), part("a"), part("b"), part("a")]).toEqual(["a 1", "a 1", "b 2", "a 1"]);
  await Bun.sleep(20);
  writeFileSync(file(), OTHER);
  expect([part("a"), part("b")]).toEqual(["a 3", "b 4"]);
  expect(new KnownHashes(cache(), LATER).of(file())).toBe(hashOfBytes(OTHER));
});

test("a part that other files decide as well is not kept", () => {
  let made = 0;
  const part = () =>
    new KnownHashes(cache(), LATER).ofPart(file(), "a", () => {
      made++;
      return undefined;
    });
  expect([part(), part(), made]).toEqual([undefined, undefined, 2]);
});

test("nothing is kept of a file that has changed a moment ago", () => {
  new KnownHashes(cache()).of(file());
  expect(() => statSync(list())).toThrow();
});

test.each<[string, () => void]>([
  ["written in place, its times set back", () => writeFileSync(file(), OTHER)],
  [
    "put in its place",
    () => {
      writeFileSync(join(folder, "new"), OTHER);
      renameSync(join(folder, "new"), file());
    },
  ],
])("a change of equal size and time is seen: %s", async (_, change) => {
  utimesSync(file(), 1000, 1000);
  new KnownHashes(cache(), LATER).of(file());
  await Bun.sleep(20); // the clock of a file system ticks every few milliseconds
  change();
  utimesSync(file(), 1000, 1000);
  expect(new KnownHashes(cache(), LATER).of(file())).toBe(hashOfBytes(OTHER));
});

test("a link that leads elsewhere is another file", () => {
  const link = join(folder, "link");
  symlinkSync(file(), link);
  new KnownHashes(cache(), LATER).of(link);
  writeFileSync(join(folder, "elsewhere"), OTHER);
  rmSync(link);
  symlinkSync(join(folder, "elsewhere"), link);
  expect(new KnownHashes(cache(), LATER).of(link)).toBe(hashOfBytes(OTHER));
});

test("a list that is damaged or cannot be written costs time and nothing else", () => {
  new KnownHashes(cache(), LATER).of(file());
  writeFileSync(list(), "{");
  expect(new KnownHashes(cache(), LATER).of(file())).toBe(hashOfBytes(CONTENT));
  expect(new KnownHashes(join(file(), "no folder"), LATER).of(file())).toBe(hashOfBytes(CONTENT));
});

test("a file that is missing is told of", () => {
  expect(() => new KnownHashes(cache(), LATER).of(join(folder, "missing"))).toThrow("ENOENT");
});
