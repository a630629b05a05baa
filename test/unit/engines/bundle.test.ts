import { describe, expect, test } from "bun:test";
import { createHash } from "node:crypto";
import { zipSync } from "fflate";
import { BundleCollector, type BundleLimits, unzip } from "../../../src/engines/bundle.ts";
import { EngineError } from "../../../src/engines/engine.ts";

const bytes = (text: string): Uint8Array => new TextEncoder().encode(text);
const sha256 = (data: Uint8Array): string => createHash("sha256").update(data).digest("hex");
const LIMITS: BundleLimits = { zippedBytes: 10_000, entries: 3, unzippedBytes: 50_000 };

async function problem(promise: Promise<unknown>): Promise<string> {
  const error = await promise.then(
    () => undefined,
    (e: unknown) => e,
  );
  expect(error).toBeInstanceOf(EngineError);
  expect((error as EngineError).kind).toBe("failed");
  return (error as EngineError).message;
}

describe("collecting the pieces", () => {
  const zip = zipSync({ "tokenizer.json": bytes('{"a":1}'.repeat(500)), "merges.txt": [bytes("a b"), { level: 0 }] });

  test("any cut into pieces gives the files", async () => {
    for (const size of [1, 7, 64, zip.length]) {
      const collector = new BundleCollector();
      for (let at = 0; at < zip.length; at += size)
        collector.add(zip.subarray(at, at + size), at + size >= zip.length ? sha256(zip) : "");
      const files = await collector.finish();
      expect([...files.keys()].sort()).toEqual(["merges.txt", "tokenizer.json"]);
      expect(new TextDecoder().decode(files.get("tokenizer.json"))).toBe('{"a":1}'.repeat(500));
      expect(new TextDecoder().decode(files.get("merges.txt"))).toBe("a b");
    }
  });

  test("pieces are copied: the caller's buffer may be reused", async () => {
    const collector = new BundleCollector();
    const buffer = zip.slice();
    collector.add(buffer, sha256(zip));
    buffer.fill(0);
    expect((await collector.finish()).size).toBe(2);
  });

  test("no digest, a wrong digest, a piece too many, too many bytes", async () => {
    const without = new BundleCollector();
    without.add(zip, "");
    expect(await problem(without.finish())).toContain("no digest");
    const wrong = new BundleCollector();
    wrong.add(zip, sha256(bytes("other")));
    expect(await problem(wrong.finish())).toContain("digest differs");
    const over = new BundleCollector();
    over.add(zip, sha256(zip));
    expect(() => over.add(zip, "")).toThrow("after the last");
    expect(() => new BundleCollector({ ...LIMITS, zippedBytes: 10 }).add(zip, "")).toThrow("over 10 bytes");
  });
});

describe("unpacking", () => {
  test.each(["../evil", "a/b", "/etc/passwd", "a\\b", "..", "C:x", "dir/", "nul\u0000"])(
    "a name that is not flat: %j",
    async (name) => {
      expect(await problem(unzip(zipSync({ [name]: bytes("x") })))).toContain("not flat");
    },
  );

  test("two files of one name", async () => {
    const zip = zipSync({ "aa.json": bytes("1"), "bb.json": bytes("2") });
    const twice = Buffer.from(zip);
    for (let at = twice.indexOf("bb.json"); at >= 0; at = twice.indexOf("bb.json")) twice.write("aa.json", at);
    expect(await problem(unzip(twice))).toContain("two files");
  });

  test("too many files, too many bytes in all", async () => {
    const many = Object.fromEntries(Array.from({ length: 4 }, (_, i) => [`f${i}`, bytes("x")]));
    expect(await problem(unzip(zipSync(many), LIMITS))).toContain("more than 3");
    const big = { a: new Uint8Array(30_000), b: new Uint8Array(30_000) };
    expect(await problem(unzip(zipSync(big), LIMITS))).toContain("unpacked");
  });

  test("a file that unpacks to more than it says is stopped while it unpacks", async () => {
    const size = 100 << 20;
    const zip = Buffer.from(zipSync({ bomb: new Uint8Array(size) }));
    const directory = zip.lastIndexOf(Buffer.from([0x50, 0x4b, 1, 2]));
    zip.writeUInt32LE(1000, directory + 24);
    const before = process.memoryUsage().rss;
    expect(await problem(unzip(zip, LIMITS))).toContain("stated size");
    expect(process.memoryUsage().rss - before).toBeLessThan(50 << 20);
  });

  test("a file that unpacks to less than it says", async () => {
    const zip = Buffer.from(zipSync({ short: bytes("abc".repeat(100)) }));
    zip.writeUInt32LE(301, zip.lastIndexOf(Buffer.from([0x50, 0x4b, 1, 2])) + 24);
    expect(await problem(unzip(zip))).toContain("stated size");
  });

  test("no cut and no changed byte does more than fail", async () => {
    const zip = zipSync({ "a.json": bytes("hello hello hello"), "b.json": bytes("x") });
    for (let length = 0; length < zip.length; length++) await problem(unzip(zip.subarray(0, length)));
    for (let at = 0; at < zip.length; at++) {
      const changed = zip.slice();
      changed[at]! ^= 0xff;
      await unzip(changed).catch((error: unknown) => expect(error).toBeInstanceOf(EngineError));
    }
  });
});
