import { describe, expect, test } from "bun:test";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { echoOf } from "../../../../src/apis/completions/echo.ts";
import { characters, LegacyDrawing, legacyToken } from "../../../../src/apis/completions/logprobs.ts";
import { continuedDecoder } from "../../../../src/generation/continued-decoder.ts";
import { loadTokenizer, openTokenizer } from "../../../../src/tokenizer/load.ts";
import { demoTokenizer, END_OF_TEXT, encode } from "../../generation/demo-tokenizer.ts";

const FAMILY = "👩‍👩‍👧";

test("characters are code points", () => {
  expect(["", "a", "日本", "👍", FAMILY, "e\u0301"].map(characters)).toEqual([0, 1, 2, 1, 5, 2]);
});

test("tokens are text, bytes where they are parts of a character, or ids", () => {
  expect(encode("é").map((id) => legacyToken(id, demoTokenizer, false))).toEqual(["é"]);
  const parts = encode("𒀀").map((id) => legacyToken(id, demoTokenizer, false));
  expect(parts.length).toBeGreaterThan(1);
  const bytes = parts.flatMap((part) =>
    part.match(/\\x[0-9a-f]{2}/g)!.map((byte) => Number.parseInt(byte.slice(2), 16)),
  );
  expect(parts.every((part) => part.startsWith("bytes:\\x"))).toBe(true);
  expect(Buffer.from(bytes).toString()).toBe("𒀀");
  expect(legacyToken(7, demoTokenizer, true)).toBe("token_id:7");
});

describe("offsets", () => {
  const offsetsOf = (ids: readonly number[], start = 0, before?: Uint32Array) =>
    new LegacyDrawing(demoTokenizer, continuedDecoder(demoTokenizer, true, before), false, start).output(
      ids,
      ids.map((id) => ({ id, logprob: -1, top: [] })),
    ).text_offset;

  test("all parts of a character begin where it begins; what is not shown has no length", () => {
    const ids = [...encode("a𒀀b"), END_OF_TEXT];
    const parts = encode("𒀀").length;
    expect(offsetsOf(ids, 10)).toEqual([10, ...Array.from({ length: parts }, () => 11), 12, 13]);
  });

  test("a token that the engine left out still takes its place", () => {
    const ids = encode("one two three");
    const drawing = new LegacyDrawing(demoTokenizer, demoTokenizer.decoder({ skipSpecialTokens: true }), false, 0);
    const entries = [ids[0]!, ids[2]!].map((id) => ({ id, logprob: -1, top: [] }));
    expect(drawing.output(ids, entries)).toMatchObject({ tokens: ["one", " three"], text_offset: [0, 7] });
  });
});

test("values below what JSON can say are -9999, and the token is among its alternatives", () => {
  const drawing = new LegacyDrawing(demoTokenizer, demoTokenizer.decoder({ skipSpecialTokens: true }), false, 0);
  const [a, b] = [encode("a")[0]!, encode("b")[0]!];
  const top = [{ id: b, logprob: -0.5 }];
  const drawn = drawing.output([a], [{ id: a, logprob: Number.NEGATIVE_INFINITY, top }]);
  expect(drawn).toEqual({
    tokens: ["a"],
    token_logprobs: [-9999],
    top_logprobs: [{ a: -9999, b: -0.5 }],
    text_offset: [0],
  });
});

describe("with a SentencePiece tokenizer that begins texts with a space, and a BOS", async () => {
  const path = join(import.meta.dir, "../../../golden/completions/fim.model");
  const config = JSON.stringify({ tokenizer_class: "LlamaTokenizer", add_bos_token: true, bos_token: "<s>" });
  const files = new Map([["tokenizer.model", readFileSync(path)]]);
  const tokenizer = openTokenizer(await loadTokenizer(files.set("tokenizer_config.json", Buffer.from(config))));
  const ids = Array.from(tokenizer.encode("the quick fox"));

  test("an answer keeps the space between it and its prompt", () => {
    const texts = (decoder: ReturnType<typeof continuedDecoder>) => ids.slice(1).map((id) => decoder.push(id));
    const alone = texts(continuedDecoder(tokenizer, true, undefined)).join("");
    const continued = texts(continuedDecoder(tokenizer, true, Uint32Array.of(ids[0]!))).join("");
    const whole = ids.map((id) => Buffer.from(tokenizer.tokenBytes(id)).toString()).join("");
    expect(whole).toBe(" the quick fox");
    const rest = whole.slice(Buffer.from(tokenizer.tokenBytes(ids[0]!)).toString().length);
    expect(continued).toBe(rest);
    expect(rest.startsWith(" ")).toBe(alone !== rest);
  });

  test("an echo has no BOS; its offsets are those of the text", () => {
    const bos = tokenizer.tokenId("<s>")!;
    const added = tokenizer.postProcessor.single[0] === bos;
    const given = Uint32Array.from(added ? tokenizer.encode("the quick fox", { addSpecialTokens: true }) : ids);
    const echo = echoOf("the quick fox", given, tokenizer, { added: true, cutTo: undefined });
    expect(echo).toEqual({ text: "the quick fox", from: added ? 1 : 0 });
    const decoder = tokenizer.decoder({ skipSpecialTokens: false });
    const drawing = new LegacyDrawing(tokenizer, decoder, false, 0);
    const list = Array.from(given);
    const { tokens, text_offset: offsets } = drawing.prompt(
      { tokenIds: list, logprobs: list.map(() => -1), top: [] },
      echo.from,
      characters(echo.text),
    );
    for (const [i, token] of tokens.entries()) {
      if (token === "<s>") continue;
      const begun = token.startsWith(" ") && offsets[i] === 0 ? token.slice(1) : token;
      expect(echo.text.slice(offsets[i], offsets[i]! + begun.length)).toBe(begun);
    }
    expect(echoOf(undefined, given, tokenizer, { added: true, cutTo: undefined }).text).toBe(
      added ? "<s> the quick fox" : "the quick fox",
    );
  });
});
