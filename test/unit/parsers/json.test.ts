import { describe, expect, test } from "bun:test";
import type { Step } from "../../../src/parsers/input.ts";
import { Input } from "../../../src/parsers/input.ts";
import { decodedString, jsonValue, type Outcome } from "../../../src/parsers/json.ts";
import { pythonValue } from "../../../src/parsers/python.ts";

type Reader = (input: Input, emit: (text: string) => void) => Step<Outcome>;

/** Reads text in these pieces: what was given, how it ended, what is left. */
function read(reader: Reader, pieces: readonly string[]): [given: string, outcome: string, left: string] {
  const input = new Input();
  let given = "";
  const running = reader(input, (text) => {
    given += text;
  });
  let outcome: Outcome | undefined;
  const step = () => {
    if (outcome !== undefined) return;
    const result = running.next();
    if (result.done === true) outcome = result.value;
  };
  for (const piece of pieces) {
    input.feed(piece);
    step();
  }
  input.ended = true;
  step();
  return [given, outcome ?? "none", input.text.slice(input.at)];
}

/** The same in one piece, by characters, and cut in two anywhere. */
function readAll(reader: Reader, text: string): [string, string, string] {
  const whole = read(reader, [text]);
  expect(read(reader, [...text])).toEqual(whole);
  for (let at = 1; at < text.length; at++) expect(read(reader, [text.slice(0, at), text.slice(at)])).toEqual(whole);
  return whole;
}

describe("JSON", () => {
  const valid = [
    '{"a": [1, -0.5e+10, true, false, null, "x\\"\\\\\\/\\u00e9\\ud83d\\ude00"], "b" : {} , "c":[[],{}]}',
    "[ ]",
    "{\n}",
    '"x"',
    '{"東京": "😀", "n": 123456789012345678901234567890.000}',
    '{"a": "}]", "b": "{["}',
  ];
  for (const json of valid) {
    test(`unchanged: ${json}`, () => expect(readAll(jsonValue, `${json} x`)).toEqual([json, "done", " x"]));
  }
  test("a number or a word ends where something else begins", () => {
    expect(readAll(jsonValue, "12, 3")).toEqual(["12", "done", ", 3"]);
    expect(readAll(jsonValue, "null")).toEqual(["null", "done", ""]);
  });
  test("what is in strings is made JSON", () => {
    expect(readAll(jsonValue, '"a\nb\tc\u0001"')).toEqual(['"a\\nb\\tc\\u0001"', "done", ""]);
    expect(readAll(jsonValue, '"\\d \\\' \\u12g \\x"')).toEqual(['"\\\\d \' \\\\u12g \\\\x"', "done", ""]);
  });
  test("words of Python become JSON's", () => {
    expect(readAll(jsonValue, "[True, False, None, 1_000, .5, +1, 1.]")).toEqual([
      "[true, false, null, 1000, 0.5, 1, 1.0]",
      "done",
      "",
    ]);
  });
  const broken: readonly [string, string, string][] = [
    ['{"a": }', '{"a": ', "}"],
    ['{"a" 1}', '{"a" ', "1}"],
    ['{"a": 1,}', '{"a": 1,', "}"],
    ["[1,]", "[1,", "]"],
    ["[1 2]", "[1 ", "2]"],
    ["[1}", "[1", "}"],
    ["{a: 1}", "{", "a: 1}"],
    ["[NaN]", "[", "NaN]"],
    ["[01]", "[0", "1]"],
    ["[nullx]", "[null", "x]"],
    ["[1-2]", "[1", "-2]"],
    ["[<", "[", "<"],
    ["x", "", "x"],
    [",", "", ","],
  ];
  for (const [text, given, left] of broken) {
    test(`broken: ${text}`, () => expect(readAll(jsonValue, text)).toEqual([given, "broken", left]));
  }
  for (const text of ['{"a', '{"a\\', '{"a\\u12', '{"a": tr', '{"a": Tr', "[1", '{"a": 1.', ""]) {
    test(`cut: ${text}`, () => expect(readAll(jsonValue, text)).toEqual([text, "cut", ""]));
  }
  test("what a string says", () => {
    expect(readAll(decodedString, '"a\\n\\ud83d\\ude00\\u6771\\"" b')).toEqual(['a\n😀東"', "done", " b"]);
    expect(readAll(decodedString, '"a\\ud83d')).toEqual(["a\ud83d", "cut", ""]);
  });
});

describe("Python", () => {
  const rows: readonly [string, string][] = [
    ["'it\\'s'", '"it\'s"'],
    ['"a\\n\\x41\\u00e9\\U0001f600"', '"a\\nAé😀"'],
    ["'a' \"b\"", '"ab"'],
    ["'''a'b''c'''", "\"a'b''c\""],
    ["''", '""'],
    ["[1, 2.5, -3, 1_000, 1e5,]", "[1, 2.5, -3, 1000, 1e5]"],
    ["(1, 'a', (), [])", '[1, "a", [], []]'],
    ["{'a': True, \"b\": None, 1: {}}", '{"a": true, "b": null, "1": {}}'],
    ["bare", '"bare"'],
    ["'\\d'", '"\\\\d"'],
  ];
  for (const [python, json] of rows) {
    test(python, () => {
      expect(readAll(pythonValue, `${python} )`)[0]).toBe(json);
      expect(() => JSON.parse(json) as unknown).not.toThrow();
    });
  }
  test("too deep is broken, not a crash", () => {
    expect(readAll(pythonValue, "[".repeat(100))[1]).toBe("broken");
  });
});
