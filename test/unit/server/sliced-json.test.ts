import { describe, expect, test } from "bun:test";
import { BadJsonError } from "../../../src/errors.ts";
import { parseSliced } from "../../../src/server/sliced-json.ts";
import { Rng } from "../../golden/tokenizer/strings.ts";

const WHAT = "The body";
const list = (count: number, item: (i: number) => string) => Array.from({ length: count }, (_, i) => item(i)).join(",");
const refusal = async (text: string): Promise<string> => {
  try {
    await parseSliced(text, WHAT);
  } catch (error) {
    expect(error).toBeInstanceOf(BadJsonError);
    return (error as Error).message;
  }
  return "nothing was refused";
};

const LARGE: Readonly<Record<string, string>> = {
  "keys of one object": `{"x":{${list(90_000, (i) => `"k${i}":${i}`)}},"y":1}`,
  "keys of the outermost object": ` {${list(90_000, (i) => ` "k${i % 80_000}" : [${i}] `)}} \n`,
  "small objects": `{"messages":[${list(60_000, (i) => `{"role":"user","content":"\\"[{,${i}\\\\"}`)}]}`,
  numbers: `{"a":[${list(300_000, (i) => String(i % 7 === 0 ? i / 8 : -i))}],"b":[[${list(90_000, String)}],[]]}`,
  "long strings": `{"a":"${"x".repeat(100_000)}","b":{"c":"${'\\\\\\"'.repeat(40_000)}","d":[{"e":"${"ü,]".repeat(50_000)}"}]}}`,
  "lists in lists": `{"a":${"[1,".repeat(200)}[${list(50_000, () => "[[],{}]")}]${",2]".repeat(200)},"b":{"c":{}}}`,
  "large ones side by side": `{"a":[${list(9, () => `{"b":[${list(30_000, String)}] , "c":{"d":[${list(20_000, () => '""')}]}}`)}]}`,
  space: `{"a" : ${" \n".repeat(200_000)}1 , "b":[ ${" ".repeat(200_000)} ], "c":[ [${list(40_000, String)}] \t ]\t}`,
  "names of the prototype": `{"__proto__":{"a":[${list(40_000, String)}]},"b":[{"__proto__":1}],"constructor":2,"__proto__":[${list(40_000, String)}]}`,
  "one string": `{"a":"${"y".repeat(1_000_000)}"}`,
};

describe("gives what JSON.parse gives", () => {
  test.each(Object.entries(LARGE))("%s", async (_, text) => {
    const value = await parseSliced(text, WHAT);
    expect(Bun.deepEquals(value, JSON.parse(text) as unknown, true)).toBe(true);
    expect(JSON.stringify(value) === JSON.stringify(JSON.parse(text))).toBe(true);
  });

  test("a random text, whole or with one character changed, added or lost", async () => {
    const rng = new Rng(7);
    const value = (depth: number): string => {
      const kind = depth > 3 ? rng.below(3) : rng.below(5);
      if (kind === 0) return String(rng.below(1e6));
      if (kind === 1) return JSON.stringify('a"\\[{,'.repeat(rng.below(9)));
      if (kind === 2) return ["true", "null", "-1.5e3", "[]", "{}"][rng.below(5)] ?? "";
      const items = Array.from({ length: rng.below(depth === 0 ? 600 : 6) }, () => value(depth + 1));
      return kind === 3 ? `[${items.join(",")}]` : `{${items.map((item, i) => `"k${i % 50}":${item}`).join(", ")}}`;
    };
    const outcome = (read: () => unknown): string => {
      try {
        return JSON.stringify(read());
      } catch {
        return "refused";
      }
    };
    let [right, wrong] = [0, 0];
    for (let round = 0; round < 30; round++) {
      const text = `{${list(40, (i) => `"m${i}":${value(0)}`)}}`;
      const at = 1 + rng.below(text.length - 1);
      const other = '[]{},:"\\1 '[rng.below(10)] ?? "";
      const texts = [text, text.slice(0, at) + other + text.slice(at + 1), text.slice(0, at) + other + text.slice(at)];
      for (const candidate of [...texts, text.slice(0, at) + text.slice(at + 1), text.slice(0, at)]) {
        const wanted = outcome(() => JSON.parse(candidate));
        let got = "refused";
        try {
          got = JSON.stringify(await parseSliced(candidate, WHAT));
        } catch (error) {
          expect(error).toBeInstanceOf(BadJsonError);
        }
        if (got !== wanted) throw new Error(`round ${round}, at ${at} ${JSON.stringify(other)}: read otherwise`);
        if (wanted === "refused") wrong++;
        else right++;
      }
    }
    expect([right > 40, wrong > 40]).toEqual([true, true]);
  });

  test("objects that hide toString can be printed, wherever they are", async () => {
    const text = `{"toString":1,"a":{"toString":2,"b":[${list(40_000, String)}]},"c":[{"toString":3}]}`;
    const value = (await parseSliced(text, WHAT)) as { a: object; c: object[] };
    for (const object of [value, value.a, value.c[0]]) expect(`${object}`).toBe("an object");
  });
});

describe("refuses", () => {
  const filler = list(40_000, String);

  test("brackets beyond reason, before it reads what is behind them", async () => {
    expect(await refusal(`{"a":${"[".repeat(10_000_000)}`)).toBe("The body nests deeper than 256 levels");
    expect(await refusal(`{"f":[${filler}],"a":${'{"a":'.repeat(256)}`)).toBe("The body nests deeper than 256 levels");
    expect(await refusal(`{"f":[${filler}],"a":${"[".repeat(255)}1${"]".repeat(255)}}`)).toBe("nothing was refused");
    expect(await refusal("[".repeat(10_000_000))).toBe("The body must be a JSON object");
  });

  test("an object of too many keys", async () => {
    const keys = (count: number) => `{"a":{${list(count, (i) => `"k${i}":1`)}}}`;
    expect(await refusal(keys(100_000))).toBe("nothing was refused");
    expect(await refusal(keys(100_001))).toBe("The body has an object of more than 100000 keys");
    expect(await refusal(`{"a":[${list(200_000, String)}]}`)).toBe("nothing was refused");
  });

  test.each([
    "",
    " ".repeat(300_000),
    `{"a":[${filler}]`,
    `{"a":[${filler}]}}`,
    `{"a":[${filler}]} {}`,
    `{"a":[${filler}}]`,
    `{"a":[${filler},]}`,
    `{"a":[${filler}],}`,
    `{"a":[,${filler}]}`,
    `{"a":[${filler},,1]}`,
    `{"a":[[${filler}]1]}`,
    `{"a":[[${filler}][1]]}`,
    `{"a":[1[${filler}]]}`,
    `{"a":{"b":[${filler}]"c":1}}`,
    `{"a":{[${filler}]}}`,
    `{"a":{"b","c":[${filler}]}}`,
    `{"a":["b":[${filler}]]}`,
    `{"a":"${"x".repeat(300_000)}`,
    `{"a":"${"x".repeat(300_000)}\n"}`,
    `"${"x".repeat(300_000)}"`,
    `[${filler}]`,
    `,{"a":[${filler}]}`,
  ])("what is wrong: %#", async (text) => {
    expect(await refusal(text)).toStartWith("The body ");
  });
});

test("gives way while it reads", async () => {
  let turns = 0;
  let reading = true;
  const count = (): void => {
    turns++;
    if (reading) setImmediate(count);
  };
  setImmediate(count);
  await parseSliced(`{"a":[${list(500_000, (i) => `"${i}"`)}]}`, WHAT);
  reading = false;
  expect(turns).toBeGreaterThan(3);
});

/** Doubling a text may take three times as long (linear: 2, quadratic: 4). */
const GROWTH = 3;

test.each<readonly [string, (count: number) => string]>([
  ["keys", (count) => `{"a":{${list(count, (i) => `"k${i}":1`)}}}`],
  ["lists in lists", (count) => `{"a":${"[1,".repeat(200)}[${list(count, () => "[[],{}]")}]${",2]".repeat(200)}}`],
  ["backslashes", (count) => `{"a":"${'\\\\\\"'.repeat(count * 4)}"}`],
  ["space", (count) => `{"a":[${list(count / 10, () => `1${" ".repeat(100)}`)}]}`],
])("takes twice the time for twice the text: %s", async (_, text) => {
  const worked = async (read: string): Promise<number> => {
    let least = Number.POSITIVE_INFINITY;
    for (let round = 0; round < 4; round++) {
      const before = process.threadCpuUsage();
      await parseSliced(read, WHAT);
      const { user, system } = process.threadCpuUsage(before);
      least = Math.min(least, user + system);
    }
    return least;
  };
  const [one, two] = [text(40_000), text(80_000)];
  const ratios: number[] = [];
  do ratios.push((await worked(two)) / Math.max(await worked(one), 5000));
  while ((ratios.at(-1) ?? 0) > GROWTH && ratios.length < 4);
  expect(Math.min(...ratios)).toBeLessThan(GROWTH);
});
