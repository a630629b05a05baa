/** The texts of corpus.golden.json, made from the fixtures by the rules that make_real.py documents. */
import { createHash } from "node:crypto";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import table from "../tokenizer/parts.json";
import { Rng } from "../tokenizer/strings.ts";

/** A text's rule and what it must come to; see `text` in make_real.py. */
export interface TextRule {
  readonly files: readonly string[];
  readonly rule: "text" | "html" | "values" | "emoji" | "whitespace";
  readonly first?: number;
  readonly n?: number;
  readonly code_points: number;
  readonly bytes: number;
  readonly sha256: string;
}

const SEPARATORS = ["", "", " ", "\n", "\u200d", "\ufe0f", "!", "a"];

/** The text of a rule, from the files in `folder`. Throws when it is not the text that the golden values are of. */
export function corpusText(folder: string, rule: TextRule): string {
  const text = made(
    rule,
    rule.files.map((file) => readFileSync(join(folder, file), "utf8")),
  );
  if (digest([text]) !== rule.sha256)
    throw new Error(`another text than that of the golden values: ${rule.files[0] ?? rule.rule}`);
  return text;
}

function made({ rule, first, n = 0 }: TextRule, files: readonly string[]): string {
  const r = new Rng(n);
  let out = "";
  switch (rule) {
    case "text":
      return first === undefined ? files.join("") : (pieces(files.join(""), first)[0] ?? "");
    case "html":
      return files.map((s) => s.replace(/<[^>]*>/g, "")).join("");
    case "values":
      return files.flatMap((s) => Object.values(JSON.parse(s) as Record<string, string>).map((v) => `${v}\n`)).join("");
    case "emoji": {
      const every = JSON.parse(files[0] ?? "[]") as string[];
      for (let i = 0; i < n; i++) out += r.pick(every) + r.pick(SEPARATORS);
      return out;
    }
    case "whitespace":
      for (let i = 0; i < n; i++) {
        for (let k = 1 + r.below(4); k > 0; k--) out += r.pick(table.parts.space);
        out += r.pick(r.below(2) ? table.parts.latin : table.parts.code);
      }
      return out;
  }
}

/** The text cut after every `size` code points. */
export function pieces(text: string, size: number): string[] {
  const out: string[] = [];
  let from = 0;
  let count = 0;
  for (let i = 0; i < text.length; i++) {
    const unit = text.charCodeAt(i);
    if (unit >= 0xd800 && unit < 0xdc00) i++;
    if (++count < size) continue;
    out.push(text.slice(from, i + 1));
    from = i + 1;
    count = 0;
  }
  if (from < text.length) out.push(text.slice(from));
  return out;
}

/** The hash of the golden files: sha256 over all lines, its first 32 digits. */
export function digest(lines: Iterable<string>): string {
  const hash = createHash("sha256");
  for (const line of lines) hash.update(line);
  return hash.digest("hex").slice(0, 32);
}

/** Ids as a line of what is hashed. */
export const idsLine = (ids: Uint32Array): string => `[${ids.join(",")}]\n`;
