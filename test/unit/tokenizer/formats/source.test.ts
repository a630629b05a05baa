import { describe, expect, test } from "bun:test";
import { tokenizerSource } from "../../../../src/tokenizer/formats/source.ts";
import { files, model, refusal } from "./models.ts";

const everything = {
  "tokenizer.json": "{}",
  "tekken.json": "{}",
  "tokenizer.model": model("bpe_llama.model"),
  "vocab.json": "{}",
  "merges.txt": "",
  "x.tiktoken": model("ranks.tiktoken"),
  "tokenizer_config.json": "{}",
};

describe("the tokenizer among files", () => {
  test("is the first of the known formats", () => {
    const left: Record<string, unknown> = { ...everything };
    for (const [format, name] of [
      ["tokenizer.json", "tokenizer.json"],
      ["tekken", "tekken.json"],
      ["sentencepiece", "tokenizer.model"],
      ["vocab+merges", "vocab.json"],
      ["tiktoken", "x.tiktoken"],
    ] as const) {
      const source = tokenizerSource(files(left));
      expect(source.format).toBe(format);
      expect(source.contents().map(([file]) => file)).toContain(name);
      delete left[name];
    }
    expect(refusal(left)).toBe("there is a merges.txt, but no vocab.json");
  });
  test("is told by the content of .model files, not by their names", () => {
    const of = (name: string, bytes: Uint8Array) => tokenizerSource(files({ [name]: bytes }));
    expect(of("tokenizer.model", model("ranks.tiktoken")).format).toBe("tiktoken");
    expect(of("tiktoken.model", model("ranks.tiktoken")).format).toBe("tiktoken");
    expect(of("spiece.model", model("bpe_llama.model")).format).toBe("sentencepiece");
  });
  test("is the file of the usual name where there are several", () => {
    const several = files({ "a.model": model("bpe_user.model"), "spiece.model": model("bpe_llama.model") });
    expect(
      tokenizerSource(several)
        .contents()
        .map(([file]) => file),
    ).toContain("spiece.model");
  });
  test("has the files that decide ids for its key, and no others", () => {
    const config = { "tokenizer_config.json": "{}", "config.json": "{}", "chat_template.jinja": "x" };
    const source = tokenizerSource(files({ "tokenizer.model": model("bpe_llama.model"), ...config }));
    expect(
      source
        .contents()
        .slice(1)
        .map(([file]) => file),
    ).toEqual(["tokenizer.model", "tokenizer_config.json", "config.json"]);
  });
  test("of a tokenizer.json has a key that other files change only by what they say about added tokens", () => {
    const key = (contents: Record<string, unknown>): string => {
      const source = tokenizerSource(files({ "tokenizer.json": "{}", ...contents }));
      return JSON.stringify(source.contents());
    };
    const config = (more: object): Record<string, unknown> => ({ "tokenizer_config.json": more });
    const plain = key({});
    expect(key(config({ chat_template: "x", model_max_length: 7 }))).toBe(plain);
    const others = [
      key(config({ added_tokens_decoder: { 7: { content: "<n>" } } })),
      key(config({ added_tokens_decoder: { 8: { content: "<n>" } } })),
      key(config({ added_tokens_decoder: {} })),
      key(config({ eos_token: "<e>" })),
      key(config({ own_token: "<e>" })),
      key(config({ extra_special_tokens: ["<e>"] })),
      key(config({ additional_special_tokens: ["<e>"] })),
      key({ "special_tokens_map.json": { eos_token: "<e>" } }),
      key({ "added_tokens.json": { "<e>": 9 } }),
    ];
    expect(new Set([plain, ...others]).size).toBe(others.length + 1);
  });
  test("of a tokenizer.json is its own bytes where nothing is added, and refuses what is wrong beside it", () => {
    const json = Buffer.from(
      '{ "added_tokens": [{"id":1,"content":"<e>","special":true,"normalized":false}], "model": {"vocab":{},"merges":[]} }',
    );
    const of = (config: object) =>
      tokenizerSource(files({ "tokenizer.json": json, "tokenizer_config.json": config })).json();
    expect(of({ eos_token: "<e>", added_tokens_decoder: { 1: { content: "<e>", special: true } } })).toBe(json);
    expect(of({})).toBe(json);
    expect(JSON.parse(Buffer.from(of({ eos_token: "<f>" })).toString())).toMatchObject({
      added_tokens: [{ content: "<e>" }, { content: "<f>", special: true, normalized: false }],
      model: { vocab: {}, merges: [] },
    });
    expect(() => of({ added_tokens_decoder: [] })).toThrow(
      "added_tokens_decoder of tokenizer_config.json is not an object",
    );
    expect(() => of({ added_tokens_decoder: { x: { content: "<e>" } } })).toThrow('has the key "x", which is no id');
  });
  test("is missed with a message that says what is there", () => {
    expect(refusal({})).toBe("there is no tokenizer.json, nor a tokenizer of another format");
    expect(refusal({ "vocab.json": {} })).toBe("there is a vocab.json, but no merges.txt");
    expect(refusal({ "tokenizer.model": "hello" })).toBe(
      "tokenizer.model is neither a SentencePiece model nor a tiktoken file",
    );
    expect(refusal({ "tokenizer.model": "version https://git-lfs.github.com/spec/v1\noid sha256:00" })).toContain(
      "Git LFS",
    );
  });
});
