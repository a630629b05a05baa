import { describe, expect, test } from "bun:test";
import { converted, model, refusal } from "./models.ts";

const both = { "vocab.json": model("vocab.json"), "merges.txt": model("merges.txt") };
const vocab = JSON.parse(Buffer.from(both["vocab.json"]).toString()) as Record<string, number>;
const SIZE = Object.keys(vocab).length;
const qwen = (config: Record<string, unknown>, more = {}) => ({
  ...both,
  "tokenizer_config.json": { tokenizer_class: "Qwen2Tokenizer", ...config },
  ...more,
});
const ids = (tokens: readonly { id: number; content: string }[]) =>
  Object.fromEntries(tokens.map((t) => [t.content, t.id]));

describe("vocab.json with merges.txt", () => {
  test("of another class is refused by its name", () => {
    const of = (tokenizer_class: string) => refusal({ ...both, "tokenizer_config.json": { tokenizer_class } });
    expect(of("CLIPTokenizer")).toContain("of the tokenizer class CLIPTokenizer are not supported (Qwen2Tokenizer,");
    expect(of("toString")).toContain("toString");
    expect(refusal(both)).toContain("TokenizersBackend");
  });
  test("finds the class by the model type as well", () => {
    expect(refusal({ ...both, "config.json": { model_type: "qwen3" } })).toBe("");
    // registered without a class: what tokenizer_config.json says does not count
    const phi3 = { "config.json": { model_type: "phi3" } };
    expect(refusal({ ...qwen({}), ...phi3 })).toContain("TokenizersBackend");
  });
  test("puts declared tokens in the order of their ids, flags by default what special is not", () => {
    const declared = {
      [SIZE + 1]: { content: "<b>", special: false },
      [SIZE]: { content: "<a>", special: true, lstrip: true },
      [SIZE + 2]: { content: "<|endoftext|>", special: true },
    };
    const { added_tokens } = converted(qwen({ added_tokens_decoder: declared }));
    const flags = added_tokens.map(({ content, normalized, special, lstrip }) => [
      content,
      normalized,
      special,
      lstrip,
    ]);
    expect(flags).toEqual([
      ["<a>", false, true, true],
      ["<b>", true, false, false],
      ["<|endoftext|>", false, true, false],
    ]);
  });
  test("keeps the vocabulary's id of an added token", () => {
    const { added_tokens } = converted(qwen({ eos_token: "a", additional_special_tokens: ["<x>"] }));
    expect(ids(added_tokens)).toEqual({ a: vocab["a"] as number, "<|endoftext|>": SIZE, "<x>": SIZE + 1 });
  });
  test("refuses a declared token that would get another id", () => {
    const token = (id: number) => refusal(qwen({ added_tokens_decoder: { [id]: { content: "<a>", special: true } } }));
    expect(token(SIZE)).toBe("");
    expect(token(SIZE + 1)).toBe(`the added token "<a>" can't have the id ${SIZE + 1}: it would become ${SIZE}`);
    expect(token(3)).toContain("can't have the id 3");
    const old = { "added_tokens.json": { "<a>": SIZE + 9 } };
    expect(refusal(qwen({}, old))).toContain(`can't have the id ${SIZE + 9}`);
  });
  test("puts tokens around texts where tokenizer_config.json says so", () => {
    const post = (config: Record<string, unknown>) => JSON.stringify(converted(qwen(config))["post_processor"]);
    expect(post({})).toBe("null");
    expect(post({ add_bos_token: true })).toBe("null"); // there is no such token
    expect(post({ add_eos_token: true })).toContain(
      `"special_tokens":{"<|endoftext|>":{"id":"<|endoftext|>","ids":[${SIZE}]`,
    );
  });
  test("that is broken is refused by file and line", () => {
    const merges = (text: string) => refusal(qwen({}, { "merges.txt": text }));
    expect(merges("#version: 0.2\na b\n")).toBe("");
    expect(merges("a b\n\nc d")).toBe("line 2 of merges.txt is not two tokens");
    expect(merges("a b c")).toBe("line 1 of merges.txt is not two tokens");
    expect(merges("a ")).toBe("line 1 of merges.txt is not two tokens");
    expect(refusal(qwen({}, { "merges.txt": Buffer.from([0x61, 0x20, 0xff]) }))).toBe("merges.txt is not UTF-8");
    expect(refusal(qwen({}, { "vocab.json": '{"a":1' }))).toContain("vocab.json is not JSON");
    expect(refusal(qwen({}, { "vocab.json": '{"a":-1}' }))).toBe('vocab.json gives "a" no id');
    expect(refusal(qwen({}, { "vocab.json": '{"a":"1"}' }))).toBe('vocab.json gives "a" no id');
    expect(refusal(qwen({}, { "added_tokens.json": { "<a>": "x" } }))).toBe('added_tokens.json gives "<a>" no id');
    expect(refusal(qwen({ added_tokens_decoder: [] }))).toContain(
      "added_tokens_decoder of tokenizer_config.json is not an object",
    );
  });
});
