/** Runs of byte tokens, as the ByteFallback decoder of the Rust library takes them. */
import { describe, expect, test } from "bun:test";
import { isUtf8 } from "node:buffer";
import type { Tokenizer } from "../../../src/tokenizer/tokenizer.ts";
import { random, smallJson, smallTokenizer } from "./fixtures.ts";

const vocab = (JSON.parse(Buffer.from(smallJson("gemma")).toString()) as { model: { vocab: Record<string, number> } })
  .model.vocab;
const byteId = (byte: number): number => vocab[`<0x${byte.toString(16).toUpperCase().padStart(2, "0")}>`] as number;
const bytesOf = (text: string): number[] => [...Buffer.from(text)].map(byteId);

describe("a run of byte tokens", async () => {
  const tokenizer = await smallTokenizer("gemma");
  const pieces = (ids: readonly number[], skipSpecialTokens = false): string[] => {
    const decoder = tokenizer.decoder({ skipSpecialTokens });
    return [...ids.map((id) => decoder.push(id)), decoder.end()];
  };
  const [x, special] = [vocab["x"] as number, tokenizer.tokenId("<end_of_turn>") as number];

  test("comes out when it ends, if it is UTF-8", () => {
    expect(pieces([x, ...bytesOf("👍"), x, ...bytesOf("é")])).toEqual(["x", "", "", "", "", "👍x", "", "", "é"]);
    expect(pieces([...bytesOf("\n"), ...bytesOf("\n"), x])).toEqual(["", "", "\n\nx", ""]);
  });
  test("is a U+FFFD for each byte if it is not, as soon as that is certain", () => {
    expect(pieces([...bytesOf("é"), byteId(0xff), byteId(0x41), x])).toEqual([
      "",
      "",
      "\ufffd\ufffd\ufffd",
      "\ufffd",
      "x",
      "",
    ]);
    expect(pieces([...bytesOf("é"), byteId(0xf0), byteId(0x9f), x])).toEqual([
      "",
      "",
      "",
      "",
      "\ufffd\ufffd\ufffd\ufffdx",
      "",
    ]);
    expect(pieces([byteId(0xed), byteId(0xa0), x])).toEqual(["", "\ufffd\ufffd", "x", ""]);
  });
  test("goes on across tokens that are left out", () => {
    const [a, b, c] = bytesOf("中") as [number, number, number];
    expect(pieces([a, special, b, 10 ** 9, c], true).join("")).toBe("中");
    expect(pieces([a, special, b, c], false).join("")).toBe("\ufffd<end_of_turn>\ufffd\ufffd");
  });
  test("joins to what the rule says for any ids", () => {
    const next = random(3);
    const bytes = [0x41, 0x80, 0x9f, 0xa0, 0xbf, 0xc3, 0xe0, 0xe4, 0xed, 0xf0, 0xf4, 0xff];
    for (let round = 0; round < 20_000; round++) {
      const runs = Array.from({ length: 1 + Math.floor(next() * 3) }, () =>
        next() < 0.4
          ? [...Buffer.from(["é", "中", "👍", "a\n"][Math.floor(next() * 4)] as string)]
          : Array.from({ length: Math.floor(next() * 5) }, () => bytes[Math.floor(next() * bytes.length)] as number),
      );
      const rule = (run: number[]): string =>
        isUtf8(Uint8Array.from(run)) ? Buffer.from(run).toString() : "\ufffd".repeat(run.length);
      expect(pieces(runs.flatMap((run) => [...run.map(byteId), x])).join("")).toBe(
        runs.map((run) => `${rule(run)}x`).join(""),
      );
    }
  });
  test("may be as long as it likes", () => {
    const long = "é".repeat(5000);
    expect(pieces(bytesOf(long)).join("")).toBe(long);
    expect(pieces([...bytesOf(long), byteId(0xff)]).join("")).toBe("\ufffd".repeat(10_001));
  });
});

test("token bytes are those of the text", async () => {
  const tokenizer: Tokenizer = await smallTokenizer("gemma");
  expect([...tokenizer.tokenBytes(byteId(0xe4))]).toEqual([0xe4]);
});
