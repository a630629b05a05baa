import { describe, expect, test } from "bun:test";
import { InvalidRequestError } from "../../../src/errors.ts";
import {
  asModelsWrite,
  asModelsWriteSteps,
  rawItemTexts,
  rawMemberSteps,
  rawMemberText,
  withMember,
} from "../../../src/generation/raw-members.ts";
import { atOnce } from "../../../src/steps.ts";
import { budget } from "../../../src/template/engine/limits.ts";

const rawMember = (json: string, name: string) => atOnce(rawMemberSteps(json, name));

/** Small integers, texts and arrays are plain data; objects are Maps. */
const plain = (value: unknown): unknown =>
  value instanceof Map
    ? Object.fromEntries([...value].map(([k, v]) => [k, plain(v)]))
    : Array.isArray(value)
      ? value.map(plain)
      : value;

describe("rawMember", () => {
  test.each<[string, unknown]>([
    ['{"tools": [1, 2]}', [1, 2]],
    ['{"tools":[]}', []],
    ['{"tools": null}', null],
    ['{"tools": "a, b}"}', "a, b}"],
    ['{"tools": 5}', 5],
    ['{ "a" : {"tools": 1}, "tools" : [ {"tools": 2} ] , "b": [{"tools": 3}] }', [{ tools: 2 }]],
    ['{"a": "\\"tools\\": 1", "tools": 2}', 2],
    ['{"a": "tools", "b": "tools"}', undefined],
    ['{"a": "\\\\", "tools": 2}', 2],
    ['{"a": "\\\\\\"", "tools": 2}', 2],
    ['{"tools": 1, "tools": 2}', 2],
    ['{"tools": 1, "\\u0074ools": 2}', 2],
    ['{"tool": 1, "toolss": 2}', undefined],
    ['{"messages": [{"content": "{[,:\\"]}"}], "tools": [{"a": "]}"}]}', [{ a: "]}" }]],
    ["{}", undefined],
  ])("%s", (json, wanted) => {
    expect(plain(rawMember(json, "tools"))).toEqual(wanted as never);
    expect((JSON.parse(json) as Record<string, unknown>)["tools"]).toEqual(wanted);
  });

  test("random objects: as JSON.parse", () => {
    let seed = 5;
    const next = (n: number) => {
      seed = (seed * 1103515245 + 12345) & 0x7fffffff;
      return (seed >> 8) % n;
    };
    const texts = ["tools", 'a"b', "\\", "{", "]", ",", ":", "ü", "\n", ""];
    const value = (depth: number): unknown => {
      const kind = next(depth > 3 ? 3 : 5);
      if (kind === 0) return texts[next(texts.length)];
      if (kind === 1) return next(100);
      if (kind === 2) return [true, false, null][next(3)];
      if (kind === 3) return Array.from({ length: next(4) }, () => value(depth + 1));
      return Object.fromEntries(Array.from({ length: next(4) }, () => [texts[next(texts.length)]!, value(depth + 1)]));
    };
    for (let i = 0; i < 2000; i++) {
      const object = Object.fromEntries(Array.from({ length: next(5) }, () => [texts[next(texts.length)]!, value(0)]));
      const json = JSON.stringify(object, null, next(3));
      expect(plain(rawMember(json, "tools"))).toEqual(object["tools"] as never);
    }
  });

  test("behind half a megabyte of messages", () => {
    const json = `{"messages": ${JSON.stringify(Array(500).fill({ role: "user", content: 'x "y" '.repeat(150) }))}, "tools": [1]}`;
    expect(json.length).toBeGreaterThan(450_000);
    expect(rawMember(json, "tools")).toEqual([1]);
  });
});

test("texts of members and items are as sent", () => {
  expect(rawMemberText('{"a": {"b" : 1.0} , "c": 2}', "a")).toBe('{"b" : 1.0}');
  expect(rawMemberText("{}", "a")).toBeUndefined();
  const items = ['{"a": [1, 2]}', '"],\\""', "[]", "1.0", "null"];
  expect(rawItemTexts(`[ ${items.join(" , ")} ]`)).toEqual(items);
  expect(rawItemTexts("[ ]")).toEqual([]);
  expect(rawItemTexts("")).toEqual([]);
});

test("JSON in the spelling of models keeps numbers and the order of keys", () => {
  const written = asModelsWrite(
    '{"b":1.0,"a":[1,2.50,12345678901234567890,{}],"2":"\\u00fc\\/\\n\\"","1":null,"c":true}',
  );
  expect(written).toBe('{"b": 1.0, "a": [1, 2.5, 12345678901234567890, {}], "2": "ü/\\n\\"", "1": null, "c": true}');
  expect(asModelsWrite(written)).toBe(written);
});

test("writing as models do needs nothing that a render before it may have used up", () => {
  budget.left = -1;
  expect(asModelsWrite('{"a":[1]}')).toBe('{"a": [1]}');
  const deep = `${"[".repeat(250)}${"]".repeat(250)}`;
  expect(() => asModelsWrite(deep)).toThrow(InvalidRequestError);
});

describe("withMember", () => {
  test("another value for the member of the outermost object, the last of several, and nothing else", () => {
    const of = (json: string) => withMember(json, "model", '"b"');
    expect(of('{"model":"a"}')).toBe('{"model":"b"}');
    expect(of('{"x":{"model":"a"},"model" : "a" ,"y":"\\"model\\":\\"a\\"","z":["model","a"]}')).toBe(
      '{"x":{"model":"a"},"model" :"b","y":"\\"model\\":\\"a\\"","z":["model","a"]}',
    );
    expect(of('{"model":"a","model":1.0}')).toBe('{"model":"a","model":"b"}');
    expect(of('{"mod\\u0065l":"a"}')).toBe('{"mod\\u0065l":"b"}');
    expect(of('{"other":"a"}')).toBe('{"other":"a"}');
  });
});

describe("in steps a long text is written as in one go", () => {
  const long = (count: number, of: (i: number) => string): string =>
    `{"list":[${Array.from({ length: count }, (_, i) => of(i)).join(",")}]}`;
  test.each([
    ["of many values", long(30_000, (i) => `{"b":${i}.0,"a":"text ${i}"}`)],
    ["of one text", `{"a":"${"long ".repeat(50_000)}"}`],
    ["of texts", long(50_000, (i) => `"${i}\\n"`)],
  ])("%s", (_, text) => {
    const steps = asModelsWriteSteps(text);
    let pauses = 0;
    let step = steps.next();
    for (; !step.done; step = steps.next()) pauses++;
    expect(step.value).toBe(asModelsWrite(text));
    if (text.includes("[")) expect(pauses).toBeGreaterThan(20);
  });

  test("what is too much is refused", () => {
    const deep = `{"a":${"[".repeat(300)}"${"x".repeat(100_000)}"${"]".repeat(300)}}`;
    expect(() => atOnce(asModelsWriteSteps(deep))).toThrow(InvalidRequestError);
    expect(() => asModelsWrite(deep)).toThrow(InvalidRequestError);
  });
});
