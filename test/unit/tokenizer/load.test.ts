import { describe, expect, test } from "bun:test";
import { loadTokenizer, openTokenizer } from "../../../src/tokenizer/load.ts";
import { TokenizerError } from "../../../src/tokenizer/tokenizer.ts";
import { editedFiles, smallFiles } from "./fixtures.ts";

type Json = Record<string, unknown>;
interface Editable {
  model: Json & { vocab: Record<string, number>; merges: unknown[] };
  added_tokens: Json[];
  normalizer: unknown;
  pre_tokenizer: { pretokenizers: Json[] };
  decoder: unknown;
}
const edited = (name: string, edit: (json: Editable) => void): Map<string, Uint8Array> =>
  editedFiles(name, (json) => edit(json as unknown as Editable));

async function kindOf(files: Map<string, Uint8Array>): Promise<string> {
  try {
    return (await loadTokenizer(files)).kind;
  } catch (error) {
    if (error instanceof TokenizerError) return error.message;
    throw error;
  }
}

describe("what is not known as a whole", () => {
  const refused: [what: string, message: string, edit: (json: Editable) => void][] = [
    ["an unknown model", "Quantum", (j) => Object.assign(j.model, { type: "Quantum" })],
    ["an unknown decoder", "decoder", (j) => Object.assign(j, { decoder: { type: "CTC" } })],
    [
      "a damaged normalizer",
      "precompiled",
      (j) => Object.assign(j, { normalizer: { type: "Precompiled", precompiled_charsmap: "" } }),
    ],
    ["a merge of an unknown token", "not in the vocabulary", (j) => j.model.merges.push("qqq zzz")],
    ["an id out of range", "", (j) => Object.assign(j.model.vocab, { in: 2 ** 21 })],
  ];
  test.each(refused)("%s is refused by name", async (_, message, edit) => {
    const kind = await kindOf(edited("cl100k", edit));
    expect(["kernel", "general"]).not.toContain(kind);
    expect(kind).toContain(message);
  });

  const general: [what: string, name: string, edit: (json: Editable) => void][] = [
    [
      "another pattern",
      "cl100k",
      (j) => Object.assign(j.pre_tokenizer.pretokenizers[0]!["pattern"] as Json, { Regex: "\\p{L}+|\\P{L}+" }),
    ],
    [
      "another split behaviour",
      "cl100k",
      (j) => Object.assign(j.pre_tokenizer.pretokenizers[0]!, { behavior: "MergedWithPrevious" }),
    ],
    ["another normalizer", "cl100k", (j) => Object.assign(j, { normalizer: { type: "NFKC" } })],
    ["a prefix space", "cl100k", (j) => Object.assign(j.pre_tokenizer.pretokenizers[1]!, { add_prefix_space: true })],
    ["single_word", "cl100k", (j) => Object.assign(j.added_tokens[3]!, { single_word: true })],
    [
      "rstrip beside an added token that begins with a space",
      "cl100k",
      (j) => {
        j.added_tokens[3]!["rstrip"] = true;
        j.added_tokens[4]!["content"] = " x";
      },
    ],
    [
      "an added token that the decoder takes for other bytes",
      "cl100k",
      (j) => Object.assign(j.added_tokens[3]!, { content: "<é>" }),
    ],
    [
      "normalized added tokens that overlap others",
      "deepseek",
      (j) => j.added_tokens.push({ ...j.added_tokens.at(-1), id: 1507, content: "x<think>", normalized: true }),
    ],
    [
      "normalized added tokens that lie in special ones",
      "deepseek",
      (j) => j.added_tokens.push({ ...j.added_tokens.at(-1), id: 1507, content: "begin", normalized: true }),
    ],
    [
      "a normalized added token where spaces are put in front",
      "prepend",
      (j) => Object.assign(j.added_tokens[1]!, { normalized: true }),
    ],
    ["a vocabulary with two entries of one id", "cl100k", (j) => Object.assign(j.model.vocab, { in: 40 })],
    ["a merge that repeats another", "cl100k", (j) => j.model.merges.push(j.model.merges[5])],
    [
      "a vocabulary without a token for some byte and none in its place",
      "cl100k",
      (j) => {
        j.model.vocab["Ā".repeat(9)] = j.model.vocab["Ā"] as number;
        delete j.model.vocab["Ā"];
      },
    ],
    ["Gemma's model with another normalizer", "gemma", (j) => Object.assign(j, { normalizer: null })],
  ];
  test.each(general)("%s goes to the general tokenizer", async (_, name, edit) => {
    expect(await kindOf(edited(name, edit))).toBe("general");
  });

  const kernel: [what: string, name: string, edit: (json: Editable) => void][] = [
    [
      "a normalized added token beside NFC",
      "cl100k_nfc",
      (j) => Object.assign(j.added_tokens[3]!, { normalized: true }),
    ],
    [
      "a normalized added token without spaces beside Gemma's normalizer",
      "gemma",
      (j) => Object.assign(j.added_tokens.at(-1)!, { normalized: true }),
    ],
    [
      "an added token under another id than it gets",
      "cl100k",
      (j) => Object.assign(j.added_tokens.at(-1)!, { id: 1600 }),
    ],
    [
      "an added token that the vocabulary has",
      "cl100k",
      (j) => Object.assign(j.added_tokens.at(-1)!, { content: "in" }),
    ],
    ["an empty added token", "cl100k", (j) => j.added_tokens.push({ ...j.added_tokens.at(-1), id: 1505, content: "" })],
  ];
  test.each(kernel)("%s is no obstacle for the kernel", async (_, name, edit) => {
    expect(await kindOf(edited(name, edit))).toBe("kernel");
  });
});

test("added tokens are numbered as the Rust library numbers them", async () => {
  const flags = { single_word: false, lstrip: false, rstrip: false, normalized: false, special: false };
  // asked from tokenizers 0.23.3: a vocabulary of 1500, added tokens as in the file, the ids they get
  const cases: [file: [number, string][], ids: [string, number | undefined][]][] = [
    [
      [
        [1501, "<B>"],
        [1500, "<A>"],
      ],
      [
        ["<B>", 1500],
        ["<A>", 1501],
      ],
    ],
    [
      [
        [1505, "<B>"],
        [1509, "<A>"],
      ],
      [
        ["<B>", 1500],
        ["<A>", 1501],
      ],
    ],
    [
      [
        [1500, "<A>"],
        [1501, "in"],
        [1502, "<C>"],
      ],
      [
        ["<A>", 1500],
        ["in", 261],
        ["<C>", 1501],
      ],
    ],
    [
      [
        [1500, ""],
        [1501, "<C>"],
      ],
      [
        ["", undefined],
        ["<C>", 1500],
      ],
    ],
    [
      [
        [1500, "<A>"],
        [1501, "<A>"],
        [1502, "<C>"],
      ],
      [
        ["<A>", 1500],
        ["<C>", 1501],
      ],
    ],
  ];
  for (const [file, ids] of cases) {
    const files = edited("cl100k", (j) => {
      j.added_tokens = file.map(([id, content]) => ({ ...flags, id, content }));
    });
    const tokenizer = openTokenizer(await loadTokenizer(files));
    expect(tokenizer.kind).toBe("kernel");
    for (const [content, id] of ids) {
      expect(tokenizer.tokenId(content)).toBe(id as number);
      expect([...tokenizer.encode(content)]).toEqual(id === undefined ? [] : [id]);
    }
  }
});

test("both ways give the same ids where both can", async () => {
  for (const name of ["cl100k", "o200k", "cl100k_nfc", "gpt2", "prepend"]) {
    const kernel = openTokenizer(await loadTokenizer(smallFiles(name)));
    // a second, equal normalizer in a list is not a known configuration
    const files = edited(name, (j) => {
      j.normalizer = { type: "Sequence", normalizers: [name === "prepend" ? j.normalizer : { type: "NFC" }] };
    });
    const general = openTokenizer(await loadTokenizer(files));
    expect([kernel.kind, general.kind, general.vocabSize]).toEqual(["kernel", "general", kernel.vocabSize]);
    for (const text of [
      "The type 'T' isn't 123456 <think> wide\n\n  x</think>",
      "中文 12 ひらがな",
      "HTTPServer don't\r\n\t!",
    ]) {
      const ids = kernel.encode(text);
      expect(general.encode(text)).toEqual(ids);
      const [a, b] = [kernel, general].map((t) => t.decoder({ skipSpecialTokens: true }));
      for (const id of ids) {
        expect(b?.push(id)).toBe(a?.push(id) as string);
        expect(general.tokenBytes(id)).toEqual(kernel.tokenBytes(id).slice());
        expect(general.isSpecial(id)).toBe(kernel.isSpecial(id));
      }
    }
    const special = name === "prepend" ? "</s>" : "<think>";
    expect(general.tokenId(special)).toBe(kernel.tokenId(special) as number);
    expect(general.decoder({ skipSpecialTokens: false }).push(-1)).toBe("");
    expect(general.tokenBytes(10 ** 9)).toHaveLength(0);
  }
});

test("files that are no tokenizer are refused", async () => {
  for (const text of [
    "",
    "{",
    "[]",
    "{}",
    '{"model": 1}',
    '{"model": {}, "added_tokens": [{"id": -1, "content": "x"}]}',
  ]) {
    expect(await kindOf(new Map([["tokenizer.json", Buffer.from(text)]]))).toContain("tokenizer.json");
  }
  expect(await kindOf(new Map())).toContain("tokenizer.json");
});
