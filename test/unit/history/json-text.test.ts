import { describe, expect, test } from "bun:test";
import { arrayTexts, idOf, memberText } from "../../../src/history/json-text.ts";

/** A JSON value made of a seed, with strings that look like structure. */
function jsonOf(random: () => number, depth = 0): unknown {
  const kind = Math.floor(random() * (depth > 3 ? 4 : 6));
  const text = () =>
    Array.from(
      { length: Math.floor(random() * 6) },
      () => 'a"\\,:[]{} \u0000é\u{1f415}\n'[Math.floor(random() * 16)] ?? "",
    ).join("");
  if (kind === 0) return text();
  if (kind === 1) return Math.floor(random() * 1e6) / 100;
  if (kind === 2) return null;
  if (kind === 3) return random() < 0.5;
  const several = Array.from({ length: Math.floor(random() * 4) }, () => jsonOf(random, depth + 1));
  return kind === 4 ? several : Object.fromEntries(several.map((value) => [text(), value]));
}

describe("parts of JSON texts", () => {
  test("are what JSON.parse finds, for compact and spaced texts", () => {
    let state = 7;
    const random = () => (state = (state * 48271) % 2147483647) / 2147483647;
    for (let n = 0; n < 3000; n++) {
      const value = jsonOf(random);
      for (const text of [JSON.stringify(value), ` ${JSON.stringify(value, null, 2)} \n`]) {
        const elements = arrayTexts(text).map((part) => JSON.parse(part));
        expect(elements).toEqual(Array.isArray(value) ? value : []);
        if (typeof value !== "object" || value === null || Array.isArray(value)) continue;
        for (const [name, member] of Object.entries(value)) expect(JSON.parse(memberText(text, name)!)).toEqual(member);
        expect(memberText(text, "no such member")).toBeUndefined();
      }
    }
  });

  test("stay as they were written", () => {
    expect(arrayTexts('[ 1.50 , 12345678901234567890 ,"\\u00e9", {"b":1, "a":2} ]')).toEqual([
      "1.50",
      "12345678901234567890",
      '"\\u00e9"',
      '{"b":1, "a":2}',
    ]);
    expect(memberText('{"a":{"output":1},"output" : [ 1.0 ] ,"z":0}', "output")).toBe("[ 1.0 ]");
    // the last of two holds, as for JSON.parse
    expect(memberText('{"a":1,"a":2}', "a")).toBe("2");
    expect(arrayTexts("[]")).toEqual([]);
    expect(arrayTexts("null")).toEqual([]);
    expect(memberText("null", "a")).toBeUndefined();
  });

  test("tell an item's id", () => {
    expect(idOf('{"type":"message","content":{"id":"x"},"id":"m\\u00e9"}')).toBe("mé");
    expect(idOf('{"content":{"id":"x"}}')).toBe("");
    expect(idOf('{"id":7}')).toBe("");
  });
});
