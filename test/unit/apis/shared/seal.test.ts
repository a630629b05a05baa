import { describe, expect, test } from "bun:test";
import { newId } from "../../../../src/apis/shared/ids.ts";
import { createSealer } from "../../../../src/apis/shared/seal.ts";

const key = new TextEncoder().encode("one key");
const sealer = createSealer(key);
const TEXT = "Ich denke: 思考 🤔\0 ".repeat(100);

describe("seals", () => {
  test("what was sealed is read again, by every gateway with the key", () => {
    const blob = sealer.seal("t", TEXT);
    expect(blob).toMatch(/^e1\.[A-Za-z0-9_-]+$/);
    expect(Buffer.from(blob.slice(3), "base64url").includes("denke")).toBe(false);
    expect(createSealer(key).open("t", blob, "whatever is shown")).toBe(TEXT);
    expect(sealer.open("t", sealer.seal("t", ""), "")).toBe("");
    expect(sealer.seal("t", TEXT)).not.toBe(blob);
  });

  test("a signature is of exactly the text that is shown", () => {
    const mark = sealer.sign("t", TEXT);
    expect(mark).toMatch(/^s1\.[A-Za-z0-9_-]{43}$/);
    expect(createSealer(key).open("t", mark, TEXT)).toBe(TEXT);
    expect(sealer.open("t", mark, `${TEXT} `)).toBeUndefined();
    expect(sealer.sign("t", TEXT)).toBe(mark);
  });

  test("foreign, altered or another tenant's: nothing", () => {
    for (const blob of [sealer.seal("t", TEXT), sealer.sign("t", TEXT)]) {
      expect(sealer.open("u", blob, TEXT)).toBeUndefined();
      expect(createSealer(new TextEncoder().encode("another key")).open("t", blob, TEXT)).toBeUndefined();
      for (let at = 3; at < blob.length; at += Math.ceil(blob.length / 40)) {
        const other = blob[at] === "A" ? "B" : "A";
        // the last digit of base64 may hold bits that count for nothing
        if (at === blob.length - 1) continue;
        expect(sealer.open("t", blob.slice(0, at) + other + blob.slice(at + 1), TEXT)).toBeUndefined();
      }
    }
    for (const blob of ["", "e1.", "s1.", "e1.AAAA", "EuYBCkQYAiJA", "e2.AAAA", "gAAAAABn", "e1.\u{1f600}"])
      expect(sealer.open("t", blob, TEXT)).toBeUndefined();
  });

  test("a signature is no seal, nor the other way round", () => {
    const sealed = sealer.seal("t", TEXT).slice(3);
    expect(sealer.open("t", `s1.${sealed}`, TEXT)).toBeUndefined();
    expect(sealer.open("t", `e1.${sealer.sign("t", TEXT).slice(3)}`, TEXT)).toBeUndefined();
  });
});

describe("ids", () => {
  test("sort by age, are short enough, and all different", async () => {
    const first = newId("resp_");
    expect(first).toMatch(/^resp_[0-9a-f]{50}$/);
    expect(Math.abs(Number.parseInt(first.slice(5, 17), 16) - Date.now())).toBeLessThan(1000);
    await Bun.sleep(2);
    const later = newId("resp_");
    expect(later > first).toBe(true);
    expect(newId("msgbatch_").length).toBeLessThanOrEqual(64);
    const many = new Set(Array.from({ length: 10_000 }, () => newId("fc_").slice(15)));
    expect(many.size).toBe(10_000);
  });
});
