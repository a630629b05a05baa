/** Frames of `/generate` for a client that does not keep up. */
import { expect, test } from "bun:test";
import { GenerateResults } from "../../../../src/apis/generate/results.ts";
import { GenerateStream } from "../../../../src/apis/generate/sinks.ts";
import type { FrameWriter } from "../../../../src/apis/shared/answer.ts";
import type { GenerationEvent } from "../../../../src/generation/events.ts";
import { demoTokenizer, encode } from "../../generation/demo-tokenizer.ts";

class Slow implements FrameWriter {
  isBehind = false;
  readonly texts: string[] = [];
  write(frame: string): void {
    if (frame.startsWith("data: {")) this.texts.push((JSON.parse(frame.slice(6)) as { text: string }).text);
  }
  flush(): void {}
  end(): void {}
  cut(): void {}
}

const item = { sampling: {}, withLogprobs: false, logprobStart: -1, topLogprobs: 0, onlyPrompt: false, rid: undefined };

test("it gets the latest frame once it reads again, and the last one in any case", () => {
  const out = new Slow();
  const results = new GenerateResults({
    ...{ id: "r", started: 0, prompts: [{ ...item, tokenIds: new Uint32Array([1]) }], choices: 1 },
    ...{ tokenizer: demoTokenizer, eosTokenIds: new Set(), showsText: false, showsPromptIds: false },
  });
  const stream = new GenerateStream(results, out, () => {});
  const say = (text: string) => {
    const parts = [{ type: "text", text }] as const;
    stream.emit({ type: "output", index: 0, parts, tokenIds: encode(text), logprobs: undefined });
    stream.flush();
  };
  say("a");
  out.isBehind = true;
  say("b");
  say("c");
  expect(out.texts).toEqual(["a"]);
  out.isBehind = false;
  say("d");
  out.isBehind = true;
  say("e");
  stream.emit({ type: "finish", index: 0, reason: "stop" } as GenerationEvent);
  expect(out.texts).toEqual(["a", "abcd", "abcde"]);
});
