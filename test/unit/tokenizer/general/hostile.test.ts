/** Eight times the text takes about eight times the time, whatever it is made of. */
import { describe, expect, test } from "bun:test";
import { named } from "./fixtures.ts";

const marks = ["\u0301", "\u0323", "\u0345", "\u0334", "\u05b0", "\u0f71", "\uff9e"];
const TEXTS: Readonly<Record<string, (n: number) => string>> = {
  "one letter": (n) => "a".repeat(n),
  "marks out of order": (n) => Array.from({ length: n }, (_, i) => marks[(i * 5) % marks.length]).join(""),
  spaces: (n) => " ".repeat(n),
  "special tokens": (n) => "<s> ".repeat(n / 4),
  apostrophes: (n) => "'".repeat(n),
  ideographs: (n) => "的是".repeat(n / 2),
};
const SIZE = 40_000;

for (const name of [
  "like XLM-R",
  "like ALBERT",
  "like BERT",
  "like SmolLM",
  "like Llama 2",
  "added Metaspace first NFKC",
]) {
  describe(name, () => {
    const tokenizer = named(name);
    /** Shortest of two times, in ms. */
    const time = (text: string): number => {
      const times = Array.from({ length: 2 }, () => {
        const from = performance.now();
        tokenizer.encode(text);
        return performance.now() - from;
      });
      return Math.min(...times);
    };
    test.each(Object.entries(TEXTS))("%s", (_, make) => {
      time(make(SIZE / 4));
      const ratio = (): number => time(make(SIZE * 8)) / Math.max(1, time(make(SIZE)));
      // quadratic growth would be 64; what does not fit in the processor's caches may take three times as long as the rest
      let least = ratio();
      for (let tries = 0; least >= 40 && tries < 3; tries++) least = Math.min(least, ratio());
      expect(least).toBeLessThan(40);
    });
  });
}
