/**
 * The two caches of the tokenizer: a repeated prompt, a chat grown by one turn, and what a first-seen prompt costs more than without
 * a cache, where prompts come again and where none does. Each prompt is used once and by one side only; chance decides by which, and which side goes first.
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
  options: { rounds: { type: "string", default: "3000" }, out: { type: "string" } },
});
const ROUNDS = Number(values.rounds);
/** Characters of some 8000 tokens, and of the prompt that is repeated. */
const PROMPT = 36_000;
const REPEATED = 32_000;
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
let passes = 0;
/**
 * The next `size` characters. After some 20 MB they come again, cut at other places: the tokenizer's word cache has forgotten them, and
 * the cache does not know them.
 */
function fresh(size: number): string {
  if (at + size > text.length) at = (++passes * 7919) % PROMPT;
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

/** Until what waits for a pause has had it: the time of a prompt ends before, as a request goes on. */
const pause = (): Promise<void> => new Promise((done) => setImmediate(done));
/** What was done in pauses, in us. */
let pauses: number[] = [];
const later = (store: () => void): void => {
  setImmediate(() => {
    const started = performance.now();
    store();
    pauses.push((performance.now() - started) * 1000);
  });
};

/** A cache; its memory was written to before, if it is to be as after some use. */
function cacheOf(tokenizer: Tokenizer, filled: boolean): Tokenizer {
  const memory = createTokenizerCache({ l0: true, l1: true, l0Entries: 10_000, bytes: ARENA });
  if (filled) new Uint8Array(memory).subarray(memory.byteLength - ARENA).fill(0);
  return cachedTokenizer(tokenizer, memory, { verifyShare: 0.001, later });
}

/** Short chats that go through all of the code, on both sides, so that it is compiled as in a process that has served for a minute. */
const SHORT = 20_000;
async function warmUp(sides: readonly Tokenizer[], turn: Turn): Promise<void> {
  for (let i = 0; i < SHORT; i++) {
    for (const side of sides) side.encode(flat(chat(turn, 2, 3600)));
    await pause();
  }
}
/** Where prompts come again, one of so many does: the cache stores them all then. */
const AGAIN = 8;
function comeAgain(cached: Tokenizer, i: number): void {
  const prompt = fresh(600);
  for (let k = 0; k < 2 && i % AGAIN === 0; k++) cached.encode(prompt);
}

/** First-seen prompts, with and without a cache. An arena that was never used before has room for some 700 of them. */
async function misses(tokenizer: Tokenizer, messages: number, filled: boolean, again = true): Promise<Row> {
  const turn = turnOf(tokenizer);
  const cached = cacheOf(tokenizer, filled);
  if (filled) await warmUp([tokenizer, cached], turn); // none of them comes again
  const plainTimes: number[] = [];
  const cachedTimes: number[] = [];
  const ratios: number[] = [];
  let tokens = 0;
  const rounds = filled ? ROUNDS : Math.min(ROUNDS, 500);
  for (let i = -WARM_UP; i < rounds; i++) {
    const prompts = [flat(chat(turn, messages, PROMPT)), flat(chat(turn, messages, PROMPT))];
    if (again) comeAgain(cached, i);
    await pause();
    if (i === 0) pauses = [];
    const one = Math.random() < 0.5 ? 0 : 1;
    const plainFirst = Math.random() < 0.5;
    const before = plainFirst ? timed(() => tokenizer.encode(prompts[one]!)) : 0;
    const withCache = timed(() => cached.encode(prompts[1 - one]!));
    await pause();
    const plain = plainFirst ? before : timed(() => tokenizer.encode(prompts[one]!));
    if (i < 0) continue;
    plainTimes.push(plain);
    cachedTimes.push(withCache);
    ratios.push(withCache / plain);
    tokens += tokenizer.encode(prompts[one]!).length;
  }
  return {
    what: `first-seen, ${messages} message${messages > 1 ? "s" : ""}${filled ? "" : ", arena never used before"}${again ? "" : ", nothing comes again"}`,
    tokens: Math.round(tokens / rounds),
    plain: median(plainTimes),
    cached: median(cachedTimes),
    note: `${((median(ratios) - 1) * 100).toFixed(1)} % more (median of pairs); in the pause after it ${median(pauses).toFixed(1)}`,
  };
}

/**
 * The same by another way, which the lengths of words do not blur: the time that is spent outside of the tokenizer's own work, with a
 * cache, and where the ids are only copied into an array.
 */
async function outside(tokenizer: Tokenizer, messages: number): Promise<Row> {
  const turn = turnOf(tokenizer);
  const own = tokenizer.buffer!;
  let inner = 0;
  const watch = <A, R>(step: (of: A) => R): ((of: A) => R) => {
    return (of) => {
      const started = performance.now();
      const result = step(of);
      inner += performance.now() - started;
      return result;
    };
  };
  const buffer = { ...own, write: watch(own.write), encodeFrom: watch(own.encodeFrom) };
  const cached = cacheOf({ ...tokenizer, buffer }, true);
  const sides = [
    (prompt: string) => {
      buffer.write(prompt);
      return new Uint32Array(buffer.encodeFrom(0)!.ids);
    },
    (prompt: string) => cached.encode(prompt),
  ];
  const times: [number[], number[]] = [[], []];
  let tokens = 0;
  for (let i = -WARM_UP; i < ROUNDS; i++) {
    const side = Math.random() < 0.5 ? 0 : 1;
    comeAgain(cached, i);
    await pause();
    const prompt = flat(chat(turn, messages, PROMPT));
    inner = 0;
    let length = 0;
    const whole = timed(() => {
      const ids = sides[side]!(prompt);
      length = ids.length;
      return ids;
    });
    if (i < 0) continue;
    times[side]!.push(whole - inner * 1000);
    tokens += length;
  }
  const [plain, withCache] = times;
  return {
    what: `of that outside of the tokenizer, ${messages} message${messages > 1 ? "s" : ""}`,
    tokens: Math.round(tokens / ROUNDS),
    plain: median(plain),
    cached: median(withCache),
    note: `${(median(withCache) - median(plain)).toFixed(1)} us more; tenth percentiles ${tenth(plain)} and ${tenth(withCache)}`,
  };
}

/** A chat that grows by two messages, each time a new one. */
async function grown(tokenizer: Tokenizer): Promise<Row> {
  const turn = turnOf(tokenizer);
  const cached = cacheOf(tokenizer, true);
  const plainTimes: number[] = [];
  const cachedTimes: number[] = [];
  let tokens = 0;
  const rounds = Math.floor(ROUNDS / 2);
  pauses = [];
  for (let i = 0; i < rounds; i++) {
    const before = chat(turn, 38, PROMPT * 0.95);
    cached.encode(flat(before));
    await pause();
    const after = before + chat(turn, 2, PROMPT * 0.05);
    const [a, b] = [flat(after), flat(after)];
    cachedTimes.push(timed(() => cached.encode(a)));
    await pause();
    plainTimes.push(timed(() => tokenizer.encode(b)));
    tokens += tokenizer.encode(b).length;
  }
  return {
    what: "chat of 20 turns, grown by one",
    tokens: Math.round(tokens / rounds),
    plain: median(plainTimes),
    cached: median(cachedTimes),
    note: `tenth percentile ${tenth(cachedTimes)}; in the pauses ${median(pauses).toFixed(1)}; plain: words seen just before`,
  };
}

function repeated(tokenizer: Tokenizer): Row {
  const turn = turnOf(tokenizer);
  const cached = cacheOf(tokenizer, false);
  const prompt = flat(chat(turn, 40, REPEATED - 40 * turn("user", "").length));
  const ids = cached.encode(prompt);
  // so many that the garbage collector has come by, and arrays get memory that was used before
  for (let i = 0; i < 20_000; i++) cached.encode(prompt);
  const plain = Array.from({ length: 500 }, () => timed(() => tokenizer.encode(prompt)));
  const hits = Array.from({ length: 5000 }, () => timed(() => cached.encode(prompt)));
  const note = `${Buffer.byteLength(prompt)} bytes; tenth percentile ${tenth(hits)}`;
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
    await misses(tokenizer, 1, false),
    await misses(tokenizer, 1, true),
    await misses(tokenizer, 40, true),
    await misses(tokenizer, 1, true, false),
    await misses(tokenizer, 40, true, false),
    await outside(tokenizer, 1),
    await outside(tokenizer, 40),
    await grown(tokenizer),
    repeated(tokenizer),
  ];
  for (const { what, tokens, plain, cached, note } of rows)
    lines.push(`| ${name} | ${what} | ${tokens} | ${plain.toFixed(1)} | ${cached.toFixed(2)} | ${note} |`);
}
console.log(lines.join("\n"));
if (values.out !== undefined) writeFileSync(values.out, `${lines.join("\n")}\n`);
