import { describe, expect, test } from "bun:test";
import { Kind, kindsOf, parameterSchema } from "../../../src/parsers/schema.ts";
import { ArgumentValue, valueAsJson } from "../../../src/parsers/values.ts";

const numeric = Kind.number | Kind.integer;

describe("types of a schema", () => {
  const root = {
    $defs: {
      City: { type: "string" },
      Loop: { $ref: "#/$defs/Loop" },
      "a/b~c": { type: "integer" },
      Tree: { anyOf: [{ $ref: "#/$defs/Tree" }, { type: "null" }] },
    },
    type: "object",
    properties: { city: { $ref: "#/$defs/City" } },
    allOf: [{ properties: { extra: { type: "boolean" } } }],
    additionalProperties: { type: "array" },
  };
  test("references, unions, lists, enumerations", () => {
    const rows: readonly [unknown, number][] = [
      [{ type: "string" }, Kind.string],
      [{ type: "number" }, numeric],
      [{ type: ["string", "null"] }, Kind.string | Kind.null],
      [{ $ref: "#/$defs/City" }, Kind.string],
      [{ $ref: "#/$defs/a~1b~0c" }, Kind.integer],
      [{ $ref: "#/$defs/Loop" }, 0],
      [{ $ref: "#/$defs/Tree" }, 0],
      [{ $ref: "https://elsewhere" }, 0],
      [{ anyOf: [{ type: "integer" }, { type: "null" }] }, Kind.integer | Kind.null],
      [{ oneOf: [{ type: "string" }, {}] }, 0],
      [{ allOf: [{ $ref: "#/$defs/City" }, { description: "x" }] }, Kind.string],
      [{ enum: ["a", 1, null] }, Kind.string | Kind.integer | Kind.null],
      [{ const: true }, Kind.boolean],
      [{ properties: {} }, Kind.object],
      [{ items: {} }, Kind.array],
      [{ type: "string", nullable: true }, Kind.string | Kind.null],
      [{ type: "dict" }, Kind.object],
      [{}, 0],
      [undefined, 0],
      [true, 0],
    ];
    for (const [schema, kinds] of rows) expect([schema, kindsOf(schema, root)]).toEqual([schema, kinds]);
  });
  test("parameters by name", () => {
    expect(parameterSchema(root, "city")).toEqual({ $ref: "#/$defs/City" });
    expect(parameterSchema(root, "extra")).toEqual({ type: "boolean" });
    expect(parameterSchema(root, "other")).toEqual({ type: "array" });
    expect(parameterSchema(root, "toString")).toEqual({ type: "array" });
    expect(parameterSchema(undefined, "x")).toBeUndefined();
  });
});

describe("values without types in the wire", () => {
  const rows: readonly [raw: string, kinds: number, json: string][] = [
    ["42", Kind.string, '"42"'],
    ['"4"', Kind.string, '"\\"4\\""'],
    ['{"key":"v"}', Kind.string, '"{\\"key\\":\\"v\\"}"'],
    [" x\n", Kind.string, '" x\\n"'],
    ["42", Kind.integer, "42"],
    ["42.0", Kind.integer, "42.0"],
    ["12345678901234567890", Kind.integer, "12345678901234567890"],
    ["abc", Kind.integer, '"abc"'],
    ["1_000", Kind.integer, "1000"],
    [" 1.5 ", numeric, "1.5"],
    ["true", Kind.boolean, "true"],
    ["True", Kind.boolean, "true"],
    ["yes", Kind.boolean, '"yes"'],
    ["[1, 2]", Kind.array, "[1, 2]"],
    ["['a', True, (1,)]", Kind.array, '["a", true, [1]]'],
    ["[1, 2", Kind.array, '"[1, 2"'],
    ['{"a": 1.0}', Kind.object, '{"a": 1.0}'],
    ["{'a': None}", Kind.object, '{"a": null}'],
    ["null", Kind.string | Kind.null, "null"],
    ["null", Kind.string, '"null"'],
    ["nullable", Kind.string | Kind.null, '"nullable"'],
    ["5", Kind.string | Kind.integer, "5"],
    ["5 apples", Kind.string | Kind.integer, '"5 apples"'],
    ['"q"', Kind.string | Kind.integer, '"\\"q\\""'],
    ['["a"]', Kind.string | Kind.array, '["a"]'],
    ["null", Kind.object, "null"],
    ["5", 0, "5"],
    ["True", 0, "true"],
    ["None", 0, "null"],
    ['"q"', 0, '"q"'],
    ["it's", 0, '"it\'s"'],
    ["['a']", 0, "\"['a']\""],
    ["", 0, '""'],
    ["", Kind.string, '""'],
    ["", Kind.integer, '""'],
    ["true story", 0, '"true story"'],
    ["-", 0, '"-"'],
    ["{not json}", 0, '"{not json}"'],
    ["9".repeat(1000), 0, "9".repeat(1000)],
    [`${"9".repeat(1000)}x`, 0, `"${"9".repeat(1000)}x"`],
  ];
  for (const [raw, kinds, json] of rows) {
    test(`${raw.slice(0, 30)} as ${kinds}`, () => {
      expect(valueAsJson(raw, kinds)).toBe(json);
      for (const size of [1, 2, 3, raw.length + 1]) {
        let streamed = "";
        const value = new ArgumentValue(kinds, (piece) => {
          streamed += piece;
        });
        for (let at = 0; at < raw.length; at += size) value.push(raw.slice(at, at + size));
        value.end();
        expect(streamed).toBe(json);
      }
    });
  }
  test("a string streams as soon as it can be nothing else", () => {
    const pieces: string[] = [];
    const value = new ArgumentValue(Kind.string | Kind.null, (piece) => pieces.push(piece));
    value.push("nu");
    expect(pieces).toEqual([]);
    value.push("t");
    expect(pieces).toEqual(['"nut']);
    value.push("s");
    expect(pieces).toEqual(['"nut', "s"]);
  });
});
