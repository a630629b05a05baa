import { describe, expect, test } from "bun:test";
import type { Tokenizer } from "../../../src/tokenizer/tokenizer.ts";
import { type Utf8Stream, unfinished, utf8Stream } from "../../../src/tokenizer/utf8-decoder.ts";
import { random, smallTokenizer } from "./fixtures.ts";

const whole = (bytes: Uint8Array): string => new TextDecoder("utf-8", { ignoreBOM: true }).decode(bytes);

function streamed(tokenizer: Tokenizer, ids: readonly number[], skipSpecialTokens: boolean): string {
  const decoder = tokenizer.decoder({ skipSpecialTokens });
  return ids.map((id) => decoder.push(id)).join("") + decoder.end();
}

for (const name of ["cl100k", "o200k", "gemma"]) {
  describe(`decoding with ${name}`, async () => {
    const tokenizer = await smallTokenizer(name);
    const { vocabSize } = tokenizer;
    const single = Array.from({ length: vocabSize }, (_, id) => id).filter(
      (id) => tokenizer.tokenBytes(id).length === 1,
    );
    const outside = [
      -1,
      vocabSize,
      vocabSize + 1,
      2 ** 31,
      2 ** 32,
      2 ** 40,
      Number.NaN,
      0.5,
      Number.POSITIVE_INFINITY,
    ];

    // a run of byte tokens decodes as a whole: byte-fallback.test.ts
    test.skipIf(name === "gemma")("equals the decoding of all bytes, for any ids", () => {
      const next = random(5);
      for (let round = 0; round < 3000; round++) {
        const ids = Array.from({ length: 1 + Math.floor(next() * 30) }, () => {
          const kind = next();
          if (kind < 0.1) return outside[Math.floor(next() * outside.length)] as number;
          if (kind < 0.6) return single[Math.floor(next() * single.length)] as number;
          return Math.floor(next() * vocabSize);
        });
        const kept = ids.filter((id) => !tokenizer.isSpecial(id));
        expect(streamed(tokenizer, ids, false)).toBe(whole(Buffer.concat(ids.map((id) => tokenizer.tokenBytes(id)))));
        expect(streamed(tokenizer, ids, true)).toBe(whole(Buffer.concat(kept.map((id) => tokenizer.tokenBytes(id)))));
      }
    });
    test("gives nothing for ids outside the vocabulary", () => {
      for (const id of outside) {
        expect([id, streamed(tokenizer, [id], false), tokenizer.tokenBytes(id).length]).toEqual([id, "", 0]);
        expect(tokenizer.isSpecial(id)).toBe(false);
      }
    });
    test("can be used again after end()", () => {
      const decoder = tokenizer.decoder({ skipSpecialTokens: true });
      const lead = single.find((id) => tokenizer.tokenBytes(id)[0] === 0xe4) as number;
      const a = single.find((id) => tokenizer.tokenBytes(id)[0] === 0x61) as number;
      expect([decoder.push(lead), decoder.end(), decoder.push(a) + decoder.end()]).toEqual(["", "\ufffd", "a"]);
    });
    test("round-trips text", () => {
      const text = "Ünïcode \ufeff 文字化け 👩‍💻\r\n\t<think>x</think> a\u0301 \ufffd";
      expect(streamed(tokenizer, [...tokenizer.encode(text)], false)).toBe(text);
    });
    test("shows special tokens only on demand, and finds tokens by text", () => {
      const special = name === "gemma" ? "<end_of_turn>" : "<|end|>";
      const id = tokenizer.tokenId(special) as number;
      expect([...tokenizer.encode(special)]).toEqual([id]);
      expect(tokenizer.isSpecial(id)).toBe(true);
      expect([streamed(tokenizer, [id], false), streamed(tokenizer, [id], true)]).toEqual([special, ""]);
      expect(tokenizer.tokenId("<|no such token|>")).toBeUndefined();
      expect(tokenizer.tokenId("")).toBeUndefined();
    });
  });
}

function push(stream: Utf8Stream, bytes: Uint8Array): string {
  stream.room(bytes.length).set(bytes, stream.held());
  return stream.taken(bytes.length);
}

describe("the byte stream", () => {
  // bytes that begin, continue and break characters in every way
  const bytes = [
    0x41, 0x7f, 0x80, 0x8f, 0x90, 0x9f, 0xa0, 0xbf, 0xc0, 0xc2, 0xdf, 0xe0, 0xed, 0xef, 0xf0, 0xf4, 0xf5, 0xff,
  ];

  test("joins to the whole decoding at any chunking", () => {
    const next = random(9);
    for (let round = 0; round < 20_000; round++) {
      const all = Uint8Array.from(
        { length: 1 + Math.floor(next() * 9) },
        () => bytes[Math.floor(next() * bytes.length)] as number,
      );
      const stream = utf8Stream();
      let out = "";
      for (let at = 0; at < all.length; ) {
        const size = 1 + Math.floor(next() * 3);
        out += push(stream, all.subarray(at, at + size));
        at += size;
      }
      expect(out + stream.end()).toBe(whole(all));
    }
  });
  test("holds back only what more bytes could complete", () => {
    const held = (...seq: number[]): number => unfinished(Uint8Array.from(seq), seq.length);
    expect([held(0xf0, 0x9f, 0x98), held(0xf0, 0x9f), held(0xf0), held(0xe4, 0xb8), held(0xc3)]).toEqual([
      3, 2, 1, 2, 1,
    ]);
    expect([
      held(0xf0, 0x80),
      held(0xed, 0xa0),
      held(0xe0, 0x9f),
      held(0xf4, 0x90),
      held(0xc0),
      held(0xff),
      held(0x80),
    ]).toEqual([0, 0, 0, 0, 0, 0, 0]);
  });
  test("takes tokens of any length", () => {
    const stream = utf8Stream();
    const long = Buffer.from("é".repeat(5000));
    expect(push(stream, long.subarray(0, 9999)) + push(stream, long.subarray(9999)) + stream.end()).toBe(
      "é".repeat(5000),
    );
  });
});
