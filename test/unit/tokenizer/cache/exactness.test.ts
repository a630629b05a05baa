/**
 * Where the ids of two parts, joined, are those of the whole, and where not: the cases were tried against the Rust library. Where they
 * are, chats that grow are found by their beginnings; where they are not, beginnings are not used. The ids are right in all cases.
 */
import { describe, expect, test } from "bun:test";
import { createTokenizerCache } from "../../../../src/tokenizer/cache/board.ts";
import { cachedTokenizer } from "../../../../src/tokenizer/cache/cached-tokenizer.ts";
import { cacheStats } from "../../../../src/tokenizer/cache/stats.ts";
import { loadTokenizer, openTokenizer } from "../../../../src/tokenizer/load.ts";
import type { Tokenizer } from "../../../../src/tokenizer/tokenizer.ts";
import { Rng } from "../../../golden/tokenizer/strings.ts";
import { editedFiles, smallFiles } from "../fixtures.ts";
import { expectSame, filler, sameIds } from "./chats.ts";

const CUTS = 300;
const TURNS = 10;
type Json = Record<string, unknown>;
type Files = ReadonlyMap<string, Uint8Array>;

const small = (name: string, edit: (json: Json) => void = () => {}): Files => editedFiles(name, edit as never);
const added = (content: string, more: Json = {}): Json => ({
  content,
  single_word: false,
  lstrip: false,
  rstrip: false,
  normalized: false,
  special: true,
  ...more,
});
/** Puts added tokens at new ids behind all others. */
const adding =
  (...tokens: Json[]) =>
  (json: Json): void => {
    const list = json["added_tokens"] as Json[];
    const vocab = (json["model"] as { vocab: Record<string, number> }).vocab;
    let id = Math.max(...Object.values(vocab), ...list.map((token) => token["id"] as number));
    for (const token of tokens) list.push({ id: ++id, ...token });
  };
const changing =
  (content: string, more: Json) =>
  (json: Json): void => {
    for (const token of json["added_tokens"] as Json[]) if (token["content"] === content) Object.assign(token, more);
  };

/** A tiktoken file of all bytes and a few merges. */
function tiktoken(): Files {
  const texts = [...Array.from({ length: 256 }, (_, i) => Buffer.from([i]))];
  for (const merged of ["th", "the", " t", " the", "  ", "\n\n", "in", "er", "an"]) texts.push(Buffer.from(merged));
  const lines = texts.map((bytes, rank) => `${bytes.toString("base64")} ${rank}`).join("\n");
  const decoder = { 265: added("<|begin|>"), 266: added("<|end|>") };
  return new Map([
    ["cl100k_base.tiktoken", Buffer.from(lines)],
    ["tokenizer_config.json", Buffer.from(JSON.stringify({ added_tokens_decoder: decoder }))],
  ]);
}

interface Case {
  readonly what: string;
  readonly files: Files;
  /** The token that parts the text, and what comes right behind it. */
  readonly boundary: string;
  readonly behind: readonly string[];
}

const exact: Case[] = [
  {
    what: "normalized=false, no strip flags",
    files: smallFiles("cl100k"),
    boundary: "<|end|>",
    behind: ["", "x", "123"],
  },
  { what: "a token that is not special", files: smallFiles("cl100k"), boundary: "</think>", behind: ["", "\n\n", "x"] },
  {
    what: "white space behind, looked ahead at",
    files: smallFiles("cl100k"),
    boundary: "<|end|>",
    behind: ["   x", " \n \n", "\t\t\tb"],
  },
  {
    what: "a mark right behind, with NFC",
    files: smallFiles("cl100k_nfc"),
    boundary: "<|end|>",
    behind: ["\u0301e", "\u0327", "\u1161"],
  },
  {
    what: "the next token has lstrip",
    files: smallFiles("cl100k_strip"),
    boundary: "<think>",
    behind: ["  <|begin|>", " \n<|begin|> a", "<|begin|>"],
  },
  { what: "Metaspace always", files: smallFiles("metaspace_always"), boundary: "</s>", behind: ["", " x", "x"] },
  {
    what: "ByteLevel add_prefix_space",
    files: small("gpt2", (json) => Object.assign(json["pre_tokenizer"] as Json, { add_prefix_space: true })),
    boundary: "<|end|>",
    behind: ["x", " x", "\n"],
  },
  { what: "Prepend normalizer", files: smallFiles("prepend"), boundary: "</s>", behind: ["x", " x", "\n"] },
  { what: "Gemma's words", files: smallFiles("gemma"), boundary: "<end_of_turn>", behind: ["\n", " x", "\n\n\n"] },
  { what: "tekken", files: smallFiles("tekken"), boundary: "<|end|>", behind: ["x", "  x"] },
  { what: "a tiktoken file", files: tiktoken(), boundary: "<|end|>", behind: ["the", " the", "\n\n\n"] },
  {
    what: "a post-processor that appends",
    files: small("cl100k", (json) => {
      json["post_processor"] = {
        type: "TemplateProcessing",
        single: [
          { SpecialToken: { id: "<|begin|>", type_id: 0 } },
          { Sequence: { id: "A", type_id: 0 } },
          { SpecialToken: { id: "<|end|>", type_id: 0 } },
        ],
        pair: [{ Sequence: { id: "A", type_id: 0 } }, { Sequence: { id: "B", type_id: 1 } }],
        special_tokens: {
          "<|begin|>": { id: "<|begin|>", ids: [5], tokens: ["<|begin|>"] },
          "<|end|>": { id: "<|end|>", ids: [6], tokens: ["<|end|>"] },
        },
      };
    }),
    boundary: "<think>",
    behind: ["x", " y"],
  },
];

/** `parted`: a text, in two parts behind the boundary, whose ids differ from those of the whole. */
const wrong: (Case & { readonly parted: readonly [string, string] | undefined })[] = [
  {
    what: "the boundary has rstrip",
    files: smallFiles("cl100k_strip"),
    boundary: "<|end|>",
    behind: ["  x", "\n y", "z"],
    parted: ["a<|end|>", "  x"],
  },
  {
    what: "Metaspace first",
    files: smallFiles("metaspace_first"),
    boundary: "</s>",
    behind: ["x", "the", " y"],
    parted: ["a</s>", "the"],
  },
  {
    what: "another token begins with the boundary",
    files: small("cl100k", adding(added("<A>"), added("<A>b"))),
    boundary: "<A>",
    behind: ["c", "\n", " b"],
    parted: ["a<A>", "b"],
  },
  {
    what: "the boundary lies within another token",
    files: small("cl100k", adding(added("<A>"), added("b<A>c"))),
    boundary: "<A>",
    behind: ["c", "d"],
    parted: ["b<A>", "c"],
  },
  {
    what: "a boundary that is looked for in normalized text",
    files: small("cl100k_nfc", changing("<|end|>", { normalized: true })),
    boundary: "<|end|>",
    behind: ["\u0301", "x", "\u0338"],
    parted: ["a<|end|>", "\u0338"],
  },
  { what: "WordPiece", files: smallFiles("wordpiece"), boundary: "[SEP]", behind: ["the", " the"], parted: undefined },
];

/** Cuts to try: where the kernel does not encode, it takes fifty times as long. */
const cutsFor = ({ kind }: Tokenizer): number => (kind === "kernel" ? CUTS : CUTS / 10);

/** Chats of one tokenizer that grow turn by turn; the boundary stands behind every turn. */
function* grown({ boundary, behind }: Case, seed: number, cuts = CUTS): Generator<string> {
  const random = new Rng(seed);
  for (let chat = 0; chat < cuts / TURNS; chat++) {
    let text = "";
    for (let turn = 0; turn < TURNS; turn++) {
      // what would be a cut of its own is left out, so that every cut is the one in question
      const words = filler(random, [], 3100).replaceAll("<", "(");
      text += `${words}${random.pick(["", " ", "\n"])}${boundary}${random.pick(behind)}`;
      yield text;
    }
  }
}

async function both(files: Files): Promise<{ tokenizer: Tokenizer; cached: Tokenizer; hits: () => number }> {
  const tokenizer = openTokenizer(await loadTokenizer(files));
  const memory = createTokenizerCache({ l0: false, l1: true, l0Entries: 0, bytes: 16 << 20 });
  const cached = cachedTokenizer(tokenizer, memory, { verifyShare: 0 });
  return { tokenizer, cached, hits: () => cacheStats(memory)[1]!.hits };
}

describe("exact", () => {
  test.each(exact)("$what", async (one) => {
    const { tokenizer, cached, hits } = await both(one.files);
    expect(tokenizer.encode(`a${one.boundary}`).length).toBeLessThan(one.boundary.length); // it is one token
    const cuts = cutsFor(tokenizer);
    for (const text of grown(one, 5, cuts)) expectSame(tokenizer, cached, text);
    if (tokenizer.kind === "kernel") expect(hits()).toBeGreaterThan(cuts * 0.8); // but for first turns, and runs of marks that take long
  });

  test("the flag that adds special tokens changes no cut", async () => {
    const one = exact.at(-1)!;
    const { tokenizer, cached, hits } = await both(one.files);
    for (const text of grown(one, 6)) {
      const ids = cached.encode(text, { addSpecialTokens: true });
      expect(sameIds(ids, tokenizer.encode(text, { addSpecialTokens: true }))).toBe(true);
      expect([ids[0], ids.at(-1)]).toEqual([5, 6]);
      expect(sameIds(cached.encode(text), ids.subarray(1, -1))).toBe(true);
    }
    expect(hits()).toBeGreaterThan(CUTS * 1.8);
  });
});

describe("not exact, and not used", () => {
  test.each(wrong)("$what", async (one) => {
    const { tokenizer, cached, hits } = await both(one.files);
    if (one.parted !== undefined) {
      const [a, b] = one.parted;
      const joined = Uint32Array.from([...tokenizer.encode(a), ...tokenizer.encode(b)]);
      expect(sameIds(joined, tokenizer.encode(a + b))).toBe(false);
    }
    for (const text of grown(one, 7, cutsFor(tokenizer))) expectSame(tokenizer, cached, text);
    expect(hits()).toBe(0);
  });

  test("a boundary that the next turn makes part of another token", async () => {
    const { tokenizer, cached } = await both(small("cl100k", adding(added("<A>"), added("<A>b"), added("c<A>"))));
    const random = new Rng(11);
    for (let i = 0; i < CUTS; i++) {
      let text = filler(random, [], 3100);
      for (const turn of ["<A>", "b<A>", "<A>bc", "c<A>", `b${filler(random, [], 3100)}<A>b`, "<A>", "bb"]) {
        text += turn;
        if (i % 2 === 0 || turn !== "<A>") cached.encode(text);
        expectSame(tokenizer, cached, text);
      }
    }
  });

  test("a single word right behind a boundary that ends in a word character", async () => {
    const files = small("cl100k", adding(added("tok"), added("word", { single_word: true })));
    const refused = await loadTokenizer(files).then(
      () => "",
      (error: Error) => error.message,
    );
    if (refused !== "") return expect(refused).toContain("single_word");
    const one = { what: "", files, boundary: "tok", behind: ["word", "word x", "x"] };
    const { tokenizer, cached, hits } = await both(files);
    expect(tokenizer.encode("tokword").length).toBeGreaterThan(2);
    for (const text of grown(one, 9, cutsFor(tokenizer))) expectSame(tokenizer, cached, text);
    expect(hits()).toBe(0);
  });

  test("special tokens that are text", async () => {
    const one = exact[0]!;
    const { tokenizer, cached, hits } = await both(one.files);
    for (const text of grown(one, 8)) {
      cached.encode(text);
      const ids = cached.encode(text, { specialAsText: true });
      expect(sameIds(ids, tokenizer.encode(text, { specialAsText: true }))).toBe(true);
      expect(sameIds(ids, tokenizer.encode(text))).toBe(false);
    }
    expect(hits()).toBeLessThanOrEqual(CUTS); // those of the calls without the flag
  });
});
