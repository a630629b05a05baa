import { describe, expect, test } from "bun:test";
import { buildGeneral } from "../../../../src/tokenizer/general/build.ts";
import { openGeneral } from "../../../../src/tokenizer/general/open.ts";
import { TokenizerError } from "../../../../src/tokenizer/tokenizer.ts";
import { variant } from "../../../golden/tokenizer-general/variants.ts";
import { characters, named, opened } from "./fixtures.ts";

const bert = named("like BERT");
const utf8 = (bytes: Uint8Array): string => Buffer.from(bytes).toString();

describe("the tokenizer", () => {
  test("puts the post-processor's ids around a text on demand", () => {
    const ids = bert.encode("hello");
    expect([...bert.encode("hello", { addSpecialTokens: true })]).toEqual([2, ...ids, 3]);
    expect(bert.postProcessor).toEqual({ single: [2, "A", 3], pair: [2, "A", 3, "B", 3] });
    expect([...bert.encode("", { addSpecialTokens: true })]).toEqual([2, 3]);
  });
  test("takes special tokens for text on demand, other added tokens not", () => {
    const added = [
      { id: 0, content: "<x>", special: true },
      { id: 1, content: "ab", special: false },
    ];
    const tokenizer = characters({ added_tokens: added });
    const [x, ab] = [tokenizer.tokenId("<x>")!, tokenizer.tokenId("ab")!];
    expect([...tokenizer.encode("<x>ab")]).toEqual([x, ab]);
    const plain = tokenizer.encode("<x>ab", { specialAsText: true });
    expect(plain).not.toContain(x);
    expect(plain.at(-1)).toBe(ab);
  });
  test("counts lone surrogates as U+FFFD", () => {
    for (const s of ["\ud800", "a\udc00b", "\ud83d"]) expect(bert.encode(s)).toEqual(bert.encode(s.toWellFormed()));
  });
  test("returns arrays of their own", () => {
    const first = bert.encode("hello");
    const copy = first.slice();
    first.fill(0);
    expect(bert.encode("hello")).toEqual(copy);
  });
  test("leaves long texts to others", () => {
    const short = "word ".repeat(1000);
    expect(bert.encodeSoon(short)).toEqual(bert.encode(short));
    expect(bert.encodeSoon(short, { addSpecialTokens: true })![0]).toBe(2);
    expect(bert.encodeSoon(short.repeat(10))).toBeUndefined();
    expect(bert.buffer).toBeUndefined();
    expect(bert.longestToken).toBe(Number.POSITIVE_INFINITY);
  });
  test("names tokens, their bytes and what is special", () => {
    expect(bert.tokenId("[CLS]")).toBe(2);
    expect(bert.tokenId("no such token")).toBeUndefined();
    expect(bert.tokenId("")).toBeUndefined();
    expect([2, 3, 5, -1, 1e6, 1.5].map(bert.isSpecial)).toEqual([true, true, false, false, false, false]);
    const inner = [...Array(bert.vocabSize).keys()].find((id) => utf8(bert.tokenBytes(id)) === "ing")!;
    expect(bert.tokenId("##ing")).toBe(inner);
    expect(bert.tokenBytes(1e6)).toEqual(new Uint8Array(0));
    const llama = named("like Llama 2");
    expect([...llama.tokenBytes(llama.tokenId("<0xE2>")!)]).toEqual([0xe2]);
    const smol = named("like SmolLM");
    expect(utf8(smol.tokenBytes(smol.tokenId("Ġ")!))).toBe(" ");
  });
  test("numbers added tokens as the library does, whatever the file says", () => {
    const added = [
      { id: 7, content: "new" },
      { id: 9, content: "a" },
      { id: 11, content: "newer" },
    ];
    const tokenizer = characters({ added_tokens: added });
    const plain = characters({});
    expect(tokenizer.tokenId("a")).toBe(plain.tokenId("a")!);
    expect([tokenizer.tokenId("new"), tokenizer.tokenId("newer")]).toEqual([382, 383]);
  });
});

describe("its memory", () => {
  const memory = buildGeneral(variant("like T5"));
  test("can be opened again and again, with the same ids", () => {
    expect(memory).toBeInstanceOf(SharedArrayBuffer);
    const ids = openGeneral(memory).encode("The ½ of it");
    expect(openGeneral(memory).encode("The ½ of it")).toEqual(ids);
  });
  test("serves other threads", async () => {
    const worker = new Worker(new URL("./worker.ts", import.meta.url).href);
    const answered = new Promise((resolve, reject) => {
      worker.onmessage = ({ data }) => resolve(data);
      worker.onerror = (event) => reject(new Error(event.message));
    });
    worker.postMessage({ memory, text: "Über ½ <extra_id_0> x" });
    expect(await answered).toEqual([...openGeneral(memory).encode("Über ½ <extra_id_0> x")]);
    worker.terminate();
  });
  test("is refused if it is none", () => {
    const copy = (): SharedArrayBuffer => memory.slice(0);
    const old = copy();
    new Uint32Array(old)[1]!++;
    const cut = memory.slice(0, memory.byteLength - 8);
    for (const wrong of [new SharedArrayBuffer(0), new SharedArrayBuffer(64), old, cut])
      expect(() => openGeneral(wrong)).toThrow(TokenizerError);
    expect(openGeneral(copy()).encode("x")).toEqual(opened(variant("like T5")).encode("x"));
  });
});
