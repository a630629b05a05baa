/** Tokenizers in other formats than tokenizer.json against the reference of each format (see make_formats.py). */
import { describe, expect, test } from "bun:test";
import { createHash } from "node:crypto";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { KIMI_PATTERN } from "../../../src/tokenizer/formats/kimi.ts";
import { tokenizerSource } from "../../../src/tokenizer/formats/source.ts";
import { loadTokenizer, openTokenizer } from "../../../src/tokenizer/load.ts";
import { Rng, string } from "../tokenizer/strings.ts";

interface Case {
  readonly name: string;
  readonly format: string;
  readonly files: Readonly<Record<string, unknown>>;
  readonly head?: Readonly<Record<string, unknown>>;
  readonly tables_sha256?: string;
  readonly pattern?: string;
  readonly special?: Readonly<Record<string, number>>;
  readonly vocab_size?: number;
  readonly specials: readonly string[];
  readonly without: readonly string[];
  readonly batches: readonly { readonly strings_sha256: string; readonly ids_sha256: string }[];
  readonly cases: readonly { readonly s: string; readonly ids: readonly number[] }[];
}
interface Json {
  readonly model: { vocab?: unknown; merges?: unknown; merge_rank?: string };
  readonly added_tokens: readonly { readonly id: number; readonly content: string; readonly special: boolean }[];
  readonly normalizer: unknown;
  readonly pre_tokenizer: { readonly pretokenizers: readonly { readonly pattern?: { readonly Regex: string } }[] };
}

const GOLDEN = JSON.parse(readFileSync(join(import.meta.dir, "cases.json"), "utf8")) as {
  readonly seed: number;
  readonly cases: readonly Case[];
};
/** Converted to better known parts that mean the same: the ids are compared, not the parts. */
const OTHER_WORDS: readonly string[] = ["mistral", "mistral_first", "plain_gemma"];
const sha = (data: string | Uint8Array): string => createHash("sha256").update(data).digest("hex");
const model = (name: string): Uint8Array => readFileSync(join(import.meta.dir, "models", name));
const filesOf = ({ files }: Case): Map<string, Uint8Array> =>
  new Map(
    Object.entries(files).map(([name, content]) => [
      name,
      typeof content === "string" ? model(content) : Buffer.from(JSON.stringify(content)),
    ]),
  );

/** The parts as the golden file writes them, and the hash of the tables. */
function comparable(json: Json): { head: unknown; tables: string } {
  const { vocab, merges, ...rest } = json.model;
  const entries = Array.isArray(vocab)
    ? (vocab as [string, number][]).map(([text]) => text)
    : Object.entries(vocab as Record<string, number>).sort(([, a], [, b]) => a - b);
  const pairs = (merges as (string | [string, string])[] | undefined)?.map((m) => (typeof m === "string" ? m.split(" ") : m));
  const tables = pairs ? { vocab: entries, merges: pairs } : { vocab: entries };
  const head = JSON.parse(JSON.stringify({ ...json, model: rest }), (key, value: unknown) =>
    key === "precompiled_charsmap" ? sha(value as string) : value,
  ) as Record<string, unknown>;
  return { head, tables: sha(JSON.stringify(tables)) };
}

/** No token around the text: the reference writes an empty template, we nothing. */
const withoutEmptyTemplate = (head: Readonly<Record<string, unknown>>): Record<string, unknown> => {
  const post = head["post_processor"] as { type?: string; special_tokens?: Record<string, unknown> } | null;
  const empty = post?.type === "TemplateProcessing" && Object.keys(post.special_tokens ?? {}).length === 0;
  return { ...head, post_processor: empty ? null : onlyIds(post) };
};
/** Type ids don't matter to a model that gets ids. */
const onlyIds = (post: unknown): unknown =>
  JSON.parse(JSON.stringify(post), (key, value: unknown) => (key === "type_id" ? 0 : value));

for (const golden of GOLDEN.cases) {
  describe(golden.name, async () => {
    const files = filesOf(golden);
    const source = tokenizerSource(files);
    const bytes = source.json();
    const json = JSON.parse(Buffer.from(bytes).toString()) as Json;
    const tokenizer = openTokenizer(await loadTokenizer(files));

    test("is found among the files", () => {
      expect(source.format).toBe(golden.format as typeof source.format);
      const named = source.contents().slice(1).map(([name]) => name);
      expect(named.sort()).toEqual([...files.keys()].sort());
    });
    const { head: theirs, special, pattern } = golden;
    if (theirs && !OTHER_WORDS.includes(golden.name)) test("has the parts that transformers makes", () => {
      const { head, tables } = comparable(json);
      expect(withoutEmptyTemplate(head as Record<string, unknown>)).toEqual(withoutEmptyTemplate(theirs));
      expect(tables).toBe(golden.tables_sha256 ?? "");
    });
    if (special) test("has the special tokens", () => {
      const tokens = Object.fromEntries(json.added_tokens.map((t) => [t.content, t.id]));
      expect(tokens).toEqual({ ...special });
      expect(json.model.merge_rank).toBe("token");
    });
    if (pattern) test("has the pattern of the model's own code", () => {
      expect(json.pre_tokenizer.pretokenizers[0]?.pattern?.Regex).toBe(pattern);
      if (golden.name.startsWith("kimi")) expect(pattern).toBe(KIMI_PATTERN);
    });
    test("encodes as the reference", () => {
      if (golden.vocab_size !== undefined) expect(tokenizer.vocabSize).toBe(golden.vocab_size);
      for (const { s, ids } of golden.cases) expect([s, [...tokenizer.encode(s)]]).toEqual([s, [...ids]]);
      const rng = new Rng(GOLDEN.seed);
      for (const batch of golden.batches) {
        const strings = createHash("sha256");
        const ids = createHash("sha256");
        for (let i = 0; i < 1000; i++) {
          const s = string(rng, golden.specials);
          strings.update(`${s}\n`);
          ids.update(`[${tokenizer.encode(golden.without.some((w) => s.includes(w)) ? "" : s).join(",")}]\n`);
        }
        expect(strings.digest("hex")).toBe(batch.strings_sha256);
        expect(ids.digest("hex")).toBe(batch.ids_sha256);
      }
    });
  });
}
