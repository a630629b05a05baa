/** The variants of small tokenizers that make_golden.py asked the Rust library about. */
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { gunzipSync } from "node:zlib";
import { type Rng, string } from "../tokenizer/strings.ts";

type Json = Record<string, unknown>;

export interface Variant {
  readonly name: string;
  readonly base: string;
  readonly patch: Json;
  readonly vocab_size: number;
  readonly ids_sha256: string;
  readonly with_sha256: string;
  readonly plain_sha256: string;
  readonly cases: readonly { readonly s: string; readonly ids: readonly number[] }[];
  readonly decode: readonly { readonly ids: readonly number[]; readonly keep: string; readonly skip?: string }[];
}

const file = (name: string): Buffer => readFileSync(join(import.meta.dir, name));
const parsed = (name: string): unknown => JSON.parse(file(name).toString());

export const golden = parsed("variants.json") as {
  readonly seed: number;
  readonly count: number;
  readonly variants: readonly Variant[];
};
export const { points, classes, numbers, patterns } = parsed("points.json") as {
  readonly points: Readonly<Record<string, readonly string[]>>;
  readonly classes: Readonly<Record<string, string>>;
  readonly numbers: readonly (readonly [text: string, value: number])[];
  readonly patterns: readonly string[];
};

export const expressions = parsed("patterns.json") as readonly string[];

let charsmap: string | undefined;

/** The tokenizer.json of one of `bases/` with the members of `patch` in place of its own. */
export function variantJson(base: string, patch: Json): Buffer {
  const made = parsed(join("bases", `${base === "words" ? "wordpiece" : base}.json`)) as Json;
  const model = made["model"] as Json;
  if (base === "words") made["model"] = { type: "WordLevel", vocab: model["vocab"], unk_token: "[UNK]" };
  Object.assign(made, patch, { model: { ...(made["model"] as Json), ...(patch["model"] as Json | undefined) } });
  charsmap ??= gunzipSync(file("nmt_nfkc.map.gz")).toString("base64");
  return Buffer.from(JSON.stringify(made).replaceAll('"nmt_nfkc"', `"${charsmap}"`));
}

export function variant(name: string): Buffer {
  const { base, patch } = golden.variants.find((v) => v.name === name)!;
  return variantJson(base, patch);
}

const HARD = parsed("hard.json") as string[];
const PLAIN = "abcXYZ019 .,'-#_";

/** A random text of what normalizers and pre-tokenizers stumble over. */
export function hard(r: Rng, specials: readonly string[]): string {
  let out = "";
  for (let n = 1 + r.below(20); n > 0; n--) {
    const kind = r.below(8);
    if (kind === 0 && specials.length > 0) out += r.pick(specials);
    else if (kind === 1) out += String.fromCodePoint(1 + r.below(0x33ff));
    else if (kind === 2) out += String.fromCodePoint(0x10000 + r.below(0x10000));
    else if (kind < 5) out += PLAIN[r.below(16)];
    else out += r.pick(HARD);
  }
  return out;
}

/** The next text of a variant: of the two generators in turn. */
export const text = (r: Rng, i: number, specials: readonly string[]): string => (i % 2 === 0 ? string : hard)(r, specials);
