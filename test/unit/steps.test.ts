import { describe, expect, test } from "bun:test";
import { atOnce, inTurns, type Steps } from "../../src/steps.ts";
import { losslessSteps, parseLossless } from "../../src/template/lossless-json.ts";
import { plainSteps, plainValue } from "../../src/template/plain-value.ts";

/** Works for so many ms, giving way behind each. */
function* working(ms: number): Steps<string> {
  for (let i = 0; i < ms; i++) {
    for (const until = performance.now() + 1; performance.now() < until; );
    yield;
  }
  return "done";
}

test("what has no pieces is there at once", () => {
  expect(inTurns(working(0))).toBe("done");
  expect(atOnce(working(3))).toBe("done");
});

test("others have their turn meanwhile", async () => {
  let others = 0;
  const timer = setInterval(() => others++, 0);
  const done = await inTurns(working(60));
  clearInterval(timer);
  expect(done).toBe("done");
  expect(others).toBeGreaterThan(2);
});

test("a first piece that takes long is followed by others' turn", async () => {
  const order: string[] = [];
  function* pieces(): Steps<void> {
    for (const until = performance.now() + 10; performance.now() < until; );
    setImmediate(() => order.push("others"));
    yield;
    order.push("second piece");
  }
  await inTurns(pieces());
  expect(order).toEqual(["others", "second piece"]);
});

test("of several, all go on", async () => {
  const ended: number[] = [];
  const run = async (ms: number): Promise<void> => {
    await inTurns(working(ms));
    ended.push(ms);
  };
  await Promise.all([run(40), run(8)]);
  expect(ended).toEqual([8, 40]);
});

test("what fails in a later step rejects", async () => {
  function* failing(): Steps<void> {
    yield;
    throw new RangeError("too far");
  }
  expect(() => atOnce(failing())).toThrow("too far");
  await expect(inTurns(failing())).rejects.toThrow("too far");
});

const items = (count: number, of: (i: number) => string) => Array.from({ length: count }, (_, i) => of(i)).join(",");
const LONG = [
  `[${items(20_000, (i) => `{"k${i}":[${i}.0,"text",null,{"2":1,"1":${i}e2}],"empty":{},"none":[]}`)}]`,
  `{${items(50_000, (i) => `"k${i % 30_000}":${i}`)}}`,
  `[${'"a",'.repeat(100_000)}"b"]`,
  `"${"x".repeat(200_000)}"`,
];
const BROKEN = [
  `[${items(50_000, String)},`,
  `[${items(50_000, String)}`,
  `[${items(50_000, String)}]]`,
  "[1,",
  "{",
  "",
];

describe("JSON in steps is read as in one go", () => {
  test.each(LONG)("%#", (text) => expect(atOnce(losslessSteps(text))).toEqual(parseLossless(text)));

  test.each(BROKEN)("broken: %#", (text) => {
    const failure = (run: () => unknown): string => {
      try {
        return `read: ${String(run())}`;
      } catch (error) {
        return String(error);
      }
    };
    expect(failure(() => atOnce(losslessSteps(text)))).toBe(failure(() => parseLossless(text)));
    expect(failure(() => parseLossless(text))).toStartWith("SyntaxError");
  });
});

describe("plain data in steps becomes what it becomes in one go", () => {
  const parsed: unknown = parseLossless(LONG[0]!);
  test.each<[string, unknown]>([
    ["what was read lossless", parsed],
    ["what JSON.parse gives", JSON.parse(LONG[0]!)],
    ["both", { role: "user", content: [{ type: "text", text: "a" }], calls: parsed, none: undefined, f: 1.5, n: -1 }],
    ["a list with holes", [parsed, undefined, 0.5, [1.5]]],
    ["a text", "a"],
    ["a fraction", 0.5],
  ])("%s", (_, value) => expect(atOnce(plainSteps(value))).toEqual(plainValue(value)));

  test("nothing is copied that is made of such values", () => expect(atOnce(plainSteps(parsed))).toBe(parsed as never));

  test("what is no data is refused", () => {
    for (const value of [new Date(), () => 1, { a: { b: new Date() } }, [new Map([[1, 2]])]])
      expect(() => atOnce(plainSteps(value))).toThrow("template");
  });
});
