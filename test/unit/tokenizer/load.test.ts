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
  const refused: [string, string, string, (json: Editable) => void][] = [
    [
      "single_word",
      "cl100k",
      "single_word",
      (j) => {
        j.added_tokens[3]!["single_word"] = true;
      },
    ],
    [
      "a normalized added token beside a normalizer",
      "cl100k_nfc",
      "a normalizer for the added token",
      (j) => {
        j.added_tokens[3]!["normalized"] = true;
      },
    ],
    [
      "normalized added tokens that overlap others",
      "deepseek",
      "overlaps",
      (j) => {
        j.added_tokens.push({ ...j.added_tokens.at(-1), id: 1507, content: "x<think>", normalized: true });
      },
    ],
    [
      "an added token that would get another id",
      "cl100k",
      "would become",
      (j) => {
        j.added_tokens.at(-1)!["id"] = 1600;
      },
    ],
    [
      "an added token under another id than the vocabulary's",
      "cl100k",
      "would become",
      (j) => {
        j.added_tokens.at(-1)!["content"] = "in";
      },
    ],
    [
      "a Unigram model",
      "cl100k",
      "Unigram",
      (j) => {
        j.model["type"] = "Unigram";
      },
    ],
    [
      "a Precompiled normalizer",
      "cl100k",
      "Precompiled",
      (j) => {
        j.normalizer = { type: "Precompiled", precompiled_charsmap: "" };
      },
    ],
    [
      "an unknown model",
      "cl100k",
      "not supported",
      (j) => {
        j.model["type"] = "Quantum";
      },
    ],
    [
      "an unknown decoder",
      "cl100k",
      "decoder",
      (j) => {
        j.decoder = { type: "CTC" };
      },
    ],
    [
      "a merge that repeats another",
      "cl100k",
      "repeats",
      (j) => {
        j.model.merges.push(j.model.merges[5]);
      },
    ],
    [
      "a merge of an unknown token",
      "cl100k",
      "not in the vocabulary",
      (j) => {
        j.model.merges.push("qqq zzz");
      },
    ],
    [
      "two entries with one id",
      "cl100k",
      "",
      (j) => {
        j.model.vocab["in"] = 40;
      },
    ],
    [
      "an id out of range",
      "cl100k",
      "",
      (j) => {
        j.model.vocab["in"] = 2 ** 21;
      },
    ],
  ];
  for (const [what, name, message, edit] of refused) {
    test(`${what} is refused by name`, async () => {
      const kind = await kindOf(edited(name, edit));
      expect(kind).not.toBe("kernel");
      expect(kind).not.toBe("huggingface");
      expect(kind).toContain(message);
    });
  }

  test("a vocabulary without a token for some byte, as SmolLM's, goes to the general library", async () => {
    const kind = await kindOf(
      edited("cl100k", (j) => {
        j.model.vocab["Ā".repeat(9)] = j.model.vocab["Ā"] as number;
        delete j.model.vocab["Ā"];
      }),
    );
    expect(kind).toBe("huggingface");
  });

  const general: [string, string, (json: Editable) => void][] = [
    [
      "another pattern",
      "cl100k",
      (j) => {
        (j.pre_tokenizer.pretokenizers[0]!["pattern"] as Json)["Regex"] = "\\p{L}+|\\P{L}+";
      },
    ],
    [
      "another split behaviour",
      "cl100k",
      (j) => {
        j.pre_tokenizer.pretokenizers[0]!["behavior"] = "MergedWithPrevious";
      },
    ],
    [
      "another normalizer",
      "cl100k",
      (j) => {
        j.normalizer = { type: "NFKC" };
      },
    ],
    [
      "a prefix space",
      "cl100k",
      (j) => {
        j.pre_tokenizer.pretokenizers[1]!["add_prefix_space"] = true;
      },
    ],
    [
      "rstrip beside an added token that begins with a space",
      "cl100k",
      (j) => {
        j.added_tokens[3]!["rstrip"] = true;
        j.added_tokens[4]!["content"] = " x";
      },
    ],
    [
      "Gemma's model with another normalizer",
      "gemma",
      (j) => {
        j.normalizer = null;
      },
    ],
  ];
  for (const [what, name, edit] of general) {
    test(`${what} goes to the general library`, async () =>
      expect(await kindOf(edited(name, edit))).toBe("huggingface"));
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
    expect([kernel.kind, general.kind, general.vocabSize]).toEqual(["kernel", "huggingface", kernel.vocabSize]);
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
