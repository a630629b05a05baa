import { describe, expect, test } from "bun:test";
import { byteFallbackStream } from "../../../../src/tokenizer/general/byte-fallback.ts";
import { Rng } from "../../../golden/tokenizer/strings.ts";
import { named, pieces } from "./fixtures.ts";

const llama = named("like Llama 2");
const bytes = (...values: number[]): number[] =>
  values.map((b) => llama.tokenId(`<0x${b.toString(16).toUpperCase().padStart(2, "0")}>`)!);
const a = llama.tokenId("a")!;

describe("a run of byte tokens", () => {
  test("is text if all of it is UTF-8, and comes out when it ends", () => {
    expect(pieces(llama, [...bytes(0xe2, 0x9c, 0x93), a])).toEqual(["", "", "", "✓a", ""]);
    expect(pieces(llama, bytes(0xe2, 0x9c, 0x93))).toEqual(["", "", "", "✓"]);
  });
  test("is one U+FFFD per byte if not, as soon as that is certain", () => {
    expect(pieces(llama, bytes(0xe2, 0x9c, 0x93, 0xff, 0x41))).toEqual(["", "", "", "\ufffd".repeat(4), "\ufffd", ""]);
    expect(pieces(llama, [...bytes(0xe2, 0x9c), a])).toEqual(["", "", "\ufffd\ufffda", ""]);
    expect(pieces(llama, bytes(0xe2, 0x9c))).toEqual(["", "", "\ufffd\ufffd"]);
  });
  test("may be long", () => {
    const run = Array.from({ length: 200_000 }, (_, i) => [0xc3, 0xa9][i % 2]!);
    expect(pieces(llama, bytes(...run)).join("")).toBe("é".repeat(100_000));
    expect(pieces(llama, [...bytes(...run), ...bytes(0xff)]).join("")).toBe("\ufffd".repeat(200_001));
  });
  test("takes bytes as they are", () => {
    const out: string[] = [];
    const stream = byteFallbackStream();
    for (const b of [0xf0, 0x9f, 0x91, 0x8d]) stream.pushByte(b, (t) => out.push(t));
    stream.push("x", (t) => out.push(t));
    stream.end((t) => out.push(t));
    expect(out).toEqual(["👍", "x"]);
  });
});

describe("text is not held back without need", () => {
  test("suffixes: only the suffix waits", () => {
    const clip = named("like CLIP");
    const ids = clip.encode("ab the");
    const parts = pieces(clip, ids);
    expect(parts.join("")).toBe("ab the");
    expect(parts.at(-1)).toBe("");
    expect(parts[0]).not.toBe("");
  });
  test("the first space: only that", () => {
    expect(pieces(llama, [llama.tokenId("▁")!, a]).join("")).toBe("a");
    expect(pieces(llama, [a, llama.tokenId("▁")!])).toEqual(["a", " ", ""]);
  });
  test("words come one by one", () => {
    const bert = named("like BERT");
    const ids = bert.encode("the thing");
    expect(
      pieces(bert, ids)
        .slice(0, -1)
        .every((p) => p !== ""),
    ).toBe(true);
  });
});

test("no piece ends within a character", () => {
  for (const name of ["like SmolLM", "like Llama 2", "decoder ByteLevel Strip", "decoder Fuse Replace"]) {
    const tokenizer = named(name);
    const rng = new Rng(5);
    for (let k = 0; k < 200; k++) {
      const ids = Array.from({ length: 30 }, () => rng.below(tokenizer.vocabSize + 2));
      for (const piece of pieces(tokenizer, ids)) expect(piece.isWellFormed()).toBe(true);
    }
  }
});
