/** A tokenizer of one thread writes nothing into the memory of another one, whatever the text. */
import { describe, expect, test } from "bun:test";
import { openTokenizer } from "../../../src/tokenizer/load.ts";
import { smallHandle } from "./fixtures.ts";

const NAMES = [
  "cl100k",
  "cl100k_nfc",
  "o200k",
  "tekken",
  "deepseek",
  "gpt2",
  "gemma",
  "prepend",
  "marks",
  "kimi",
  "seed",
  "gaps",
  "metaspace_always",
];
const REPEATED = ["\0", "a", " ", "\n", "的", "é", "\u0345", "👍", "ab", "<", "\u{10ffff}", "=-", "1"];

describe.each(NAMES)("%s", async (name) => {
  const handle = await smallHandle(name);
  test("texts that repeat themselves stay within their buffers", () => {
    if (handle.kind !== "kernel") throw new Error("not of the kernel");
    const { memory } = handle;
    const first = openTokenizer({ ...handle });
    const { buffer } = first;
    // buffers as they are after ordinary prompts
    first.encodeSoon("The quick brown fox. ".repeat(50_000));
    buffer?.write("The quick brown fox. ".repeat(50_000));
    buffer?.encodeFrom(0);
    const from = memory.buffer.byteLength;
    openTokenizer({ ...handle });
    const to = memory.buffer.byteLength;
    const before = Bun.hash.xxHash3(new Uint8Array(memory.buffer, from, to - from));
    for (const unit of REPEATED) {
      const text = unit.repeat(Math.ceil(1_000_000 / Buffer.byteLength(unit)));
      first.encodeSoon(text);
      buffer?.write(text);
      buffer?.encodeFrom(0);
      expect([unit, Bun.hash.xxHash3(new Uint8Array(memory.buffer, from, to - from))]).toEqual([unit, before]);
    }
  });
});
