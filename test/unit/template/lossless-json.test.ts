import { describe, expect, test } from "bun:test";
import { compileTemplate } from "../../../src/template/engine/template.ts";
import { type JsonObject, type JsonValue, PyFloat, parseLossless } from "../../../src/template/lossless-json.ts";
import { processorMs } from "../../support/processor-time.ts";

/** What JSON.parse would give: for texts whose numbers and keys it keeps. */
function plain(value: JsonValue): unknown {
  if (value instanceof PyFloat) return value.value;
  if (value instanceof Map)
    return Object.fromEntries([...(value as JsonObject)].map(([key, item]) => [key, plain(item)]));
  return Array.isArray(value) ? value.map((item: JsonValue) => plain(item)) : value;
}

describe("a lossless reader of JSON", () => {
  test.each([
    "null",
    "true",
    "false",
    "0",
    "-1.5e3",
    '""',
    '"a\\n\\u00e9\\ud83d\\ude00\\"\\\\"',
    '"ends in \\\\"',
    '"\\\\\\""',
    "[]",
    "{}",
    ' [ 1 , "a" , [ ] , { "b" : null } ] \n',
    '{"a":{"b":[1,2,{"c":"d"}]},"e":"\u2028"}',
    '"\ud83d"',
  ])("reads %s as JSON.parse does", (text) => {
    expect(plain(parseLossless(text))).toEqual(JSON.parse(text));
  });

  test("keeps what JSON.parse loses: number kinds, digits, the order of keys", () => {
    const value = parseLossless(
      '{"b": 1.0, "2": 12345678901234567890, "1": -0, "c": -0.0, "a": 1e2, "d": 9007199254740993}',
    );
    const text = compileTemplate("{{ x | tojson }}").render(new Map([["x", value]]), new Date());
    expect(text).toBe('{"b": 1.0, "2": 12345678901234567890, "1": 0, "c": -0.0, "a": 100.0, "d": 9007199254740993}');
  });

  test("of equal keys the last value holds, at the first one's place", () => {
    expect([...(parseLossless('{"a":1,"b":2,"a":3}') as JsonObject)]).toEqual([
      ["a", 3],
      ["b", 2],
    ]);
  });

  test("a name of the host is a key", () => {
    expect([...(parseLossless('{"__proto__":{"x":1}}') as JsonObject).keys()]).toEqual(["__proto__"]);
  });

  test.each([
    "",
    " ",
    "nul",
    "tru e",
    "01",
    "+1",
    "1.",
    ".5",
    "1e",
    "-",
    "NaN",
    "Infinity",
    "'a'",
    '"a',
    '"a\\"',
    '"\\x"',
    '"\\u12"',
    '"\t"',
    "[1,]",
    "[1 2]",
    "[",
    "{",
    '{"a"}',
    '{"a":}',
    '{"a":1,}',
    "{a:1}",
    "1 2",
    "[1]]",
    "\u00a01",
  ])("refuses %p, as JSON.parse does", (text) => {
    expect(() => JSON.parse(text)).toThrow(SyntaxError);
    expect(() => parseLossless(text)).toThrow(SyntaxError);
  });

  test("refuses 100,000 levels and a number of 10,000 digits", () => {
    expect(() => parseLossless("[".repeat(100_000))).toThrow("levels deep");
    expect(() => parseLossless("1".repeat(10_000))).toThrow("digits");
  });

  test("a megabyte of strings takes no time that grows with its square", () => {
    const text = JSON.stringify(Array.from({ length: 100_000 }, (_, i) => `value ${i}`));
    const started = processorMs();
    expect((parseLossless(text) as JsonValue[]).length).toBe(100_000);
    expect(processorMs() - started).toBeLessThan(2000);
  });
});
