/**
 * The tests that a tokenizer's ids and texts equal those of the Rust `tokenizers` library (see make_real.py): a share of them in
 * `npm test`, all in `npm run test:exhaustive`.
 */
import { describe, expect, test } from "bun:test";
import { createHash } from "node:crypto";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { fixtures } from "../../../scripts/fixtures.ts";
import { buildGeneral } from "../../../src/tokenizer/general/build.ts";
import { openGeneral } from "../../../src/tokenizer/general/open.ts";
import { loadTokenizer, openTokenizer } from "../../../src/tokenizer/load.ts";
import type { Tokenizer } from "../../../src/tokenizer/tokenizer.ts";
import { Rng, string } from "../tokenizer/strings.ts";
import { corpusText, digest, idsLine, pieces, type TextRule } from "./texts.ts";

interface Golden {
  readonly file_sha256: string;
  readonly seed: number;
  readonly specials: readonly string[];
  readonly vocab_size: number;
  readonly batches: readonly (readonly [strings: string, ids: string, plain: string | null, count: number])[];
  readonly cases: readonly Case[];
  readonly decode: readonly { readonly ids: readonly number[]; readonly keep: string; readonly skip?: string }[];
}
interface Case {
  readonly s: string;
  readonly ids: readonly number[];
  readonly with_special?: readonly number[];
  readonly plain?: readonly number[];
}
type CorpusRow = readonly [wholeCount: number, whole: string, piecesCount: number, pieces: string];
interface Corpus {
  readonly piece: number;
  readonly texts: Readonly<Record<string, TextRule>>;
  readonly ids: Readonly<Record<string, { readonly file_sha256: string } & Readonly<Record<string, CorpusRow>>>>;
}
interface Text {
  readonly name: string;
  readonly whole: string;
  readonly pieces: readonly string[];
}

/** How much is tested. */
export interface Share {
  /** Batches of 1,000 random strings. */
  readonly batches: number;
  /** Each text of the corpus in one call too, not only in pieces. */
  readonly whole: boolean;
  /** By the general tokenizer, also what the kernel takes; else as they are loaded. */
  readonly general?: boolean;
}

interface Tested {
  readonly name: string;
  /** What it is loaded as. */
  readonly kind: Tokenizer["kind"];
  /** One of ours; else of a package. */
  readonly small?: true;
}
const TOKENIZERS: readonly Tested[] = [
  { name: "claude", kind: "general" },
  { name: "deepseek_v3", kind: "kernel" },
  { name: "gemini", kind: "kernel" },
  { name: "gemma3", kind: "kernel" },
  { name: "gpt35turbo", kind: "kernel" },
  { name: "gpt4o", kind: "kernel" },
  { name: "gptoss", kind: "kernel" },
  { name: "llama2", kind: "kernel" },
  { name: "llama3_1", kind: "kernel" },
  { name: "minilm", kind: "general" },
  { name: "qwen3", kind: "kernel" },
  { name: "flags", kind: "general", small: true },
  { name: "metaspace_bpe", kind: "kernel", small: true },
  { name: "unigram", kind: "general", small: true },
  { name: "unigram_bytes", kind: "general", small: true },
  { name: "wordpiece", kind: "general", small: true },
];

const loaded = async (json: Uint8Array): Promise<Tokenizer> =>
  openTokenizer(await loadTokenizer(new Map([["tokenizer.json", json]])));
const opened = async (json: Uint8Array): Promise<Tokenizer> => openGeneral(buildGeneral(json));

const here = import.meta.dir;
const json = <T>(file: string): T => JSON.parse(readFileSync(join(here, file), "utf8")) as T;

/** Defines the tests. The fixtures are fetched first, if they are missing: without a package registry nothing passes. */
export async function exactness({ batches, whole, general = false }: Share): Promise<void> {
  const folder = await fixtures();
  const corpus = json<Corpus>("corpus.golden.json");
  const texts = Object.entries(corpus.texts).map(([name, rule]): Text => {
    const text = corpusText(folder, rule);
    return { name, whole: text, pieces: pieces(text, corpus.piece) };
  });

  test("the corpus has 5 MB and more in 12 scripts and more", () => {
    const rules = Object.values(corpus.texts);
    expect(rules.reduce((sum, { bytes }) => sum + bytes, 0)).toBeGreaterThan(5_000_000);
    expect(rules.filter(({ rule, bytes }) => rule === "html" && bytes > 10_000).length).toBeGreaterThan(12);
  });

  for (const { name, kind, small } of TOKENIZERS) {
    describe(general ? `${name}, general` : name, () => {
      const golden = json<Golden>(`${name}.golden.json`);
      const rows = corpus.ids[name];
      const file = small ? join(here, "small", `${name}.json`) : join(folder, "tokenizers", `${name}.json`);
      let made: Promise<Tokenizer> | undefined;
      const tokenizer = (): Promise<Tokenizer> => {
        made ??= (general ? opened : loaded)(readFileSync(file));
        return made;
      };

      test("is the tokenizer that the golden values are of", () => {
        const sha = createHash("sha256").update(readFileSync(file)).digest("hex");
        expect([golden.file_sha256, rows?.file_sha256]).toEqual([sha, sha]);
        expect([golden.batches.length, golden.cases.length, golden.decode.length]).toEqual([100, 150, 150]);
      });
      test("loads", async () => {
        expect((await tokenizer()).kind).toBe(general ? "general" : kind);
        expect((await tokenizer()).vocabSize).toBe(golden.vocab_size);
      });
      test("encodes the cases, with special tokens added, and with those in the text as text", async () => {
        encodesCases(await tokenizer(), golden.cases);
      });
      test("decodes in a stream what the library decodes at once", async () => {
        decodes(await tokenizer(), golden);
      });
      test(`encodes ${batches},000 random strings`, async () => {
        encodesStrings(await tokenizer(), golden, batches);
      });
      test("may be cut where it says so", async () => {
        cuts(await tokenizer(), golden);
      });
      test(`encodes the corpus in pieces${whole ? " and whole" : ""}`, async () => {
        const encode = await tokenizer();
        const found = texts.map((text) => [text.name, ...corpusRow(encode, text, whole)]);
        const wanted = texts.map(({ name }) => {
          const [count, sha, ...rest] = rows![name]!;
          return whole ? [name, count, sha, ...rest] : [name, ...rest];
        });
        expect(found).toEqual(wanted);
        made = undefined; // its tables are tens of megabytes
      });
    });
  }
}

function encodesCases(tokenizer: Tokenizer, cases: readonly Case[]): void {
  for (const { s, ids, with_special = ids, plain = ids } of cases) {
    const got = [undefined, { addSpecialTokens: true }, { specialAsText: true }].map((o) => [
      ...tokenizer.encode(s, o),
    ]);
    expect([s, ...got]).toEqual([s, [...ids], [...with_special], [...plain]]);
  }
}

function encodesStrings(tokenizer: Tokenizer, { seed, specials, batches }: Golden, count: number): void {
  const rng = new Rng(seed);
  for (const [i, [strings, ids, plain]] of batches.slice(0, count).entries()) {
    const texts = Array.from({ length: 1000 }, () => string(rng, specials));
    expect(digest(texts.map((s) => `${s}\n`))).toBe(strings);
    const got = digest(texts.map((s) => idsLine(tokenizer.encode(s))));
    const asText = plain && digest(texts.map((s) => idsLine(tokenizer.encode(s, { specialAsText: true }))));
    expect([i, got, asText]).toEqual([i, ids, plain]);
  }
}

function decodes(tokenizer: Tokenizer, { decode }: Golden): void {
  const inAll = (ids: readonly number[], skipSpecialTokens: boolean): string => {
    const decoder = tokenizer.decoder({ skipSpecialTokens });
    return ids.map((id) => decoder.push(id)).join("") + decoder.end();
  };
  for (const { ids, keep, skip = keep } of decode) {
    expect([ids, inAll(ids, false), inAll(ids, true)]).toEqual([ids, keep, skip]);
  }
}

/** Ids of a text up to a cut, and of the rest by itself, are those of the whole. */
function cuts(tokenizer: Tokenizer, { specials }: Golden): void {
  const { buffer } = tokenizer;
  if (!buffer) return;
  const rng = new Rng(5);
  let seen = 0;
  for (let i = 0; i < 400; i++) {
    const text = Array.from({ length: 4 }, () => string(rng, specials) + rng.pick(specials)).join("");
    const whole = [...tokenizer.encode(text)];
    buffer.write(text);
    const all = buffer.encodeFrom(0)!;
    expect([text, [...all.ids]]).toEqual([text, whole]);
    const pairs = [...all.cuts];
    for (let k = 0; k < pairs.length; k += 2, seen++) {
      buffer.write(text);
      const rest = [...buffer.encodeFrom(pairs[k]!)!.ids];
      expect([text, pairs[k], rest]).toEqual([text, pairs[k], whole.slice(pairs[k + 1])]);
      const head = Buffer.from(text.toWellFormed()).subarray(0, pairs[k]).toString();
      expect([head, [...tokenizer.encode(head)]]).toEqual([head, whole.slice(0, pairs[k + 1])]);
    }
  }
  expect(seen).toBeGreaterThan(100);
}

function corpusRow(tokenizer: Tokenizer, text: Text, whole: boolean): (string | number)[] {
  const row = (parts: readonly string[]): [number, string] => {
    const ids = parts.map((part) => tokenizer.encode(part));
    return [ids.reduce((sum, { length }) => sum + length, 0), digest(ids.map(idsLine))];
  };
  return whole ? [...row([text.whole]), ...row(text.pieces)] : row(text.pieces);
}
