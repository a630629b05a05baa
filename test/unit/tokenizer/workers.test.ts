import { expect, test } from "bun:test";
import { openTokenizer } from "../../../src/tokenizer/load.ts";
import { random, smallHandle } from "./fixtures.ts";

interface Answer {
  readonly ids: number[][];
  readonly decoded: string[];
}

for (const name of ["o200k", "wordpiece"]) {
  test(`threads share one ${name} tokenizer and agree`, async () => {
    const handle = await smallHandle(name);
    const next = random(3);
    const parts = ["the ", "Type", "'s", "\n\n", "中文", "é", "123456", " {}", "xyzzy", "<|end|>", "👍"];
    const texts = Array.from({ length: 60 }, (_, i) => {
      let text = "";
      for (let n = (i % 20) * 300; n >= 0; n--) text += parts[Math.floor(next() * parts.length)];
      return text;
    });
    const ask = (): Promise<Answer> =>
      new Promise((resolve, reject) => {
        const worker = new Worker(new URL("./encode-worker.ts", import.meta.url).href);
        worker.onmessage = ({ data }: MessageEvent<Answer>) => {
          worker.terminate();
          resolve(data);
        };
        worker.onerror = (event) => reject(new Error(event.message));
        worker.postMessage({ handle, texts });
      });
    // all at once: each takes memory of its own while the others work
    const answers = [ask(), ask(), ask()];
    const tokenizer = openTokenizer(handle);
    const here = texts.map((text) => [...tokenizer.encode(text)]);
    const decoder = tokenizer.decoder({ skipSpecialTokens: false });
    const back = here.map((row) => row.map((id) => decoder.push(id)).join("") + decoder.end());
    if (name === "o200k") expect(back).toEqual(texts);
    for (const { ids, decoded } of await Promise.all(answers)) {
      expect(ids).toEqual(here);
      expect(decoded).toEqual(back);
    }
  }, 30_000);
}
