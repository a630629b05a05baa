import { describe, expect, test } from "bun:test";
import { parseTokenizerJson, type TokenizerJson } from "../../../src/tokenizer/image/tokenizer-json.ts";
import { TokenizerError } from "../../../src/tokenizer/tokenizer.ts";
import { random } from "./fixtures.ts";

const parse = (text: string): TokenizerJson => parseTokenizerJson(Buffer.from(text));

/** Names and ids as the reader found them. */
function vocabulary({ words }: TokenizerJson): Record<string, number> {
  const out: Record<string, number> = {};
  for (let i = 0; i < (words?.count ?? 0); i++) {
    out[Buffer.from(words!.bytes.subarray(words!.offsets[i], words!.offsets[i + 1])).toString()] = words!.ids[i]!;
  }
  return out;
}
const ascii = (json: string): string =>
  json.replace(/[\u0080-\uffff]/g, (c) => `\\u${c.charCodeAt(0).toString(16).padStart(4, "0")}`);

describe("tokenizer.json", () => {
  const vocab = { a: 0, b: 1, ab: 2, 'q"\\/': 3, "\b\f\n\r\t\u0001": 4, Ġé: 5, "中😀": 6, "": 7, 中: 8, "😀": 9 };
  const merges = ["a b", "中 😀"];
  const whole = {
    version: "1.0",
    model: { type: "BPE", vocab, merges, note: [{ vocab: { x: 1 } }, '}]\\"'] },
    added_tokens: [],
  };

  test("is read like JSON.parse reads it, however it is written", () => {
    const pairs = { ...whole, model: { ...whole.model, merges: merges.map((m) => m.split(" ")) } };
    const reordered = {
      added_tokens: [],
      model: { merges, type: "BPE", vocab },
      decoder: { model: { vocab: {}, merges: 1 } },
    };
    for (const json of [whole, pairs, reordered]) {
      for (const text of [
        JSON.stringify(json),
        JSON.stringify(json, null, 2),
        ascii(JSON.stringify(json)),
        `\r\n\t ${JSON.stringify(json)} \n`,
      ]) {
        const parsed = parse(text);
        expect(vocabulary(parsed)).toEqual(vocab);
        expect([...(parsed.merges ?? [])]).toEqual([0, 1, 2, 8, 9, 6]);
        expect(parsed.model.type).toBe("BPE");
      }
    }
    expect((parse(JSON.stringify(reordered)).decoder as { model: unknown }).model).toEqual({ vocab: {}, merges: 1 });
  });

  test("keeps thousands of words apart", () => {
    const next = random(4);
    const words: Record<string, number> = {};
    for (let id = 0; id < 70_000; id++) words[`${"abĠé中"[id % 5]}${id}${"x".repeat(Math.floor(next() * 3))}`] = id;
    const parsed = parse(JSON.stringify({ model: { vocab: words, merges: [] } }));
    expect(parsed.words?.count).toBe(70_000);
    for (const [word, id] of Object.entries(words)) {
      const key = Buffer.from(`<${word}>`);
      expect(parsed.words?.find(key, 1, key.length - 1)).toBe(id);
    }
    expect(parsed.words?.find(Buffer.from("nothing"), 0, 7)).toBe(-1);
  });

  test("is an error wherever it is cut off", () => {
    const bytes = Buffer.from(JSON.stringify(whole));
    for (let end = 0; end < bytes.length; end++)
      expect(() => parseTokenizerJson(bytes.subarray(0, end))).toThrow(TokenizerError);
  });

  test("is an error if it is not what it should be", () => {
    const model = (vocab: string, merges = "[]"): string => `{"model":{"vocab":${vocab},"merges":${merges}}}`;
    const bad = [
      model('{"a":-1}'),
      model('{"a":1.5}'),
      model('{"a":"1"}'),
      model('{"a":null}'),
      model('{"a":99999999}'),
      model('{"a":12345678901234}'),
      model('{"a":1,"a":2}'),
      model('{"a":1,}'),
      model('{"a" 1}'),
      model("{a:1}"),
      model('{"a":1;"b":2}'),
      model('{"\\x":1}'),
      model('{"\\u12g4":1}'),
      model('{"\\ud800":1}'),
      model('{"\\ud800\\u0041":1}'),
      model('{"a\nb":1}'),
      model('{"a":1}', '["a"]'),
      model('{"a":1}', '["a a"]'),
      model('{"a":1}', '[["a"]]'),
      model('{"a":1}', '[["a","a","a"]]'),
      model('{"a":1}', "[1]"),
      model('{"a":1}', "{}"),
      model('{"a":1}', '["a a",]'),
      '{"model":{}} x',
      '{"model":{"vocab":{}}',
      '{"model":[]}',
      "null",
      '"x"',
    ];
    for (const text of bad)
      expect([
        text,
        ((): unknown => {
          try {
            return parse(text);
          } catch (e) {
            return e;
          }
        })(),
      ]).toEqual([text, expect.any(TokenizerError)]);
  });
});
