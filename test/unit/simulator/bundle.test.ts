import { expect, test } from "bun:test";
import { createHash } from "node:crypto";
import { unzipSync } from "fflate";
import { packBundle, pieces } from "../../../src/simulator/model/bundle.ts";

const files = new Map([
  ["tokenizer.json", new TextEncoder().encode("x".repeat(300_000))],
  ["größe.jinja", crypto.getRandomValues(new Uint8Array(5000))],
  ["empty.model", new Uint8Array(0)],
]);

test("another implementation unpacks the zip; the digest is that of its bytes; equal files give equal zips", () => {
  const { bytes, sha256 } = packBundle(files);
  const unpacked = unzipSync(bytes);
  expect(Object.keys(unpacked)).toEqual([...files.keys()]);
  for (const [name, data] of files) expect(Buffer.from(unpacked[name]!).equals(data)).toBe(true);
  expect(sha256).toBe(createHash("sha256").update(bytes).digest("hex"));
  expect(packBundle(files).sha256).toBe(sha256);
  expect(bytes.length).toBeLessThan(10_000);
});

test("pieces join to the whole", () => {
  const bytes = crypto.getRandomValues(new Uint8Array(1000));
  const parts = [...pieces(bytes, 300)];
  expect(parts.map((part) => part.length)).toEqual([300, 300, 300, 100]);
  expect(Buffer.concat(parts).equals(bytes)).toBe(true);
});
