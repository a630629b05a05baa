/** What the simulated engine says under structural tags; those of forced calls are among the golden ones, checked by xgrammar. */
import { describe, expect, test } from "bun:test";
import { StructuralTagError, tagText } from "../../../src/simulator/output/structural-tag.ts";

const format = (value: unknown) => tagText({ type: "structural_tag", format: value });
const constant = (value: string) => ({ type: "const_string", value });
const tag = (begin: string, content: unknown, end: unknown = "]") => ({ type: "tag", begin, content, end });
const object = (style?: string) => ({
  type: "json_schema",
  json_schema: { type: "object", properties: { a: { type: "integer" }, b: { type: "string" } } },
  ...(style !== undefined && { style }),
});

describe("the text satisfies", () => {
  test.each<[unknown, string | undefined]>([
    [constant("x"), "x"],
    [{ type: "json_schema", json_schema: true }, "{}"],
    [object(), '{"a":1,"b":"simulated"}'],
    [
      object("glm_xml"),
      "<arg_key>a</arg_key><arg_value>1</arg_value><arg_key>b</arg_key><arg_value>simulated</arg_value>",
    ],
    [tag("[", { type: "any_text" }, ["]", ")"]), "[I am simulated.]"],
    [{ type: "regex", pattern: "[ab]{2}c+" }, "aac"],
    [
      { type: "sequence", elements: [constant("a"), { type: "optional", content: constant("b") }, constant("c")] },
      "ac",
    ],
    [{ type: "or", elements: [constant("a"), constant("b")] }, "a"],
    [{ type: "plus", content: constant("a") }, "a"],
    [{ type: "star", content: constant("a") }, ""],
    [{ type: "repeat", min: 3, max: -1, content: constant("a") }, "aaa"],
    [{ type: "tags_with_separator", tags: [tag("[", constant("x"))], separator: ",", at_least_one: true }, "[x]"],
    [{ type: "triggered_tags", triggers: ["["], tags: [tag("[", constant("x"))], at_least_one: true }, "[x]"],
    // any other answer is one as well
    [{ type: "triggered_tags", triggers: ["["], tags: [tag("[", constant("x"))] }, undefined],
    [{ type: "dispatch", rules: [["[", constant("x")]] }, undefined],
    // not understood
    [{ type: "sequence", elements: [constant("a"), { type: "grammar", grammar: 'root ::= "b"' }] }, undefined],
  ])("%j", (value, text) => {
    expect(format(value)).toBe(text);
  });

  test("of what may be either, each variant has its own", () => {
    const either = {
      type: "sequence",
      elements: [{ type: "or", elements: [constant("a"), constant("b")] }, constant("c")],
    };
    expect([0, 1, 2].map((variant) => tagText({ type: "structural_tag", format: either }, variant))).toEqual([
      "ac",
      "bc",
      "ac",
    ]);
  });

  test("the older form", () => {
    const structures = [{ begin: "<f>", schema: { type: "object", properties: {} }, end: "</f>" }];
    expect(tagText({ structures, triggers: ["<f"] })).toBe("<f>{}</f>");
  });
});

describe("refused", () => {
  test.each<[string, unknown]>([
    ["a type that is not known", { type: "surprise" }],
    ["one inside what may be left out", { type: "optional", content: { type: "surprise" } }],
    ["a style that is not known", object("other_xml")],
    ["a constant without a value", { type: "const_string" }],
    ["a tag without an end", { type: "tag", begin: "[", content: constant("x") }],
    ["no tags", { type: "tags_with_separator", tags: [], separator: "" }],
    ["a tag with no trigger of its own", { type: "triggered_tags", triggers: ["("], tags: [tag("[", constant("x"))] }],
    ["no object", "x"],
  ])("%s", (_, value) => {
    expect(() => format(value)).toThrow(StructuralTagError);
  });

  test("what is no tag", () => {
    for (const value of [undefined, 5, {}, { type: "structural_tag" }])
      expect(() => tagText(value)).toThrow(StructuralTagError);
  });
});
