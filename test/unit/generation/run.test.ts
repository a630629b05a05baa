import { describe, expect, test } from "bun:test";
import { EngineError, type EngineErrorKind, type SamplingParams } from "../../../src/engines/engine.ts";
import { ClientClosedError, RequestTimeoutError } from "../../../src/errors.ts";
import type { OutputOptions } from "../../../src/generation/choice.ts";
import type { GenerationEvent } from "../../../src/generation/events.ts";
import { runGeneration } from "../../../src/generation/run.ts";
import { outputText, Recorder } from "./collect-events.ts";
import { decodeAll, demoTokenizer, END_OF_TEXT, encode, IM_END } from "./demo-tokenizer.ts";
import { random } from "./random.ts";
import { type ScriptedCall, ScriptedEngine } from "./scripted-engine.ts";

const PLAIN: OutputOptions = {
  skipSpecialTokens: true,
  stop: [],
  stopTokenIds: new Set(),
  quietEosTokenIds: new Set([IM_END]),
  eosTokenIds: new Set([IM_END, END_OF_TEXT]),
  includeStop: false,
  minTokens: 0,
  maxTokens: Number.POSITIVE_INFINITY,
  logprobs: false,
  tokenIds: false,
  stopInReasoning: false,
  parsing: undefined,
};

interface Running {
  readonly call: ScriptedCall;
  readonly engine: ScriptedEngine;
  readonly sink: Recorder;
  readonly running: ReturnType<typeof runGeneration>;
  readonly abort: AbortController;
}

function start(
  output: Partial<OutputOptions> = {},
  {
    sampling = {},
    stream = true,
    sink = new Recorder(),
  }: { sampling?: SamplingParams; stream?: boolean; sink?: Recorder } = {},
): Running {
  const engine = new ScriptedEngine();
  const abort = new AbortController();
  const request = { requestId: "r", tokenIds: Uint32Array.of(1, 2, 3), sampling, stream };
  const generation = { engine, tokenizer: demoTokenizer, request, output: { ...PLAIN, ...output } };
  const running = runGeneration(generation, sink, abort.signal);
  return { call: engine.calls[0]!, engine, sink, running, abort };
}

const finishOf = (sink: Recorder, index = 0) => sink.of("finish").find((event) => event.index === index);
const usageOf = (sink: Recorder) => sink.of("usage")[0];

/** Events after the last one are a defect in every test. */
async function settled({ running, sink, call }: Running): Promise<readonly GenerationEvent[]> {
  await running.done;
  const count = sink.events.length;
  call.chunk([1]).finish({ completionTokens: 1 }).idle().end();
  expect(sink.events.length).toBe(count);
  const lasts: GenerationEvent[] = sink.events.filter((event) => event.type === "usage" || event.type === "error");
  expect(lasts).toEqual([sink.events[count - 1]!]);
  return sink.events;
}

/** A character of several tokens. */
const SPLIT = "\u{1fae0}";
const TEXT = "The quick 👩‍👩‍👧 naïve 日本語 😀!";

describe("text", () => {
  test("the samples are what they claim to be", () => {
    expect(encode(SPLIT).length).toBeGreaterThan(1);
  });

  test("characters spread over tokens come out whole, at any cut into chunks", async () => {
    const ids = encode(TEXT);
    expect(ids.length).toBeGreaterThan(15);
    for (let size = 1; size <= ids.length; size++) {
      const run = start();
      for (let i = 0; i < ids.length; i += size) run.call.chunk(ids.slice(i, i + size)).idle();
      for (const event of run.sink.of("output")) expect(outputText(event)).not.toContain("\ufffd");
      run.call.finish({ completionTokens: ids.length }).end();
      await settled(run);
      expect(run.sink.text()).toBe(TEXT);
      expect(run.sink.kinds()).toEqual(["output0", "finish0", "usage"]);
      expect(usageOf(run.sink)).toEqual({
        type: "usage",
        promptTokens: 3,
        cachedTokens: 0,
        completionTokens: ids.length,
        reasoningTokens: 0,
      });
    }
  });

  test("a half character at the end comes as U+FFFD before the finish", async () => {
    const ids = encode(SPLIT).slice(0, -1);
    const run = start();
    run.call
      .chunk([...encode("a"), ...ids])
      .finish({ reason: "length", completionTokens: 1 + ids.length })
      .end();
    await settled(run);
    expect(run.sink.text()).toMatch(/^a\ufffd+$/);
    expect(run.sink.kinds()).toEqual(["output0", "finish0", "usage"]);
    expect(finishOf(run.sink)?.reason).toBe("length");
  });

  test("special tokens are shown or left out as asked", async () => {
    for (const skipSpecialTokens of [true, false]) {
      const run = start({ skipSpecialTokens, eosTokenIds: new Set() });
      run.call
        .chunk([...encode("a"), IM_END, ...encode("b"), END_OF_TEXT])
        .finish({ completionTokens: 4 })
        .end();
      await settled(run);
      expect(run.sink.text()).toBe(skipSpecialTokens ? "ab" : "a<|im_end|>b<|endoftext|>");
    }
  });

  test("no event for a chunk that tells nothing", async () => {
    const ids = encode(SPLIT);
    const run = start();
    for (const id of ids) run.call.chunk([id]).idle();
    expect(run.sink.of("output").map(outputText)).toEqual([SPLIT]);
    run.call.chunk([]).finish({ completionTokens: ids.length }).end();
    await settled(run);
    expect(run.sink.of("output").length).toBe(1);
  });
});

describe("what ends a choice", () => {
  test("an EOS inside a chunk: nothing after it, and the engine ends by itself", async () => {
    const run = start({ tokenIds: true });
    run.call.chunk([...encode("Hi"), IM_END, ...encode(" more")]).idle();
    expect(run.call.cancelled).toBe(0);
    run.call.finish({ reason: "length", completionTokens: 9 }).end();
    await settled(run);
    expect(run.sink.text()).toBe("Hi");
    expect(run.sink.of("output").flatMap(({ tokenIds }) => tokenIds ?? [])).toEqual([...encode("Hi"), IM_END]);
    expect(finishOf(run.sink)).toEqual({ type: "finish", index: 0, reason: "stop", matchedStop: undefined });
    expect(usageOf(run.sink)?.completionTokens).toBe(2);
  });

  test("an engine that goes on after an EOS is told to stop with its next token", async () => {
    const run = start();
    run.call.chunk([...encode("Hi"), IM_END]).chunk([]);
    expect(run.call.cancelled).toBe(0);
    run.call.chunk(encode(" more"));
    expect(run.call.cancelled).toBe(1);
    await settled(run);
    expect(run.sink.text()).toBe("Hi");
    expect(finishOf(run.sink)?.reason).toBe("stop");
    expect(usageOf(run.sink)?.completionTokens).toBe(2);
  });

  test("after an EOS the answer is whole, however the engine ends", async () => {
    for (const error of [undefined, new EngineError("unavailable", "gone")]) {
      const run = start();
      run.call.chunk([...encode("Hi"), IM_END]).end(error);
      await settled(run);
      expect(run.sink.kinds()).toEqual(["output0", "finish0", "usage"]);
    }
  });

  test("ignore_eos goes on", async () => {
    const run = start({ eosTokenIds: new Set() });
    run.call.chunk([...encode("Hi"), IM_END, ...encode(" more")]);
    expect(run.call.cancelled).toBe(0);
    run.call.finish({ reason: "length", completionTokens: 3 }).end();
    await settled(run);
    expect(run.sink.text()).toBe("Hi more");
    expect(finishOf(run.sink)?.reason).toBe("length");
  });

  test("a stop token is told, and shown only if asked for", async () => {
    const [stop] = encode(" stop");
    for (const includeStop of [false, true]) {
      const run = start({ stopTokenIds: new Set([stop!]), includeStop });
      run.call
        .chunk([...encode("do"), stop!, ...encode(" it")])
        .finish({ completionTokens: 3 })
        .end();
      await settled(run);
      expect(run.sink.text()).toBe(includeStop ? "do stop" : "do");
      expect(finishOf(run.sink)).toMatchObject({ reason: "stop", matchedStop: stop });
      expect(usageOf(run.sink)?.completionTokens).toBe(2);
    }
  });

  test("the engine's own EOS is not named as the stop, even if the request lists it; another EOS is, as in vLLM", async () => {
    const run = start({ stopTokenIds: new Set([IM_END]) });
    run.call
      .chunk([...encode("a"), IM_END])
      .finish({ completionTokens: 2 })
      .end();
    await settled(run);
    expect(finishOf(run.sink)?.matchedStop).toBeUndefined();
    const other = start();
    other.call
      .chunk([...encode("a"), END_OF_TEXT])
      .finish({ completionTokens: 2 })
      .end();
    await settled(other);
    expect(finishOf(other.sink)?.matchedStop).toBe(END_OF_TEXT);
  });

  test("a stop string over several tokens cancels with the token that completes it, and no part of it leaks", async () => {
    const stop = "日本語 😀";
    const ids = encode(TEXT);
    for (const includeStop of [false, true]) {
      const run = start({ stop: ["never", stop], includeStop });
      let sent = 0;
      for (const id of ids) {
        if (run.call.cancelled > 0) break;
        run.call.chunk([id]).idle();
        sent++;
        if (!includeStop) expect("The quick 👩‍👩‍👧 naïve ".startsWith(run.sink.text())).toBe(true);
      }
      await settled(run);
      expect(decodeAll(ids.slice(0, sent))).toBe(`The quick 👩‍👩‍👧 naïve ${stop}`);
      expect(run.sink.text()).toBe(`The quick 👩‍👩‍👧 naïve ${includeStop ? stop : ""}`);
      expect(finishOf(run.sink)).toMatchObject({ reason: "stop", matchedStop: stop });
      expect(usageOf(run.sink)?.completionTokens).toBe(sent);
    }
  });

  test("what was held back for a stop string comes when the engine ends", async () => {
    const run = start({ stop: ["END."] });
    run.call.chunk(encode("the END"));
    expect(run.sink.text()).toBe("the ");
    run.call.finish({ reason: "length", completionTokens: 2 }).end();
    await settled(run);
    expect(run.sink.text()).toBe("the END");
    expect(finishOf(run.sink)).toMatchObject({ reason: "length", matchedStop: undefined });
  });

  test("what was held back comes when an EOS ends the choice", async () => {
    const run = start({ stop: ["END."] });
    run.call
      .chunk([...encode("the END"), IM_END])
      .finish({ completionTokens: 3 })
      .end();
    await settled(run);
    expect(run.sink.text()).toBe("the END");
  });

  test("min_tokens: stops count from the token after", async () => {
    const eos = start({ minTokens: 3 });
    eos.call
      .chunk([...encode("a"), IM_END, ...encode("b"), IM_END])
      .finish({ completionTokens: 4 })
      .end();
    await settled(eos);
    expect(eos.sink.text()).toBe("ab");
    expect(usageOf(eos.sink)?.completionTokens).toBe(4);

    const ids = encode("x x x x x");
    const text = start({ minTokens: 3, stop: ["x"] });
    text.call.chunk(ids);
    await settled(text);
    expect(text.sink.text()).toBe("x x x ");
    expect(usageOf(text.sink)?.completionTokens).toBe(4);
  });

  test("a stop that only the engine saw is told if the request named it or it is another EOS", async () => {
    for (const [finish, expected] of [
      [{ matchedStop: "END" }, "END"],
      [{ matchedStop: "other" }, undefined],
      [{ matchedTokenId: 7 }, 7],
      [{ matchedTokenId: END_OF_TEXT }, END_OF_TEXT],
      [{ matchedTokenId: IM_END }, undefined],
      [{ matchedTokenId: 8 }, undefined],
    ] as const) {
      const run = start({ stop: ["END"], stopTokenIds: new Set([7]) });
      run.call
        .chunk(encode("a"))
        .finish({ ...finish, completionTokens: 1 })
        .end();
      await settled(run);
      expect(finishOf(run.sink)?.matchedStop).toBe(expected);
    }
  });

  test("an engine that goes beyond the longest answer is cut off there", async () => {
    const run = start({ maxTokens: 3 });
    run.call.chunk(encode("one two three four five")).idle();
    await settled(run);
    expect(finishOf(run.sink)?.reason).toBe("length");
    expect(usageOf(run.sink)).toMatchObject({ completionTokens: 3 });
    expect(run.call.cancelled).toBe(1);
  });

  test("what the engine counts as the prompt is believed within reason only", async () => {
    for (const [told, shown] of [
      [4_294_967_289, 3],
      [1, 3],
      [300, 300],
    ] as const) {
      const run = start();
      run.call.chunk(encode("a")).finish({ completionTokens: 1, promptTokens: told }).end();
      await settled(run);
      expect(usageOf(run.sink)?.promptTokens).toBe(shown);
    }
  });

  test("a trimmed stop token counts: the engine's count may be above the tokens it sent", async () => {
    const run = start();
    run.call.chunk(encode("a")).finish({ completionTokens: 2, promptTokens: 9, cachedTokens: 4 }).end();
    await settled(run);
    expect(usageOf(run.sink)).toEqual({
      type: "usage",
      promptTokens: 9,
      cachedTokens: 4,
      completionTokens: 2,
      reasoningTokens: 0,
    });
  });

  test("not streamed: the whole answer in one chunk is cut at its stop", async () => {
    const run = start({ stop: [" c"], tokenIds: true }, { stream: false });
    run.call.chunk(encode("a b c d")).finish({ reason: "length", completionTokens: 4 }).end();
    await settled(run);
    expect(run.sink.text()).toBe("a b");
    expect(finishOf(run.sink)).toMatchObject({ reason: "stop", matchedStop: " c" });
    expect(usageOf(run.sink)?.completionTokens).toBe(3);
  });
});

describe("several choices", () => {
  test("interleave, each ends on its own, one usage for all", async () => {
    const run = start({ stop: ["!"] }, { sampling: { n: 2 } });
    run.call.chunk(encode("one"), { index: 1 }).chunk(encode("zwei"), { index: 0, cachedTokens: 2 });
    run.call.chunk(encode("!x"), { index: 1 });
    expect(finishOf(run.sink, 1)).toMatchObject({ reason: "stop", matchedStop: "!" });
    expect(run.call.cancelled).toBe(0);
    run.call.chunk(encode("ignored"), { index: 1 }).chunk(encode(" drei"), { index: 0 });
    run.call.finish({ index: 1, reason: "length", completionTokens: 9 });
    expect(run.sink.of("usage")).toEqual([]);
    run.call.finish({ index: 0, reason: "length", completionTokens: encode("zwei drei").length }).end();
    await settled(run);
    expect([run.sink.text(0), run.sink.text(1)]).toEqual(["zwei drei", "one"]);
    expect(run.sink.of("finish").map(({ index, reason }) => [index, reason])).toEqual([
      [1, "stop"],
      [0, "length"],
    ]);
    const own = encode("one").length + 1;
    expect(usageOf(run.sink)).toMatchObject({ cachedTokens: 2, completionTokens: own + encode("zwei drei").length });
  });

  test("the engine is cancelled when the last open choice stops", async () => {
    const run = start({ stop: ["!"] }, { sampling: { n: 2 } });
    run.call.chunk(encode("!"), { index: 0 });
    expect(run.call.cancelled).toBe(0);
    run.call.chunk(encode("!"), { index: 1 });
    expect(run.call.cancelled).toBe(1);
    await settled(run);
    expect(run.sink.kinds()).toEqual(["finish0", "finish1", "usage"]);
  });

  test("a choice that was not asked for is an error", async () => {
    const run = start({}, { sampling: { n: 2 } });
    run.call.chunk([1], { index: 2 });
    await settled(run);
    expect(run.sink.of("error")[0]?.error).toMatchObject({ status: 502, code: "engine_protocol_error" });
    expect(run.call.cancelled).toBe(1);
  });
});

describe("failures", () => {
  test.each(["abort", "error"] as const)("a finish of reason %s is an error, never a finish", async (reason) => {
    const run = start();
    run.call.chunk(encode("some")).finish({ reason, completionTokens: 1 });
    await settled(run);
    expect(run.sink.kinds()).toEqual(["output0", "error"]);
    expect(run.sink.of("error")[0]?.error).toMatchObject({ status: 500, code: "engine_aborted" });
  });

  test("an end without a finish is an error", async () => {
    for (const n of [1, 2]) {
      const run = start({}, { sampling: { n } });
      run.call.chunk(encode("a"));
      if (n === 2) run.call.finish({ index: 0, completionTokens: 1 });
      run.call.end();
      await settled(run);
      expect(run.sink.of("usage")).toEqual([]);
      expect(run.sink.of("error")[0]?.error).toMatchObject({ status: 502, code: "engine_protocol_error" });
    }
  });

  test.each<[EngineErrorKind, number]>([
    ["invalid", 400],
    ["overloaded", 429],
    ["unavailable", 503],
    ["timeout", 504],
    ["not_found", 404],
    ["unimplemented", 501],
    ["failed", 500],
    ["cancelled", 499],
  ])("an engine's %s is a %d", async (kind, status) => {
    const run = start();
    run.call.end(new EngineError(kind, "words"));
    await settled(run);
    expect(run.sink.of("error")[0]?.error.status).toBe(status);
  });

  test("aborted before: the engine is never asked", async () => {
    const engine = new ScriptedEngine();
    const sink = new Recorder();
    const request = { requestId: "r", tokenIds: Uint32Array.of(1), sampling: {}, stream: true };
    const { done, pause } = runGeneration(
      { engine, tokenizer: demoTokenizer, request, output: PLAIN },
      sink,
      AbortSignal.abort(new RequestTimeoutError(5)),
    );
    pause();
    await done;
    expect(engine.calls).toEqual([]);
    expect(sink.of("error")[0]?.error).toMatchObject({ status: 504, code: "request_timeout" });
  });

  test.each([
    ["its reason", new RequestTimeoutError(5), 504],
    ["a foreign reason", new Error("x"), 499],
  ])("aborted while it runs, with %s: the engine is told at once", async (_, reason, status) => {
    const run = start();
    run.call.chunk(encode("a"));
    run.abort.abort(reason);
    expect(run.call.cancelled).toBe(1);
    await settled(run);
    expect(run.sink.kinds()).toEqual(["output0", "error"]);
    expect(run.sink.of("error")[0]?.error.status).toBe(status);
  });

  test("aborted after the end: nothing happens", async () => {
    const run = start();
    run.call.chunk(encode("a")).finish({ completionTokens: 1 }).end();
    run.abort.abort(new ClientClosedError());
    await settled(run);
    expect(run.sink.kinds()).toEqual(["output0", "finish0", "usage"]);
  });

  test("aborted from within the sink", async () => {
    const sink = new Recorder();
    const run = start({}, { sink });
    sink.flush = () => run.abort.abort(new ClientClosedError());
    run.call.chunk(encode("a")).idle();
    expect(run.call.cancelled).toBe(1);
    await settled(run);
    expect(sink.kinds()).toEqual(["output0", "error"]);
  });

  test("an engine that answers before generate returns is cancelled too", async () => {
    const engine = new ScriptedEngine((call) => call.chunk([IM_END]).chunk([IM_END]));
    const sink = new Recorder();
    const request = { requestId: "r", tokenIds: Uint32Array.of(1), sampling: {}, stream: true };
    await runGeneration(
      { engine, tokenizer: demoTokenizer, request, output: PLAIN },
      sink,
      new AbortController().signal,
    ).done;
    expect(engine.calls[0]?.cancelled).toBe(1);
    expect(sink.kinds()).toEqual(["finish0", "usage"]);
  });

  test("a request that the engine's adapter cannot send is an error event", async () => {
    const engine = new ScriptedEngine(() => {
      throw new Error("cannot encode this");
    });
    const sink = new Recorder();
    const request = { requestId: "r", tokenIds: Uint32Array.of(1), sampling: {}, stream: true };
    await runGeneration(
      { engine, tokenizer: demoTokenizer, request, output: PLAIN },
      sink,
      new AbortController().signal,
    ).done;
    expect(sink.of("error")[0]?.error).toMatchObject({ status: 500, code: "internal_error" });
  });

  test.each(["output", "finish", "usage", "error", "flush"])(
    "a sink that throws at %s ends this request only",
    async (at) => {
      class Broken extends Recorder {
        override emit(event: GenerationEvent): void {
          super.emit(event);
          if (event.type === at) throw new Error("defect");
        }
        override flush(): void {
          super.flush();
          if (at === "flush") throw new Error("defect");
        }
      }
      const run = start({}, { sink: new Broken() });
      run.call.chunk(encode("a")).idle(); // none of these may throw
      if (at === "error") run.call.end(new EngineError("failed", "x"));
      else run.call.finish({ completionTokens: 1 }).end();
      await run.running.done;
      const ends = run.sink.events.filter(({ type }) => type === "usage" || type === "error");
      expect(ends.length).toBeGreaterThanOrEqual(1);
      if (at !== "usage") expect(ends.length).toBe(1);
      if (at === "output" || at === "finish") {
        expect(run.sink.of("error")[0]?.error).toMatchObject({ status: 500, code: "internal_error" });
        expect(run.call.cancelled).toBe(1);
      }
    },
  );
});

describe("logprobs", () => {
  const ids = encode("a b c");
  const top = (id: number) => ({ tokenIds: [id, 9], logprobs: [-0.5, -1.5] });
  const entry = (id: number) => ({
    id,
    logprob: -0.5,
    top: [
      { id, logprob: -0.5 },
      { id: 9, logprob: -1.5 },
    ],
  });
  const rows = (of: readonly number[]) => ({ tokenIds: of, logprobs: of.map(() => -0.5), top: of.map(top) });
  const told = (sink: Recorder) => sink.of("output").flatMap(({ logprobs }) => logprobs ?? []);

  test("ride with the tokens that made them, also when these give no text yet", async () => {
    const emoji = encode(SPLIT);
    const run = start({ logprobs: true });
    for (const id of emoji) run.call.chunk([id], { logprobs: rows([id]) });
    expect(run.sink.of("output").map((event) => [outputText(event), event.logprobs?.length])).toEqual(
      emoji.map((_, i) => [i === emoji.length - 1 ? SPLIT : "", 1]),
    );
    run.call.finish({ completionTokens: emoji.length }).end();
    await settled(run);
    expect(told(run.sink)).toEqual(emoji.map(entry));
  });

  test("stop with the token that stops, its own included", async () => {
    const run = start({ logprobs: true });
    run.call.chunk([ids[0]!, IM_END, ids[1]!], { logprobs: rows([ids[0]!, IM_END, ids[1]!]) });
    run.call.finish({ completionTokens: 2 }).end();
    await settled(run);
    expect(told(run.sink)).toEqual([ids[0]!, IM_END].map(entry));
  });

  test("a position that the engine left out moves no other token's logprob", async () => {
    const sent = [ids[0]!, ids[1]!, IM_END, ids[2]!];
    for (const missing of sent) {
      const run = start({ logprobs: true });
      run.call.chunk(sent, { logprobs: rows(sent.filter((id) => id !== missing)) });
      run.call.finish({ completionTokens: 3 }).end();
      await settled(run);
      expect(told(run.sink)).toEqual(
        sent
          .slice(0, 3)
          .filter((id) => id !== missing)
          .map(entry),
      );
    }
  });

  test("a position without a value is left out", async () => {
    const run = start({ logprobs: true });
    run.call.chunk(ids, { logprobs: { ...rows(ids), logprobs: [-0.5, null, -0.5] } });
    run.call.finish({ completionTokens: 3 }).end();
    await settled(run);
    expect(told(run.sink)).toEqual([entry(ids[0]!), entry(ids[2]!)]);
  });

  test("are not shown unless asked for, whatever the engine sends", async () => {
    const run = start({ logprobs: false });
    run.call
      .chunk(ids, { logprobs: rows(ids) })
      .finish({ completionTokens: 3 })
      .end();
    await settled(run);
    expect(told(run.sink)).toEqual([]);
  });
});

test("pause and resume reach the engine", async () => {
  const run = start();
  run.running.pause();
  run.running.resume();
  expect([run.call.paused, run.call.resumed]).toEqual([1, 1]);
  run.call.finish({ completionTokens: 0 }).end();
  await settled(run);
});

test("many generations on one signal leave no listener behind", async () => {
  const abort = new AbortController();
  const live = { added: 0, removed: 0 };
  const { signal } = abort;
  const add = signal.addEventListener.bind(signal);
  const remove = signal.removeEventListener.bind(signal);
  signal.addEventListener = (...args: Parameters<typeof add>) => {
    live.added++;
    add(...args);
  };
  signal.removeEventListener = (...args: Parameters<typeof remove>) => {
    live.removed++;
    remove(...args);
  };
  const engine = new ScriptedEngine((call) => call.chunk([IM_END]).end());
  const request = { requestId: "r", tokenIds: Uint32Array.of(1), sampling: {}, stream: true };
  for (let i = 0; i < 1000; i++)
    await runGeneration({ engine, tokenizer: demoTokenizer, request, output: PLAIN }, new Recorder(), signal).done;
  expect(live).toEqual({ added: 1000, removed: 1000 });
});

test("random stops and chunks: always the text before the stop that starts first, and the tokens it took to be sure of it", async () => {
  const sample = `${TEXT} ${SPLIT}${SPLIT} and "again": ${TEXT}`;
  const ids = encode(sample);
  const letters = [...sample];
  for (let seed = 1; seed <= 300; seed++) {
    const { below, pick } = random(seed);
    const stop = Array.from({ length: 1 + below(3) }, () => {
      const first = below(letters.length);
      return letters.slice(first, first + 1 + below(6)).join("") + pick(["", "", "?"]);
    });
    const found = stop.filter((one) => sample.includes(one));
    const from = Math.min(...found.map((one) => sample.indexOf(one)));
    const matched = found
      .filter((one) => sample.startsWith(one, from))
      .toSorted((a, b) => b.length - a.length)
      .at(0);
    // A stop that begins there or before may still become whole with the text up to `end`.
    const mayGoOn = (one: string, end: number) =>
      Array.from({ length: from + 1 }, (_, at) => sample.slice(at, end)).some(
        (begun) => begun.length < one.length && one.startsWith(begun),
      );
    let end = matched === undefined ? Number.POSITIVE_INFINITY : from + matched.length;
    while (end <= sample.length && stop.some((one) => mayGoOn(one, end))) end++;
    let tokens = 0;
    const decoder = demoTokenizer.decoder({ skipSpecialTokens: true });
    for (let seen = ""; tokens < ids.length && seen.length < end; tokens++) seen += decoder.push(ids[tokens]!);

    const run = start({ stop });
    for (let at = 0; at < ids.length && run.call.cancelled === 0; ) {
      const size = 1 + below(7);
      run.call.chunk(ids.slice(at, at + size)).idle();
      at += size;
    }
    run.call.finish({ reason: "length", completionTokens: ids.length }).end();
    await settled(run);
    expect({ seed, stop, text: run.sink.text(), ...finishOf(run.sink), ...usageOf(run.sink) }).toMatchObject({
      seed,
      text: matched === undefined ? sample : sample.slice(0, from),
      reason: matched === undefined ? "length" : "stop",
      matchedStop: matched as string,
      completionTokens: tokens,
    });
  }
});
