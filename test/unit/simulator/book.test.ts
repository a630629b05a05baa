import { expect, test } from "bun:test";
import { RuleBook } from "../../../src/simulator/script/book.ts";
import { parseLiveFault, parseScript } from "../../../src/simulator/script/load.ts";

const never = () => {
  throw new Error("the prompt was read");
};

test("the first rule with a use left applies; a prompt is read only when a pattern asks for it", () => {
  const book = new RuleBook(parseScript("- {text: a, times: 2}\n- {text: b}"));
  expect([1, 2, 3].map(() => book.take(never)?.text)).toEqual(["a", "a", "b"]);
  expect(new RuleBook([]).take(never)).toBeUndefined();
  const patterned = new RuleBook(parseScript("- {contains: x, text: a}"));
  expect(patterned.take(() => "no")).toBeUndefined();
  expect(patterned.take(() => "axb")?.text).toBe("a");
});

test("a fault set at run time goes before the script's, and leaves its answer alone", () => {
  const book = new RuleBook(parseScript("- {text: a, delay_ms: 5, fault: no-complete}"));
  book.add(parseLiveFault({ fault: "hang", times: 1 }));
  expect(book.take(never)).toMatchObject({ text: "a", delayMs: 5, fault: { kind: "hang" } });
  expect(book.take(never)).toMatchObject({ text: "a", fault: { kind: "no-complete" } });
  book.add(parseLiveFault({ delay_ms: 50 }));
  expect(book.take(never)).toMatchObject({ delayMs: 50, fault: { kind: "no-complete" } });
  expect(book.faults.map(({ uses }) => uses)).toEqual([1, 1]);
  book.clear();
  expect(book.take(never)).toMatchObject({ delayMs: 5 });
  const bare = new RuleBook([]);
  bare.add(parseLiveFault({ fault: "hang" }));
  expect(bare.take(never)).toMatchObject({ text: undefined, tokenIds: undefined, fault: { kind: "hang" } });
});

test("a share of the prompts", () => {
  const draws = [0.2, 0.8, 0.49, 0.5];
  const book = new RuleBook([], () => draws.shift()!);
  book.add(parseLiveFault({ fault: "hang", probability: 0.5 }));
  expect([1, 2, 3, 4].map(() => book.take(never) !== undefined)).toEqual([true, false, true, false]);
});

test("a bad digest is none of a prompt's business", () => {
  const book = new RuleBook(parseScript("- {fault: bad-digest, times: 1}"));
  expect(book.take(never)).toBeUndefined();
  expect([book.takeOf("bad-digest"), book.takeOf("bad-digest")]).toEqual([{ kind: "bad-digest" }, undefined]);
});
