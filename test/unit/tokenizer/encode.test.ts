import { describe, expect, test } from "bun:test";
import { sampleText } from "../../../src/tokenizer/sample-text.ts";
import type { TextBuffer } from "../../../src/tokenizer/tokenizer.ts";
import { processorMs } from "../../support/processor-time.ts";
import { random, smallTokenizer } from "./fixtures.ts";

test("the Digits pre-tokenizer has numbers that the patterns do not know", async () => {
  const tokenizer = await smallTokenizer("gpt2_digits");
  // asked from tokenizers 0.23.3: two spaces, then each of the newer digits alone
  expect([...tokenizer.encode("!!  \u{11de0}\u{11de1}!!")]).toEqual([
    0, 0, 264, 172, 239, 115, 254, 172, 239, 115, 94, 0, 0,
  ]);
});

describe("encoding", async () => {
  const tokenizer = await smallTokenizer("cl100k_nfc");
  const text = (ids: Uint32Array): string => {
    const decoder = tokenizer.decoder({ skipSpecialTokens: false });
    return [...ids].map((id) => decoder.push(id)).join("") + decoder.end();
  };

  test("gives arrays of the caller's own", () => {
    const first = tokenizer.encode("one two three");
    const copy = [...first];
    tokenizer.encode("something else");
    expect([...first]).toEqual(copy);
    expect(first.buffer).toBeInstanceOf(ArrayBuffer);
    expect(tokenizer.encode("")).toEqual(new Uint32Array(0));
  });
  test("takes lone surrogates as U+FFFD", () => {
    for (const s of ["a\ud800b", "\udc00", "x\udfff\ud800", "中\ud83d文"]) {
      expect(tokenizer.encode(s)).toEqual(tokenizer.encode(s.toWellFormed()));
    }
  });
  test("normalizes between added tokens only", () => {
    // U+0338 would join the ">" before it and destroy the token
    expect(text(tokenizer.encode("<think>\u0338e\u0301</think>"))).toBe("<think>\u0338é</think>");
    expect(tokenizer.encode("<think>\u0338")[0]).toBe(tokenizer.tokenId("<think>") as number);
  });
  test("takes long and hostile texts in linear time", () => {
    for (const unit of ["a", "中", "-", " ", "=\n", "\u0301", "é"]) {
      const long = unit.repeat(200_000);
      expect(text(tokenizer.encode(long)).length).toBe(long.normalize("NFC").length);
    }
  }, 20_000);
  test("puts runs of marks in order in linear time", () => {
    const start = processorMs();
    expect(tokenizer.encode(`a${"\u0301\u0323".repeat(500_000)}`).length).toBeGreaterThan(1_000_000);
    expect(processorMs() - start).toBeLessThan(3000);
    expect(tokenizer.encode(`a${"\u0301\u0323".repeat(100)}`)).toEqual(
      tokenizer.encode(`a${"\u0301\u0323".repeat(100)}`.normalize("NFC")),
    );
  });
  test("sample texts differ by their seed, and hold no special tokens", () => {
    const sample = sampleText(tokenizer, 300, 1);
    expect(sample.length).toBeGreaterThan(300);
    expect(sampleText(tokenizer, 300, 1)).toBe(sample);
    expect(sampleText(tokenizer, 300, 2)).not.toBe(sample);
    expect(tokenizer.encode(sample).some((id) => tokenizer.isSpecial(id))).toBe(false);
  });
});

describe.each(["cl100k_nfc", "o200k", "gemma"])("the serving thread with %s", async (name) => {
  const tokenizer = await smallTokenizer(name);
  const next = random(4);
  const letters = (n: number): string =>
    Array.from({ length: n }, () => String.fromCharCode(97 + Math.floor(next() * 26))).join("");
  const word = letters(250_000);

  test("gives up what would hold it for long", () => {
    expect(tokenizer.encodeSoon(word)).toBeUndefined();
    expect(tokenizer.encodeSoon("some text ".repeat(30_000))).toBeUndefined();
    expect(tokenizer.encode(word).length).toBeGreaterThan(50_000);
  });
  test("does not give up ordinary text, nor a repeated letter", () => {
    const code = "export const value = compute(first, second); // as it was before\n".repeat(4000).slice(0, 250_000);
    for (const text of [code, "a".repeat(250_000), " ".repeat(250_000), letters(2000), ""]) {
      expect(tokenizer.encodeSoon(text)).toEqual(tokenizer.encode(text));
    }
  });
  test("the text stays as it was written when it is given up", () => {
    const buffer = tokenizer.buffer as TextBuffer;
    const special = name === "gemma" ? "<end_of_turn>" : "<|end|>";
    const text = `${special}${letters(600_000)}${special}x`;
    const written = buffer.write(text);
    expect(buffer.encodeFrom(0)).toBeUndefined();
    expect(Buffer.from(written).toString()).toBe(text);
    const cut = buffer.nextCut(special.length);
    expect(cut).toBe(text.length - 1);
    expect([...(buffer.encodeFrom(cut)?.ids ?? [])]).toEqual([...tokenizer.encode("x")]);
  });
});
