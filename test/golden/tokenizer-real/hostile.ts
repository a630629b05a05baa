/**
 * The tests on hostile texts: right ids (golden values by make_hostile.py), in linear time and bounded memory, and a tokenizer that works
 * afterwards. A share of them in `npm test`, all in `npm run test:exhaustive`.
 */
import { describe, expect, test } from "bun:test";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { fixtures } from "../../../scripts/fixtures.ts";
import { loadTokenizer, openTokenizer } from "../../../src/tokenizer/load.ts";
import type { Tokenizer } from "../../../src/tokenizer/tokenizer.ts";
import { digest, idsLine } from "./texts.ts";

interface Golden {
  readonly texts: Readonly<Record<string, readonly [unit: string, times: number]>>;
  readonly ids: Readonly<Record<string, Readonly<Record<string, readonly [count: number, sha256: string] | null>>>>;
}
interface Added {
  readonly added_tokens: readonly { readonly content: string; readonly special: boolean }[];
}

/** One of each kind of kernel and model; only the `main` ones get the longest text, and all texts doubled, in every run. */
const TOKENIZERS: readonly { readonly name: string; readonly main?: true }[] = [
  { name: "real/llama3_1", main: true },
  { name: "real/qwen3", main: true },
  { name: "real/gpt4o" },
  { name: "real/deepseek_v3" },
  { name: "real/gemma3", main: true },
  { name: "real/llama2" },
  { name: "small/marks" },
  { name: "small/tekken" },
  { name: "small/gpt2_digits" },
  { name: "small/metaspace_first" },
  { name: "small/prepend_strip" },
  { name: "own/metaspace_bpe" },
  { name: "real/claude" },
  { name: "real/minilm" },
  { name: "own/flags" },
  { name: "own/unigram", main: true },
  { name: "own/unigram_bytes" },
  { name: "own/wordpiece" },
];
const LONGEST = "10 MB of a letter";
/** Four bytes each, and as many bytes as buffers have. */
const FILLING = "unassigned";
/** What the process may grow by, the ids of three calls and garbage with it. NFC of marks is made of JavaScript strings. */
const MEMORY = [
  ["real/llama3_1", LONGEST, 250],
  ["real/gemma3", LONGEST, 250],
  ["real/llama3_1", "1 MB of marks", 100],
  ["real/qwen3", "1 MB of marks", 600],
  ["real/llama3_1", "specials", 100],
] as const;
/** Doubling a text may take three times as long (linear: 2, quadratic: 4); times below the floor say nothing. */
const GROWTH = 3;
const FLOOR_MS = 25;
/** Encoding here is promised to hold a thread for 10 ms; the machines that tests run on are busy. */
const SOON_MS = 40;
const SAMPLE = "Hello wörld, it's 12345 naïve 中文テスト한국어 👩‍👩‍👧 \n\n\tdef f(x):  return x";

const goldenFolder = join(import.meta.dir, "..");
const golden = JSON.parse(readFileSync(join(import.meta.dir, "hostile.golden.json"), "utf8")) as Golden;
const NAMES = Object.keys(golden.texts);

/** Defines the tests, with `all` those that take long too. The fixtures are fetched first, if they are missing. */
export async function hostile({ all }: { readonly all: boolean }): Promise<void> {
  const folders: Record<string, string> = {
    real: join(await fixtures(), "tokenizers"),
    own: join(import.meta.dir, "small"),
    small: join(goldenFolder, "tokenizer", "small"),
  };
  const read = (name: string): Uint8Array => {
    const [kind = "", file] = name.split("/");
    return readFileSync(join(folders[kind] ?? "", `${file}.json`));
  };
  for (const { name, main = all } of TOKENIZERS) {
    const names = main ? NAMES : NAMES.filter((key) => key !== LONGEST);
    describe(name, () => testOne(name, read(name), names, main));
  }
  for (const [name, key, megabytes] of MEMORY) {
    test(`${key}: ${name} takes less than ${megabytes} MB`, async () => {
      const json = read(name);
      const tokenizer = await load(json);
      const long = text(key, json);
      tokenizer.encode(SAMPLE);
      Bun.gc(true);
      const before = process.memoryUsage.rss();
      for (let i = 0; i < 3; i++) {
        tokenizer.encode(long);
        expect((process.memoryUsage.rss() - before) / 1e6).toBeLessThan(megabytes);
      }
    });
  }
}

function testOne(name: string, json: Uint8Array, names: readonly string[], main: boolean): void {
  let opened: Promise<Tokenizer> | undefined;
  const shared = (): Promise<Tokenizer> => {
    opened ??= load(json);
    return opened;
  };
  const rows = golden.ids[name] ?? {};

  test("encodes a text that fills its first buffers", async () => {
    const ids = (await load(json)).encode(text(FILLING, json));
    expect([ids.length, digest([idsLine(ids)])]).toEqual([...rows[FILLING]!]);
  });
  test("encodes them as the Rust library does", async () => {
    const tokenizer = await shared();
    const before = [...tokenizer.encode(SAMPLE)];
    const wanted = names.filter((key) => rows[key]).map((key) => [key, ...rows[key]!]);
    expect(wanted.length).toBeGreaterThan(35);
    const got = wanted.map(([key]) => {
      const ids = tokenizer.encode(text(String(key), json));
      return [key, ids.length, digest([idsLine(ids)])];
    });
    expect(got).toEqual(wanted);
    expect([...tokenizer.encode(SAMPLE)]).toEqual(before);
  });
  test("does not hold a serving thread", async () => {
    const tokenizer = await shared();
    const before = [...tokenizer.encode(SAMPLE)];
    for (const key of names) {
      const long = text(key, json);
      const took = fastest(() => tokenizer.encodeSoon(long), SOON_MS);
      if (took > SOON_MS) expect([key, took]).toEqual([key, SOON_MS]);
    }
    expect([...tokenizer.encode(SAMPLE)]).toEqual(before);
  });
  if (!main) return;
  test("takes twice the time for twice the text", async () => {
    const tokenizer = await shared();
    for (const key of names) {
      const scale = key === LONGEST ? 0.1 : 1;
      const [one, two] = [text(key, json, scale), text(key, json, scale * 2)];
      const measured: (readonly [number, number])[] = [];
      do {
        const after = fastest(() => tokenizer.encode(two), FLOOR_MS);
        measured.push([after < FLOOR_MS ? after : fastest(() => tokenizer.encode(one)), after]);
      } while (measured.at(-1)![1] > measured.at(-1)![0] * GROWTH && measured.length < 10);
      const [first, after] = measured.at(-1)!;
      if (after > first * GROWTH) expect([key, measured]).toEqual([key, []]);
    }
  });
}

const load = async (json: Uint8Array): Promise<Tokenizer> =>
  openTokenizer(await loadTokenizer(new Map([["tokenizer.json", json]])));

/** The text of that name, `scale` times as long. */
function text(name: string, json: Uint8Array, scale = 1): string {
  const [unit, times] = golden.texts[name]!;
  // a string for Rust can't hold surrogates: it was given what they count as
  if (unit !== "SPECIALS") return (unit === "\ufffd" ? "\ud800" : unit).repeat(Math.ceil(times * scale));
  const added = (JSON.parse(Buffer.from(json).toString()) as Added).added_tokens;
  const specials = added.filter(({ special }) => special).map(({ content }) => content);
  return specials.join("").repeat(Math.floor(times / specials.length) * scale);
}

/** Milliseconds of the thread, which others on the machine do not stretch as they do those of the clock. */
function milliseconds(work: () => unknown): number {
  const from = process.threadCpuUsage();
  work();
  const to = process.threadCpuUsage(from);
  return (to.user + to.system) / 1000;
}

/** The least of three, if the first is more than `floor`. */
function fastest(work: () => unknown, floor = 0): number {
  const first = milliseconds(work);
  return first <= floor ? first : Math.min(first, milliseconds(work), milliseconds(work));
}
