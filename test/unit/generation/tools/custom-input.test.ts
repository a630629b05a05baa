import { expect, test } from "bun:test";
import { CustomInput } from "../../../../src/generation/tools/custom-input.ts";

function read(pieces: readonly string[]): string {
  const reader = new CustomInput();
  return pieces.map((piece) => reader.push(piece)).join("") + reader.end();
}

const TEXT = 'a "b"\n\\ 日本 👩‍👩‍👧 }';

test.each([
  [JSON.stringify({ input: TEXT }), TEXT],
  [` { "input" :\n"x\\u00e5\\ud83d\\ude00\\/" , "more": [1] } `, "xå😀/"],
  ['{"input": ""}', ""],
  ["{}", ""],
  ['{"input": 5}', '{"input": 5}'],
  ['{"code": "x"}', '{"code": "x"}'],
  ['"x"', '"x"'],
])("%j says %j, cut in two anywhere", (args, input) => {
  expect(read([...args])).toBe(input);
  for (let at = 0; at <= args.length; at++) expect(read([args.slice(0, at), args.slice(at)])).toBe(input);
});

test("cut off anywhere, it is a begin of the text", () => {
  const args = JSON.stringify({ input: TEXT });
  for (let end = 0; end < args.length; end++) expect(TEXT.startsWith(read([args.slice(0, end)]))).toBe(true);
});
