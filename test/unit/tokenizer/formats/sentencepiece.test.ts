import { describe, expect, test } from "bun:test";
import { Kind, readSentencePiece } from "../../../../src/tokenizer/formats/sentencepiece.ts";
import { TokenizerError } from "../../../../src/tokenizer/tokenizer.ts";
import { random } from "../fixtures.ts";
import { converted, model, refusal } from "./models.ts";

const llama = model("bpe_llama.model");
const unigram = model("unigram_plain.model");
const folder = (bytes: Uint8Array, tokenizer_class?: string, more = {}) => ({
  "tokenizer.model": bytes,
  "tokenizer_config.json": { tokenizer_class, ...more },
});

/** A protobuf field: a whole number, or bytes. */
function field(number: number, value: number | Uint8Array): Buffer {
  const varint = (n: number): number[] => (n < 128 ? [n] : [(n & 127) | 128, ...varint(Math.floor(n / 128))]);
  if (typeof value === "number") return Buffer.from([...varint(number * 8), ...varint(value)]);
  return Buffer.concat([Buffer.from([...varint(number * 8 + 2), ...varint(value.length)]), value]);
}

describe("a SentencePiece model", () => {
  test("is read piece by piece", () => {
    const read = readSentencePiece("x", model("bpe_user.model"));
    expect(read.pieces.length).toBe(1200);
    expect(read.pieces.slice(0, 7).map(({ text, kind }) => [text, kind])).toEqual([
      ["<unk>", Kind.unknown],
      ["<s>", Kind.control],
      ["</s>", Kind.control],
      ["<ctl>", Kind.control],
      ["<tool>", Kind.userDefined],
      ["a.b", Kind.userDefined],
      ["한국", Kind.userDefined],
    ]);
    expect(read.pieces[7]).toEqual({ text: "<0x00>", score: 0, kind: Kind.byte });
    expect(read).toMatchObject({ type: "bpe", byteFallback: true, addDummyPrefix: true, removeExtraWhitespaces: true });
    expect(read.special).toMatchObject({ unk: { id: 0, text: "<unk>" }, pad: { id: -1, text: "<pad>" } });
    expect(readSentencePiece("x", unigram)).toMatchObject({ type: "unigram", removeExtraWhitespaces: false });
    expect(readSentencePiece("x", model("unigram_nmt.model")).charsmap.length).toBeGreaterThan(200_000);
  });
  test("gives added tokens of its control and user-defined pieces", () => {
    const added = converted(folder(model("bpe_user.model"), "LlamaTokenizer")).added_tokens;
    expect(added.map((t) => [t.content, t.id, t.special])).toEqual([
      ["<unk>", 0, true],
      ["<s>", 1, true],
      ["</s>", 2, true],
      ["<ctl>", 3, true],
      ["<tool>", 4, false],
      ["a.b", 5, false],
      ["한국", 6, false],
    ]);
  });
  test("is refused for a class that is not known, or that it is not made for", () => {
    expect(refusal(folder(unigram, "AlbertTokenizer"))).toContain(
      "of the tokenizer class AlbertTokenizer is not supported",
    );
    expect(refusal(folder(unigram, "LlamaTokenizer"))).toBe(
      "tokenizer.model is a unigram model, which the class LlamaTokenizer is not made for",
    );
    expect(refusal(folder(llama, "T5TokenizerFast"))).toContain("is a bpe model");
    expect(refusal(folder(llama, "LlamaTokenizerFast"))).toBe("");
  });
  test("of another type is refused by its name", () => {
    const typed = (type: number, more: Uint8Array[] = []): string =>
      refusal(folder(Buffer.concat([llama, field(2, Buffer.concat([field(3, type), ...more]))])));
    expect(typed(3)).toContain("the model type word");
    expect(typed(4)).toContain("the model type char");
    expect(typed(2, [field(24, 1)])).toContain("treat_whitespace_as_suffix");
    expect(typed(2, [field(40, 5000)])).toContain("no piece for what it does not know");
  });
  test("that is broken is refused by part", () => {
    const piece = (...parts: Uint8Array[]): string =>
      refusal(folder(Buffer.concat([llama, field(1, Buffer.concat(parts))])));
    expect(piece(field(1, Buffer.from("<s>")))).toBe('tokenizer.model has the piece "<s>" twice');
    expect(piece(field(1, Buffer.from([0xff])))).toBe("the piece 1200 of tokenizer.model is not UTF-8");
    expect(piece(field(3, 1))).toBe("the piece 1200 of tokenizer.model has no text");
    expect(piece(Buffer.from([0x15, 0, 0, 0xc0, 0x7f]), field(1, Buffer.from("q!")))).toContain("has no score");
    expect(refusal(folder(llama.subarray(0, 200)))).toContain("tokenizer.model");
    expect(refusal({ "tokenizer.model": field(1, field(1, Buffer.from("abc"))) })).toContain("is cut off");
  });
  test("cut off or damaged anywhere is read or refused, nothing else", () => {
    const next = random(7);
    let refused = 0;
    const attempt = (bytes: Uint8Array): void => {
      try {
        readSentencePiece("x", bytes);
      } catch (error) {
        expect(error).toBeInstanceOf(TokenizerError);
        refused++;
      }
    };
    // what lies behind the last piece are the trainer and the normalizer
    for (let i = 0; i < 400; i++) attempt(llama.subarray(0, Math.floor(next() * llama.length)));
    expect(refused).toBeGreaterThan(395);
    for (let i = 0; i < 400; i++) {
      const bytes = llama.slice();
      for (let n = 0; n < 3; n++) bytes[Math.floor(next() * bytes.length)] = Math.floor(next() * 256);
      attempt(bytes);
    }
  });
});
