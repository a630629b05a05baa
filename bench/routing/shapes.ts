/**
 * Shapes of traffic for routing: seeded streams of chats that share beginnings, with the moments at which they come. The same seed
 * gives the same requests, byte by byte, to every gateway.
 */
import { promptText } from "../loadgen/prompts.ts";
import { mixSeed, poissonArrivals, Random } from "../loadgen/random.ts";

export interface ChatMessage {
  readonly role: "system" | "user" | "assistant";
  readonly content: string;
}

/** One request of a stream. */
export interface Ask {
  /** Milliseconds from the start of the stream. */
  readonly atMs: number;
  readonly messages: readonly ChatMessage[];
  readonly maxTokens: number;
  /** What belongs together, for policies that go by keys. */
  readonly key: string;
}

export interface Shape {
  readonly id: string;
  /** For people, one line. */
  readonly title: string;
  /** Length of a stream unless told otherwise, in seconds. */
  readonly seconds: number;
  /** KV cache of each of the 8 engines, in tokens. */
  readonly kvTokens: number;
  asks(seed: number, seconds: number): Ask[];
}

/** The engines' usual KV cache. */
export const LARGE_KV = 524_288;

/** Kinds of text that must differ although their numbers are equal. */
export const HEAD = 1;
export const BODY = 2;
const ANSWER = 3;

/** Text of so many words, a token each, by its kind and number. */
export function text(words: number, seed: number, kind: number, ...index: readonly number[]): string {
  return promptText({ kind: "unique" }, words, mixSeed(seed, kind), mixSeed(...index)).slice(1);
}

export const user = (content: string): ChatMessage => ({ role: "user", content });
export const system = (content: string): ChatMessage => ({ role: "system", content });

/** Requests that each have one of `heads` beginnings, or none. */
interface HeadShape {
  readonly rate: number;
  readonly heads: number;
  readonly headWords: number;
  /** Share of the requests that have a beginning; 1 unless given. */
  readonly share?: number;
  /** How much more some beginnings are asked for than others: by their rank to the power of minus this. All alike unless given. */
  readonly skew?: number;
  /** Words of their own, from `bodyWords[0]` to `bodyWords[1]`. */
  readonly bodyWords: readonly [number, number];
  /** Words of those without a beginning, where they are others. */
  readonly aloneWords?: number;
  readonly maxTokens: number;
}

/** Draws numbers of beginnings. */
function headDraw({ heads, skew }: HeadShape, random: Random): () => number {
  if (skew === undefined) return () => random.below(heads);
  const shares = Array.from({ length: heads }, (_, i) => (i + 1) ** -skew);
  const all = shares.reduce((sum, share) => sum + share, 0);
  return () => {
    let left = random.unit() * all;
    return Math.max(
      0,
      shares.findIndex((share) => (left -= share) <= 0),
    );
  };
}

function headAsks(shape: HeadShape, seed: number, seconds: number): Ask[] {
  const { rate, heads, headWords, share = 1, bodyWords, maxTokens } = shape;
  const [least, most] = bodyWords;
  const headTexts = Array.from({ length: heads }, (_, i) => text(headWords, seed, HEAD, i));
  const random = new Random(mixSeed(seed, 0x68656164));
  const drawn = headDraw(shape, random);
  const asks: Ask[] = [];
  for (const atMs of arrivals(rate, seconds, seed)) {
    const hasHead = random.unit() <= share;
    const head = drawn();
    const words = least + random.below(most - least + 1);
    const body = user(text(hasHead ? words : (shape.aloneWords ?? words), seed, BODY, asks.length));
    asks.push(
      hasHead
        ? { atMs, maxTokens, messages: [system(headTexts[head]!), body], key: `head-${head}` }
        : { atMs, maxTokens, messages: [body], key: `alone-${asks.length}` },
    );
  }
  return asks;
}

/** Moments of a Poisson process within so many seconds. */
function arrivals(rate: number, seconds: number, seed: number): number[] {
  const times = poissonArrivals(Math.ceil(rate * seconds * 1.5) + 50, rate, seed);
  return [...times].filter((ms) => ms < seconds * 1000);
}

const SYSTEM_WORDS = 400;
const TURNS = 6;
const QUESTION_WORDS = 120;
const ANSWER_WORDS = 160;
const MEAN_GAP_MS = 5000;

/**
 * Conversations that grow by an answer and a question a turn, all behind one system prompt. Answers are made here, so that what is
 * asked next is the same whoever answered; at the start of the stream many are in their middle.
 */
function turnAsks(rate: number, maxTokens: number, seed: number, seconds: number): Ask[] {
  const prompt = system(text(SYSTEM_WORDS, seed, HEAD, 0));
  const before = TURNS * MEAN_GAP_MS;
  const asks: Ask[] = [];
  for (const [number, start] of arrivals(rate / TURNS, seconds + before / 1000, seed).entries()) {
    const random = new Random(mixSeed(seed, 0x7475726e, number));
    const messages = [prompt];
    let atMs = start - before;
    for (let turn = 0; turn < TURNS; turn++) {
      messages.push(user(text(QUESTION_WORDS, seed, BODY, number, turn)));
      if (atMs >= 0 && atMs < seconds * 1000)
        asks.push({ atMs, maxTokens, messages: [...messages], key: `talk-${number}` });
      messages.push({ role: "assistant", content: text(ANSWER_WORDS, seed, ANSWER, number, turn) });
      // Nobody asks before the answer is there.
      atMs += 1000 - Math.log(random.unit()) * (MEAN_GAP_MS - 1000);
    }
  }
  return asks.sort((a, b) => a.atMs - b.atMs);
}

export const withHeads = (shape: Omit<Shape, "asks">, heads: HeadShape): Shape => ({
  ...shape,
  asks: (seed, seconds) => headAsks(heads, seed, seconds),
});

export const SHAPES: readonly Shape[] = [
  withHeads(
    {
      id: "tenants",
      title: "48 tenants with 3,000 tokens each before 600 new ones, 12/s; they fill 73 % of the fleet's caches",
      seconds: 40,
      kvTokens: 24_576,
    },
    { rate: 12, heads: 48, headWords: 3000, bodyWords: [600, 600], maxTokens: 64 },
  ),
  withHeads(
    {
      id: "sim_ab",
      title: "70 % begin with one of 16 texts of 200 tokens, then 16 to 128 new ones, 80/s",
      seconds: 20,
      kvTokens: LARGE_KV,
    },
    { rate: 80, heads: 16, headWords: 200, share: 0.7, bodyWords: [16, 128], maxTokens: 64 },
  ),
  withHeads(
    {
      id: "light",
      title: "64 texts of 1,200 tokens before 200 new ones, 10/s: a nearly idle fleet",
      seconds: 40,
      kvTokens: LARGE_KV,
    },
    { rate: 10, heads: 64, headWords: 1200, bodyWords: [200, 200], maxTokens: 100 },
  ),
  {
    id: "turns",
    title: `conversations of ${TURNS} turns that grow to 2,000 tokens, 24 turns/s`,
    seconds: 30,
    kvTokens: LARGE_KV,
    asks: (seed, seconds) => turnAsks(24, 64, seed, seconds),
  },
  withHeads(
    {
      id: "hot",
      title:
        "80 % begin with the same 4,000 tokens, then 100 new ones, the rest has 1,000 new ones; 60/s: too much for one",
      seconds: 20,
      kvTokens: LARGE_KV,
    },
    { rate: 60, heads: 1, headWords: 4000, share: 0.8, bodyWords: [100, 100], aloneWords: 1000, maxTokens: 64 },
  ),
  withHeads(
    {
      id: "long",
      title: "24 documents of 32,000 tokens before a question of 200, one token of answer; 1.5/s",
      seconds: 60,
      kvTokens: LARGE_KV,
    },
    { rate: 1.5, heads: 24, headWords: 32_000, bodyWords: [200, 200], maxTokens: 1 },
  ),
  withHeads(
    { id: "unique", title: "nothing shared: 1,000 new tokens, 12/s", seconds: 20, kvTokens: LARGE_KV },
    { rate: 12, heads: 1, headWords: 0, share: 0, bodyWords: [1000, 1000], maxTokens: 64 },
  ),
];

/** Small new prompts that are sent before a stream, for compilers and connections. */
export const WARM_UP: Shape = withHeads(
  { id: "warm-up", title: "60 new tokens", seconds: 2, kvTokens: LARGE_KV },
  { rate: 75, heads: 1, headWords: 0, share: 0, bodyWords: [60, 60], maxTokens: 8 },
);

export function shapeOf(id: string): Shape | undefined {
  return id === WARM_UP.id ? WARM_UP : SHAPES.find((shape) => shape.id === id);
}
