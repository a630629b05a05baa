/** Traffic for the model: what arrives when, always the same for one seed. */
import { mixSeed, poissonArrivals, Random } from "../loadgen/random.ts";

export interface Arrival {
  /** Milliseconds from the start. */
  readonly at: number;
  readonly ids: Uint32Array;
  readonly answer: number;
  readonly session?: string | undefined;
}

export interface Shape {
  readonly name: string;
  readonly what: string;
  readonly workers: number;
  /** Tokens of a worker's KV cache. */
  readonly kvTokens: number;
  readonly arrivals: (seed: number) => Arrival[];
}

const KV = 524_288;

/** Ids that depend on what they are for, and on nothing else. */
const idsOf = (seed: number, count: number): Uint32Array => {
  const random = new Random(seed);
  return Uint32Array.from({ length: count }, () => random.below(150_000));
};

const joined = (...parts: readonly Uint32Array[]): Uint32Array => {
  const all = new Uint32Array(parts.reduce((sum, part) => sum + part.length, 0));
  let at = 0;
  for (const part of parts) {
    all.set(part, at);
    at += part.length;
  }
  return all;
};

interface Shared {
  readonly rate: number;
  readonly seconds: number;
  readonly prefixes: number;
  readonly prefixTokens: number;
  readonly unique: readonly [least: number, most: number];
  readonly answer: number;
  /** Of the requests that begin with a prefix. */
  readonly share?: number;
}

/** Poisson arrivals, with one of several prefixes, all alike. */
const shared =
  ({ rate, seconds, prefixes, prefixTokens, unique, answer, share = 1 }: Shared) =>
  (seed: number): Arrival[] => {
    const random = new Random(mixSeed(seed, 1));
    const heads = Array.from({ length: prefixes }, (_, i) => idsOf(mixSeed(seed, 2, i), prefixTokens));
    return [...poissonArrivals(rate * seconds, rate, seed)].map((at, i) => {
      const hasPrefix = random.unit() <= share;
      const head = heads[random.below(prefixes)]!;
      const tail = idsOf(mixSeed(seed, 3, i), unique[0] + random.below(unique[1] - unique[0] + 1));
      return { at, ids: hasPrefix ? joined(head, tail) : tail, answer };
    });
  };

const burst = (seed: number): Arrival[] =>
  Array.from({ length: 20 }, (_, round) => {
    const head = idsOf(mixSeed(seed, 4, round), 3000);
    return Array.from({ length: 32 }, (_, i) => ({
      at: round * 3000 + i * 0.5,
      ids: joined(head, idsOf(mixSeed(seed, 5, round, i), 100)),
      answer: 64,
    }));
  }).flat();

/** Turns of conversations: each goes on from the last prompt, an answer, and some more. */
const chat = (seed: number): Arrival[] => {
  const system = idsOf(mixSeed(seed, 6), 600);
  const all: Arrival[] = [];
  for (let session = 0; session < 240; session++) {
    const random = new Random(mixSeed(seed, 7, session));
    let at = random.below(50_000);
    let ids = system;
    for (let turn = 0; turn < 8; turn++) {
      ids = joined(ids, idsOf(mixSeed(seed, 8, session, turn), 200 + random.below(600)));
      all.push({ at, ids, answer: 100, session: `session-${session}` });
      ids = joined(ids, idsOf(mixSeed(seed, 9, session, turn), 100));
      at += 3000 + random.below(8000);
    }
  }
  return all.sort((a, b) => a.at - b.at);
};

const cold = (seed: number): Arrival[] =>
  Array.from({ length: 80 }, (_, i) => ({ at: i * 1500, ids: idsOf(mixSeed(seed, 10, i), 1000), answer: 32 }));

export const SHAPES: readonly Shape[] = [
  {
    name: "ab",
    what: "80/s, 70 % with one of 16 prefixes of 260 tokens",
    workers: 8,
    kvTokens: KV,
    arrivals: shared({
      rate: 80,
      seconds: 30,
      prefixes: 16,
      prefixTokens: 260,
      unique: [21, 166],
      answer: 64,
      share: 0.7,
    }),
  },
  {
    name: "tenants",
    what: "8/s, 150 prefixes of 6000 tokens, 73 % of the fleet's KV",
    workers: 8,
    kvTokens: 154_112,
    arrivals: shared({ rate: 8, seconds: 150, prefixes: 150, prefixTokens: 6000, unique: [1200, 1200], answer: 64 }),
  },
  {
    name: "tenants-24",
    what: "the same, 24/s: more than the fleet can do without its caches",
    workers: 8,
    kvTokens: 154_112,
    arrivals: shared({ rate: 24, seconds: 60, prefixes: 150, prefixTokens: 6000, unique: [1200, 1200], answer: 64 }),
  },
  {
    name: "tenants-40",
    what: "12/s, 40 prefixes of 3000 tokens that fit every cache",
    workers: 8,
    kvTokens: KV,
    arrivals: shared({ rate: 12, seconds: 60, prefixes: 40, prefixTokens: 3000, unique: [1200, 1200], answer: 64 }),
  },
  {
    name: "long",
    what: "1/s, 32 documents of 31000 tokens, one token of answer",
    workers: 8,
    kvTokens: KV,
    arrivals: shared({ rate: 1, seconds: 300, prefixes: 32, prefixTokens: 31_000, unique: [1000, 1000], answer: 1 }),
  },
  {
    name: "hot",
    what: "60/s, one prefix of 3000 tokens",
    workers: 8,
    kvTokens: KV,
    arrivals: shared({ rate: 60, seconds: 30, prefixes: 1, prefixTokens: 3000, unique: [100, 100], answer: 64 }),
  },
  {
    name: "burst",
    what: "32 requests in 16 ms with one new prefix of 3000 tokens",
    workers: 8,
    kvTokens: KV,
    arrivals: burst,
  },
  { name: "chat", what: "240 conversations of 8 turns", workers: 8, kvTokens: KV, arrivals: chat },
  {
    name: "unique",
    what: "20/s, 2000 tokens, nothing shared",
    workers: 8,
    kvTokens: KV,
    arrivals: shared({ rate: 20, seconds: 60, prefixes: 1, prefixTokens: 0, unique: [200, 3800], answer: 64 }),
  },
  { name: "cold", what: "one at a time, nothing shared, 4 workers", workers: 4, kvTokens: KV, arrivals: cold },
];
