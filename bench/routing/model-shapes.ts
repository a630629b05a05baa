/** Further shapes, for the model only: other sizes of fleets, caches and loads than those that constants were found by. */
import { mixSeed } from "../loadgen/random.ts";
import { BODY, HEAD, LARGE_KV, type Shape, system, text, user, withHeads } from "./shapes.ts";

const BURST_EACH_SECS = 3;

/** A shape with the number of engines that it is for. */
export interface ModelShape extends Shape {
  readonly engines: number;
}

const burst: ModelShape = {
  id: "burst",
  title: `32 requests in 16 ms with one new beginning of 3,000 tokens, each ${BURST_EACH_SECS} s`,
  seconds: 30,
  kvTokens: LARGE_KV,
  engines: 8,
  asks: (seed, seconds) =>
    Array.from({ length: Math.ceil(seconds / BURST_EACH_SECS) }, (_, round) => {
      const head = system(text(3000, seed, HEAD, round));
      return Array.from({ length: 32 }, (_, i) => ({
        atMs: 1000 * BURST_EACH_SECS * round + i * 0.5,
        messages: [head, user(text(100, seed, BODY, round, i))],
        maxTokens: 64,
        key: `head-${round}`,
      }));
    }).flat(),
};

const cold: ModelShape = {
  id: "cold",
  title: "one at a time, nothing shared, 4 engines",
  seconds: 120,
  kvTokens: LARGE_KV,
  engines: 4,
  asks: (seed, seconds) =>
    Array.from({ length: seconds / 1.5 }, (_, i) => ({
      atMs: i * 1500,
      messages: [user(text(1000, seed, BODY, mixSeed(i)))],
      maxTokens: 32,
      key: `alone-${i}`,
    })),
};

export const MODEL_SHAPES: readonly ModelShape[] = [
  {
    engines: 8,
    ...withHeads(
      {
        id: "tenants-150",
        title: "150 tenants with 6,000 tokens each before 1,200 new ones, 8/s; 73 % of the fleet's caches",
        seconds: 120,
        kvTokens: 154_112,
      },
      { rate: 8, heads: 150, headWords: 6000, bodyWords: [1200, 1200], maxTokens: 64 },
    ),
  },
  {
    engines: 8,
    ...withHeads(
      {
        id: "tenants-150-24",
        title: "the same, 24/s: more than the fleet can do without its caches",
        seconds: 40,
        kvTokens: 154_112,
      },
      { rate: 24, heads: 150, headWords: 6000, bodyWords: [1200, 1200], maxTokens: 64 },
    ),
  },
  {
    engines: 16,
    ...withHeads(
      {
        id: "skewed-16",
        title: "200 texts of 3,000 tokens, some of them often (rank^-0.8), 50/s, 16 engines with small caches",
        seconds: 30,
        kvTokens: 65_536,
      },
      { rate: 50, heads: 200, headWords: 3000, skew: 0.8, bodyWords: [100, 900], maxTokens: 100 },
    ),
  },
  {
    engines: 8,
    ...withHeads(
      {
        id: "skewed",
        title: "100 texts of 2,000 tokens, some of them often (1 / rank), 30/s",
        seconds: 40,
        kvTokens: LARGE_KV,
      },
      { rate: 30, heads: 100, headWords: 2000, skew: 1, bodyWords: [100, 500], maxTokens: 100 },
    ),
  },
  {
    engines: 8,
    ...withHeads(
      { id: "hot-30", title: "as hot, 30/s: one engine could nearly do it", seconds: 20, kvTokens: LARGE_KV },
      { rate: 30, heads: 1, headWords: 4000, share: 0.8, bodyWords: [100, 100], aloneWords: 1000, maxTokens: 64 },
    ),
  },
  {
    engines: 16,
    ...withHeads(
      {
        id: "hot-16",
        title: "70 % begin with the same 3,000 tokens, 120/s, 16 engines",
        seconds: 15,
        kvTokens: LARGE_KV,
      },
      { rate: 120, heads: 1, headWords: 3000, share: 0.7, bodyWords: [50, 400], aloneWords: 800, maxTokens: 64 },
    ),
  },
  {
    engines: 8,
    ...withHeads(
      { id: "hot-3", title: "3 texts of 6,000 tokens, 60/s", seconds: 20, kvTokens: LARGE_KV },
      { rate: 60, heads: 3, headWords: 6000, bodyWords: [200, 200], maxTokens: 64 },
    ),
  },
  {
    engines: 8,
    ...withHeads(
      { id: "light-4", title: "as light, 4/s", seconds: 100, kvTokens: LARGE_KV },
      { rate: 4, heads: 64, headWords: 1200, bodyWords: [200, 200], maxTokens: 100 },
    ),
  },
  burst,
  cold,
];
