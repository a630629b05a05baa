import { describe, expect, test } from "bun:test";
import { rankedBytesJson } from "../../../../src/tokenizer/formats/ranked-bytes.ts";
import { readTiktoken } from "../../../../src/tokenizer/formats/tiktoken.ts";
import { parseTokenizerJson, type TokenizerJson } from "../../../../src/tokenizer/image/tokenizer-json.ts";
import { layOut } from "../../../../src/tokenizer/image/vocabulary.ts";
import { converted, model, refusal } from "./models.ts";

const RANKS = Buffer.from(model("ranks.tiktoken")).toString();
const LINES = RANKS.trimEnd().split("\n");
const END = LINES.length;
const special = (content: string, more = {}) => ({ content, special: true, ...more });
const folder = (ranks: string, more = {}) => ({
  "tokenizer.model": ranks,
  "tokenizer_config.json": { added_tokens_decoder: { [END]: special("<|end|>") }, ...more },
});

describe("a tiktoken file", () => {
  test("gives tokens in the order of their ranks", () => {
    const shuffled = LINES.toReversed().join("\r\n");
    const ranks = readTiktoken("x", Buffer.from(shuffled));
    expect([...ranks.values()]).toEqual(LINES.map((_, i) => i));
    expect(ranks.get("a")).toBe(97);
  });
  test("that is broken is refused by line", () => {
    const broken = (line: string, at = 300): string => refusal(folder(LINES.toSpliced(at, 1, line).join("\n")));
    expect(broken("YWI=")).toBe("line 301 of tokenizer.model is not base64 and a rank");
    expect(broken("YWI= x")).toBe("line 301 of tokenizer.model is not base64 and a rank");
    expect(broken("YWI 300")).toBe("line 301 of tokenizer.model is not base64");
    expect(broken(" 300")).toBe("line 301 of tokenizer.model is not base64");
    expect(broken("YW*= 300")).toBe("line 301 of tokenizer.model is not base64");
    expect(broken("eHl6enp6 299")).toBe("line 301 of tokenizer.model has the rank 299 of another token");
    expect(broken("YQ== 300")).toBe("the tokens 97 and 300 of tokenizer.model are the same");
    expect(broken("YWI= 99999999")).toBe("line 301 of tokenizer.model has the rank 99999999");
    expect(broken(`${Buffer.alloc(3000, "ab").toString("base64")} 300`)).toContain("has 3000 bytes");
    expect(broken("eHl6enp6 97", 97)).toBe("tokenizer.model has no token for the byte 97");
    expect(refusal(folder(RANKS.slice(0, -2)))).toContain("line");
  });
  test("needs its special tokens", () => {
    expect(refusal({ "x.tiktoken": RANKS })).toContain("must stand in added_tokens_decoder");
    const token = (id: string, value: unknown) => refusal(folder(RANKS, { added_tokens_decoder: { [id]: value } }));
    expect(token("5", special("<x>"))).toBe('the added token "<x>" has an id among the ranks of tokenizer.model');
    expect(token("9999999", special("<x>"))).toBe('the added token "<x>" has the id 9999999');
    expect(token("x", special("<x>"))).toContain('has the key "x", which is no id');
    expect(token(String(END), {})).toContain("has no text");
    expect(token(String(END), special("<x>", { special: 1 }))).toContain("neither true nor false");
  });
  test("of a class with a pattern of its own is refused", () => {
    expect(refusal(folder(RANKS, { tokenizer_class: "QWenTokenizer" }))).toContain(
      "of the class QWenTokenizer, is not known",
    );
    expect(refusal({ ...folder(RANKS), "tokenizer.model": new Uint8Array(0), "p50k_base.tiktoken": RANKS })).toContain(
      "pattern",
    );
  });
  test("of Kimi's must fit the size of the vocabulary", () => {
    const kimi = (vocab_size: number) =>
      refusal({ ...folder(RANKS), "config.json": { model_type: "kimi_k2", vocab_size } });
    expect(kimi(END + 256)).toBe("");
    expect(kimi(END + 258)).toBe("");
    expect(kimi(END + 300)).toContain("does not fit the vocab_size");
  });
});

describe("a tekken.json", () => {
  const tekken = JSON.parse(Buffer.from(model("tekken_v13.json")).toString()) as {
    config: Record<string, unknown>;
    vocab: { rank: number; token_bytes: string }[];
    special_tokens: { rank: number; token_str: string }[];
  };
  const changed = (edit: (json: typeof tekken) => void): string => {
    const json = structuredClone(tekken);
    edit(json);
    return refusal({ "tekken.json": json });
  };
  test("is taken as it stands", () => {
    expect(changed(() => {})).toBe("");
    const { added_tokens } = converted({ "tekken.json": tekken });
    expect(added_tokens.length).toBe(40);
    expect(added_tokens.slice(6, 10).map((t) => t.content)).toEqual([
      "[THINK]",
      "[/THINK]",
      "<SPECIAL_8>",
      "<SPECIAL_9>",
    ]);
    expect(added_tokens.every((t) => t.special)).toBe(true);
  });
  test("that is broken is refused by part", () => {
    expect(refusal({ "tekken.json": "{" })).toContain("tekken.json is not JSON");
    expect(refusal({ "tekken.json": "[]" })).toBe("tekken.json is not a JSON object");
    expect(changed((j) => delete j.config["pattern"])).toContain("no config with a pattern");
    expect(changed((j) => Object.assign(j, { vocab: {} }))).toBe("tekken.json has no list vocab");
    expect(changed((j) => Object.assign(j, { special_tokens: undefined }))).toBe("tekken.json has no special_tokens");
    expect(changed((j) => j.special_tokens.splice(3, 1))).toContain("have gaps");
    expect(changed((j) => (j.special_tokens[3]!.rank = 2))).toContain("has the rank 2 twice");
    expect(changed((j) => (j.special_tokens[3]!.token_str = "<s>"))).toBe("tekken.json has a special token twice");
    expect(changed((j) => (j.config["default_num_special_tokens"] = 3))).toContain("default_num_special_tokens");
    expect(changed((j) => (j.config["default_vocab_size"] = 1e6))).toContain("default_vocab_size");
    expect(changed((j) => (j.vocab[400]!.rank = 3))).toBe(
      "entry 400 of vocab of tekken.json is not a token of that rank",
    );
    expect(changed((j) => (j.vocab[400]!.token_bytes = "!"))).toBe("entry 400 of vocab of tekken.json is not base64");
    expect(changed((j) => (j.vocab[400]!.token_bytes = "YQ=="))).toContain(
      "the tokens 97 and 400 of tekken.json are the same",
    );
  });
});

describe("merges that make the same token", () => {
  const bytes = Array.from({ length: 256 }, (_, b): [string, number] => [String.fromCharCode(b), b]);
  const ranks = new Map([...bytes, ["aa", 256], ["ab", 257], ["aaa", 258], ["aab", 259], ["aaaa", 260]]);
  const json = parseTokenizerJson(rankedBytesJson({ name: "x", ranks, firstId: 0, pattern: "x", added: [] }));
  const laidOut = (of: TokenizerJson) =>
    layOut(of, of.words!, new Int32Array(256), [], (_bytes, _from, _to, _out, at) => at);

  test("are all there, by the token that they make", () => {
    const results = Array.from(json.merges ?? []).filter((_, i) => i % 3 === 2);
    expect(results).toEqual([256, 257, 258, 258, 259, 259, 260, 260, 260]);
  });
  test("share a rank if the model says so", () => {
    expect([...laidOut(json).ranks]).toEqual([0, 1, 2, 2, 4, 4, 6, 6, 6]);
    const { merge_rank: _, ...plain } = json.model;
    expect([...laidOut({ ...json, model: plain }).ranks]).toEqual([0, 1, 2, 3, 4, 5, 6, 7, 8]);
    expect(() => laidOut({ ...json, model: { ...plain, merge_rank: "x" } })).toThrow("unknown merge_rank");
  });
});
