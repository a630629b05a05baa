import { describe, expect, test } from "bun:test";
import { type BatchSink, batchOf } from "../../../../src/apis/completions/batch.ts";
import { ClientClosedError, OverloadedError, RequestTimeoutError } from "../../../../src/errors.ts";
import type { GenerationEvent, GenerationSink } from "../../../../src/generation/events.ts";

/** A call whose events a test gives itself. */
class Call {
  sink!: GenerationSink;
  signal!: AbortSignal;
  states: string[] = [];
  private resolve!: () => void;

  run = (sink: GenerationSink, signal: AbortSignal) => {
    this.sink = sink;
    this.signal = signal;
    const done = new Promise<void>((resolve) => {
      this.resolve = resolve;
    });
    signal.addEventListener("abort", () => this.end({ type: "error", error: signal.reason as never }));
    return { pause: () => this.states.push("paused"), resume: () => this.states.push("resumed"), done };
  };

  get begun(): boolean {
    return this.sink !== undefined;
  }

  say(text: string, index = 0): void {
    const parts = [{ type: "text" as const, text }];
    this.sink.emit({ type: "output", index, parts, tokenIds: undefined, logprobs: undefined });
  }

  end(event?: GenerationEvent): void {
    const usage = { promptTokens: 1, cachedTokens: 2, completionTokens: 3, reasoningTokens: 4 };
    this.sink.emit(event ?? { type: "usage", ...usage });
    this.sink.flush();
    this.resolve();
  }
}

function start(count: number, choices = 1) {
  const calls = Array.from({ length: count }, () => new Call());
  const events: GenerationEvent[] = [];
  const told: unknown[] = [];
  const abort = new AbortController();
  const sink: BatchSink = {
    begunWith: (prompt, counts) => told.push([prompt, counts]),
    logprobsOf: (prompt) => told.push(prompt),
    emit: (event) => events.push(event),
    flush: () => {},
  };
  const running = batchOf(calls, choices).run(sink, abort.signal);
  return { calls, events, told, abort, running };
}
const types = (events: readonly GenerationEvent[]) => events.map(({ type }) => type);

describe("several calls", () => {
  test("choices are numbered through, the usage is of all and comes last", async () => {
    const { calls, events, told, running } = start(3, 2);
    calls[1]!.sink.begun?.({ promptTokens: 7, cachedTokens: 0 });
    calls[2]!.sink.promptLogprobs?.({ tokenIds: [], logprobs: [], top: [] });
    calls[2]!.say("x", 1);
    calls[0]!.say("y");
    for (const call of calls) call.end();
    await running.done;
    expect(events.map((event) => "index" in event && event.index)).toEqual([5, 0, false]);
    expect(events.at(-1)).toEqual({
      type: "usage",
      promptTokens: 3,
      cachedTokens: 6,
      completionTokens: 9,
      reasoningTokens: 12,
    });
    expect(told).toEqual([[1, { promptTokens: 7, cachedTokens: 0 }], 2]);
  });

  test("pause holds those that run and those that begin", async () => {
    const { calls, running } = start(34);
    running.pause();
    expect(calls.map(({ states }) => states.join())).toEqual([...Array(32).fill("paused"), "", ""]);
    calls[5]!.end();
    await Bun.sleep(0);
    expect(calls[32]!.states).toEqual(["paused"]);
    running.resume();
    expect(calls[32]!.states).toEqual(["paused", "resumed"]);
    expect(calls[5]!.states).toEqual(["paused"]);
    for (const call of calls) if (call.begun) call.end();
    await Bun.sleep(0);
    calls[33]!.end();
    await running.done;
  });

  test("the first failure is told once and ends the rest", async () => {
    const { calls, events, running } = start(40);
    const error = new OverloadedError("full");
    calls[3]!.end({ type: "error", error });
    await running.done;
    expect(events).toEqual([{ type: "error", error }]);
    expect(calls[0]!.signal.reason).toBe(error);
    expect(calls.filter(({ begun }) => begun)).toHaveLength(32);
  });

  test("the request's end is told once, with its reason", async () => {
    for (const reason of [new ClientClosedError(), new RequestTimeoutError(1)]) {
      const { events, abort, running } = start(3);
      abort.abort(reason);
      await running.done;
      expect(events).toEqual([{ type: "error", error: reason }]);
    }
  });

  test("a sink that fails at the end hears of it", async () => {
    const calls = [new Call(), new Call()];
    const seen: string[] = [];
    const sink: BatchSink = {
      emit(event) {
        seen.push(event.type);
        if (event.type === "usage") throw new Error("broken");
      },
      flush: () => {},
    };
    const running = batchOf(calls, 1).run(sink, new AbortController().signal);
    for (const call of calls) call.end();
    await running.done;
    expect(seen).toEqual(["usage", "error"]);
  });
});

test("one call goes through as it is", async () => {
  const { calls, events, told, running } = start(1);
  calls[0]!.sink.begun?.({ promptTokens: 7, cachedTokens: 1 });
  calls[0]!.say("x");
  calls[0]!.end();
  await running.done;
  expect(types(events)).toEqual(["output", "usage"]);
  expect(told).toEqual([[0, { promptTokens: 7, cachedTokens: 1 }]]);
});
