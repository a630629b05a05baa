/**
 * The two caches of the tokenizer: a repeated prompt, a chat grown by one turn, and what a first-seen prompt costs more than without
 * a cache. Each prompt is used once and by one side only; the sides take turns.
 *   node scripts/bun.mjs run bench/tokenizer-cache.ts NAME=FOLDER... [--rounds N] [--out FILE]
 * A folder holds a tokenizer.json whose chat tokens are those of Llama 3 or Qwen. The texts are the documentation and the declarations
 * in node_modules.
 */
import { readdirSync, readFileSync, writeFileSync } from "node:fs";
import { cpus, loadavg } from "node:os";
import { join } from "node:path";
import { parseArgs } from "node:util";
import { createTokenizerCache } from "../src/tokenizer/cache/board.ts";
import { cachedTokenizer } from "../src/tokenizer/cache/cached-tokenizer.ts";
import { loadTokenizer, openTokenizer } from "../src/tokenizer/load.ts";
import type { Tokenizer } from "../src/tokenizer/tokenizer.ts";

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: { rounds: { type: "string", default: "400" }, out: { type: "string" } },
});
const ROUNDS = Number(values.rounds);
const PROMPT = 28_000;
const PIECE = 1500;
/** Prompts a side before the first that counts. */
const WARM_UP = 100;
const ARENA = 52_428_800;
const root = join(import.meta.dir, "..");

/** The texts in pieces, in an order that has nothing to do with where they are from; always the same. */
function corpus(): string {
  const folder = join(root, "node_modules");
  const files = readdirSync(folder, { recursive: true, encoding: "utf8" })
    .filter((name) => name.endsWith(".md") || name.endsWith(".d.ts"))
    .sort();
  const all = files.map((name) => readFileSync(join(folder, name), "utf8")).join("\n");
  const pieces: string[] = [];
  for (let from = 0; from < all.length; from += PIECE) pieces.push(all.slice(from, from + PIECE));
  let state = 1;
  for (let i = pieces.length - 1; i > 0; i--) {
    state = (Math.imul(state, 1664525) + 1013904223) >>> 0;
    const j = Math.floor((state / 2 ** 32) * (i + 1));
    [pieces[i], pieces[j]] = [pieces[j]!, pieces[i]!];
  }
  return pieces.join("").replaceAll(/[\u0100-\uffff]/g, "?");
}

const text = corpus();
let at = 0;
/** The next `size` characters. After some 15 MB they come again: the tokenizer's word cache has forgotten them then. */
function fresh(size: number): string {
  if (at + size > text.length) at = 0;
  at += size;
  return text.slice(at - size, at);
}

type Turn = (role: string, content: string) => string;
function turnOf(tokenizer: Tokenizer): Turn {
  return tokenizer.tokenId("<|im_start|>") === undefined
    ? (role, content) => `<|start_header_id|>${role}<|end_header_id|>\n\n${content}<|eot_id|>`
    : (role, content) => `<|im_start|>${role}\n${content}<|im_end|>\n`;
}
const roleOf = (i: number): string => (i % 2 === 0 ? "user" : "assistant");
/** As it comes from a template: one flat string. */
const flat = (s: string): string => Buffer.from(s).toString();
const chat = (turn: Turn, messages: number, size: number, first = 0): string =>
  Array.from({ length: messages }, (_, i) => turn(roleOf(first + i), fresh(Math.floor(size / messages)))).join("");

function timed(run: () => Uint32Array): number {
  const started = performance.now();
  run();
  return (performance.now() - started) * 1000;
}
const sorted = (values: readonly number[]): number[] => [...values].sort((a, b) => a - b);
const median = (values: readonly number[]): number => sorted(values)[values.length >> 1]!;
const tenth = (values: readonly number[]): string => sorted(values)[Math.floor(values.length / 10)]!.toFixed(2);

interface Row {
  readonly what: string;
  readonly tokens: number;
  readonly plain: number;
  readonly cached: number;
  readonly note: string;
}

/** First-seen prompts, with and without a cache, in turn; the order changes from pair to pair. */
function misses(tokenizer: Tokenizer, messages: number, filled: boolean): Row {
  const turn = turnOf(tokenizer);
  const memory = createTokenizerCache({ l0: true, l1: true, l0Entries: 10_000, bytes: ARENA });
  if (filled) new Uint8Array(memory).subarray(memory.byteLength - ARENA).fill(0);
  const cached = cachedTokenizer(tokenizer, memory, { verifyShare: 0.001 });
  const plainTimes: number[] = [];
  const cachedTimes: number[] = [];
  let tokens = 0;
  for (let i = -WARM_UP; i < ROUNDS; i++) {
    const [a, b] = [flat(chat(turn, messages, PROMPT)), flat(chat(turn, messages, PROMPT))];
    const first = i % 2 === 0 ? timed(() => tokenizer.encode(a)) : timed(() => cached.encode(a));
    const second = i % 2 === 0 ? timed(() => cached.encode(b)) : timed(() => tokenizer.encode(b));
    if (i < 0) continue;
    plainTimes.push(i % 2 === 0 ? first : second);
    cachedTimes.push(i % 2 === 0 ? second : first);
    tokens += tokenizer.encode(a).length;
  }
  const [plain, withCache] = [median(plainTimes), median(cachedTimes)];
  return {
    what: `first-seen, ${messages} message${messages > 1 ? "s" : ""}${filled ? "" : ", arena never used before"}`,
    tokens: Math.round(tokens / ROUNDS),
    plain,
    cached: withCache,
    note: `${((withCache / plain - 1) * 100).toFixed(1)} % more`,
  };
}

/** A chat that grows by two messages, each time a new one. */
function grown(tokenizer: Tokenizer): Row {
  const turn = turnOf(tokenizer);
  const memory = createTokenizerCache({ l0: true, l1: true, l0Entries: 10_000, bytes: ARENA });
  new Uint8Array(memory).subarray(memory.byteLength - ARENA).fill(0);
  const cached = cachedTokenizer(tokenizer, memory, { verifyShare: 0.001 });
  const plainTimes: number[] = [];
  const cachedTimes: number[] = [];
  let tokens = 0;
  const rounds = Math.floor(ROUNDS / 3);
  for (let i = 0; i < rounds; i++) {
    const before = chat(turn, 38, PROMPT * 0.95);
    cached.encode(flat(before));
    const after = before + chat(turn, 2, PROMPT * 0.05);
    const [a, b] = [flat(after), flat(after)];
    cachedTimes.push(timed(() => cached.encode(a)));
    plainTimes.push(timed(() => tokenizer.encode(b)));
    tokens += tokenizer.encode(b).length;
  }
  return {
    what: "chat of 20 turns, grown by one",
    tokens: Math.round(tokens / rounds),
    plain: median(plainTimes),
    cached: median(cachedTimes),
    note: "plain: words seen just before",
  };
}

function repeated(tokenizer: Tokenizer): Row {
  const turn = turnOf(tokenizer);
  const memory = createTokenizerCache({ l0: true, l1: true, l0Entries: 10_000, bytes: ARENA });
  const cached = cachedTokenizer(tokenizer, memory, { verifyShare: 0.001 });
  const prompt = flat(chat(turn, 40, PROMPT));
  const ids = cached.encode(prompt);
  for (let i = 0; i < 2000; i++) cached.encode(prompt);
  const plain = Array.from({ length: 500 }, () => timed(() => tokenizer.encode(prompt)));
  const hits = Array.from({ length: 5000 }, () => timed(() => cached.encode(prompt)));
  const copies = Array.from({ length: 5000 }, () => timed(() => ids.slice()));
  const note = `${Buffer.byteLength(prompt)} bytes; of that the fresh array for the ids: ${median(copies).toFixed(2)}, tenth percentiles ${tenth(hits)} and ${tenth(copies)}`;
  return { what: "repeated prompt (L0)", tokens: ids.length, plain: median(plain), cached: median(hits), note };
}

const lines = [
  `${cpus()[0]?.model.trim()}, ${cpus().length} cores, Bun ${Bun.version}. Medians, in us; first-seen: ${ROUNDS} prompts a side, each seen once. Load average ${loadavg()[0]?.toFixed(1)}.`,
  "",
  "| tokenizer | what | tokens | plain | cached | |",
  "|---|---|---|---|---|---|",
];
for (const argument of positionals) {
  const [name, folder] = argument.split("=") as [string, string];
  const files = new Map([["tokenizer.json", new Uint8Array(readFileSync(join(folder, "tokenizer.json")))]]);
  const tokenizer = openTokenizer(await loadTokenizer(files));
  const rows = [
    misses(tokenizer, 1, false),
    misses(tokenizer, 1, true),
    misses(tokenizer, 40, true),
    grown(tokenizer),
    repeated(tokenizer),
  ];
  for (const { what, tokens, plain, cached, note } of rows)
    lines.push(`| ${name} | ${what} | ${tokens} | ${plain.toFixed(1)} | ${cached.toFixed(2)} | ${note} |`);
}
console.log(lines.join("\n"));
if (values.out !== undefined) writeFileSync(values.out, `${lines.join("\n")}\n`);
