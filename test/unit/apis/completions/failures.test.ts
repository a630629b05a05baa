/** `POST /v1/completions` over HTTP, with a real tokenizer and an engine in memory: failures. */
import { afterAll, describe, expect, test } from "bun:test";
import { EngineError } from "../../../../src/engines/engine.ts";
import { until } from "../../../support/until.ts";
import { encode } from "../../generation/demo-tokenizer.ts";
import { type ScriptedCall, ScriptedEngine } from "../../generation/scripted-engine.ts";
import { MODEL, modelEntry } from "../../server/gateway.ts";
import { completionOf, frames, PATH, post, refused, say, speaking, started, stopAll, TEXT } from "./gateway.ts";

/** Answers every choice with a text that tells its prompt and its number. */
const gateway = started(speaking((call, choice) => `${TEXT} ${call.request.tokenIds.length}.${choice}`));
afterAll(stopAll);
const ask = (body: object, from = gateway) => completionOf(body, from);

describe("failures", () => {
  const failing = (at: number) => {
    let calls = 0;
    return new ScriptedEngine((call) => {
      const mine = calls++;
      queueMicrotask(() => {
        if (mine === at) call.end(new EngineError("failed", "boom"));
        else if (mine < at) {
          say(call, "fine");
          call.end();
        }
      });
    });
  };

  test("of one prompt ends all others at the engine, and no more are begun", async () => {
    const broken = started(failing(3));
    const prompt = Array.from({ length: 200 }, (_, i) => [i]);
    const [status, , , message] = await refused(broken, PATH, { prompt });
    expect([status, message]).toEqual([500, "boom"]);
    const { calls } = broken.engine;
    expect(calls.length).toBeLessThanOrEqual(36);
    expect(calls.filter(({ cancelled }) => cancelled > 0).length).toBe(calls.length - 4);
    expect(calls.every(({ ended }) => ended)).toBe(true);
    expect(broken.scopes.size).toBe(0);
  });

  test("at most 32 prompts are with the engine at a time", async () => {
    let most = 0;
    let running = 0;
    const counted = started(
      new ScriptedEngine((call) => {
        most = Math.max(most, ++running);
        setTimeout(() => {
          running--;
          say(call, "fine");
          call.end();
        }, 1);
      }),
    );
    const { choices } = await ask({ prompt: Array.from({ length: 150 }, (_, i) => [i]) }, counted);
    expect([choices.length, most]).toEqual([150, 32]);
  });

  test("behind the first frame they are a frame, and no [DONE] follows", async () => {
    const broken = started(
      new ScriptedEngine((call: ScriptedCall) => {
        queueMicrotask(() => {
          call.chunk(encode("some")).idle();
          setTimeout(() => call.end(new EngineError("failed", "boom")), 5);
        });
      }),
    );
    for (const prompt of [[1], [[1], [2]]]) {
      const all = await frames(broken, PATH, { prompt });
      expect(JSON.parse(all.at(-1)!)).toMatchObject({ error: { message: "boom", type: "server_error" } });
      expect(all.filter((frame) => frame.includes('"error"'))).toHaveLength(1);
      expect(all.length).toBeGreaterThan(1);
    }
  });

  test("a client that leaves ends all prompts at the engine", async () => {
    const hanging = started(new ScriptedEngine());
    for (const stream of [false, true]) {
      const before = hanging.engine.calls.length;
      const leave = new AbortController();
      const left = fetch(hanging.url + PATH, {
        method: "POST",
        headers: { "content-type": "application/json" },
        body: JSON.stringify({ model: MODEL, prompt: [[1], [2], [3]], stream }),
        signal: leave.signal,
      }).catch((error: unknown) => error);
      while (hanging.engine.calls.length < before + 3) await Bun.sleep(1);
      leave.abort();
      await left;
      await until(() => hanging.engine.calls.every(({ ended }) => ended), "the end of all");
      expect(hanging.engine.calls.slice(before).map(({ cancelled }) => cancelled)).toEqual([1, 1, 1]);
    }
  });

  test("an embedding model is none for text", async () => {
    const vectors = started(new ScriptedEngine(), [modelEntry({ pooling: {} as never })]);
    const [status, , param] = await refused(vectors, PATH, { prompt: "a" });
    expect([status, param]).toEqual([400, "model"]);
    expect((await post(vectors, PATH, { prompt: "a", model: "nobody" })).status).toBe(404);
  });
});
