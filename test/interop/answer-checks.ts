/** Chat Completions over the scripted engine: texts, choices, logprobs, stops, clients that leave, failures. */
import { deepEqual, equal, match, ok } from "node:assert/strict";
import { ask, askAndHangUp, askAndLeave, askStream, type ChatBody } from "../engines/answer.ts";
import { refuses } from "./dialects.ts";
import type { QwenText } from "./qwen-text.ts";
import type { ScriptedEngine, Step } from "./scripted-engine.ts";
import type { Suite } from "./suite.ts";
import type { Peer } from "./worker-checks.ts";

/** A cancellation must reach the engine within this time. */
const CANCEL_MS = 1000;
const EOS = 151645;

const TEXT = "Grüße, 世界! 👩‍👩‍👧 done.";

const ways = [
  ["whole", ask],
  ["stream", askStream],
] as const;

export async function answerChecks(
  suite: Suite,
  engine: ScriptedEngine,
  url: string,
  qwen: QwenText,
  { dialect, release }: Peer,
): Promise<void> {
  const request: ChatBody = { model: dialect.model, messages: [{ role: "user", content: "Hello" }], max_tokens: 200 };
  const ids = qwen.encode(TEXT);
  const oneByOne: Step[] = ids.map((id) => ({ chunk: [id] }));
  const end: Step = { complete: "stop" };

  for (const [way, put] of ways) {
    await suite.check(`text, token by token (${way})`, async () => {
      await engine.play(...oneByOne, { chunk: [EOS] }, end);
      const { choices, usage, streamFaults } = await put(url, request);
      equal(choices[0]?.text, TEXT);
      equal(choices[0]?.finishReason, "stop");
      const { prompt_tokens } = await engine.next("generate", CANCEL_MS);
      deepEqual(usage, { prompt: prompt_tokens, completion: ids.length + 1 });
      deepEqual(streamFaults, []);
    });

    await suite.check(`text in one chunk, cut by length (${way})`, async () => {
      await engine.play({ chunk: ids }, { complete: "length" });
      const { choices } = await put(url, request);
      deepEqual([choices[0]?.text, choices[0]?.finishReason], [TEXT, "length"]);
    });

    if (!refuses(dialect, release, "n"))
      await suite.check(`n = 2, chunks interleaved, one ends first (${way})`, async () => {
        const [a, b] = [qwen.encode("first answer"), qwen.encode("second answer, longer")];
        const steps: Step[] = [];
        for (let i = 0; i < b.length; i++) {
          if (i < a.length) steps.push({ chunk: [a[i]], index: 0 });
          if (i === a.length) steps.push({ complete: "stop", index: 0 });
          steps.push({ chunk: [b[i]], index: 1 });
        }
        await engine.play(...steps, { complete: "length", index: 1 });
        const { choices, usage, streamFaults } = await put(url, { ...request, n: 2 });
        deepEqual(
          choices.map((c) => [c.text, c.finishReason]),
          [
            ["first answer", "stop"],
            ["second answer, longer", "length"],
          ],
        );
        equal(usage?.completion, a.length + b.length);
        deepEqual(streamFaults, []);
      });

    await suite.check(`logprobs (${way})`, async () => {
      const [first, second] = [qwen.one("Hello"), qwen.one(" world")];
      const row = (value: number, id: number, other: number) => [
        value,
        id,
        [
          [value, id],
          [-0.25, other],
        ],
      ];
      await engine.play(
        { chunk: [first], logprobs: [row(-0.125, first, second)] },
        { chunk: [second], logprobs: [row(-2, second, first)] },
        end,
      );
      const { choices } = await put(url, { ...request, logprobs: true, top_logprobs: 1 });
      const shown = choices[0]?.logprobs?.map((l) => [l.token, l.logprob, l.top_logprobs.map((t) => t.token)]);
      // The second token is not the most likely one: what is listed is.
      deepEqual(shown, [
        ["Hello", -0.125, ["Hello"]],
        [" world", -2, ["Hello"]],
      ]);
      deepEqual(choices[0]?.logprobs?.[1]?.bytes, [...new TextEncoder().encode(" world")]);
      // However a dialect asks for them: the scripted engine sends what it is told to.
      match(JSON.stringify((await engine.next("generate", CANCEL_MS)).request), /logprob/);
    });
  }

  await suite.check("stop string in a stream: the engine is told to end", async () => {
    await engine.play(
      { chunk: qwen.encode("one two STO") },
      { repeat: { chunk: qwen.encode("P three") }, every: 0.02 },
    );
    const { choices } = await askStream(url, { ...request, stop: ["STOP"] });
    deepEqual([choices[0]?.text, choices[0]?.finishReason, choices[0]?.stopReason], ["one two ", "stop", "STOP"]);
    await engine.next(["cancelled", "abort"], CANCEL_MS);
  });

  await suite.check("client leaves a stream: the engine is told", async () => {
    await engine.play({ repeat: { chunk: [qwen.one("Hello")] }, every: 0.01 });
    await askAndLeave(url, request, 10);
    await engine.next(["cancelled", "abort"], CANCEL_MS);
  });

  await suite.check("client leaves before the first token: the engine is told", async () => {
    await engine.play({ hang: true });
    await askAndHangUp(url, { ...request, stream: true }, 300);
    await engine.next(["cancelled", "abort"], CANCEL_MS);
  });

  await suite.check("client leaves while waiting for the whole answer: the engine is told", async () => {
    await engine.play({ hang: true });
    await askAndHangUp(url, request, 300);
    await engine.next(["cancelled", "abort"], CANCEL_MS);
  });

  await suite.check("after all those the gateway still answers", async () => {
    await engine.play({ chunk: ids }, end);
    equal((await ask(url, request)).choices[0]?.text, TEXT);
  });

  // Statuses are those of gRPC, whatever the dialect: all of them with one, a few with the others.
  const statuses: [string, number][] = [
    ["INVALID_ARGUMENT", 400],
    ["RESOURCE_EXHAUSTED", 429],
    ["UNAVAILABLE", 503],
    ["INTERNAL", 500],
    ["UNIMPLEMENTED", 501],
    ["DEADLINE_EXCEEDED", 504],
  ];
  for (const [status, http] of dialect.name === "vllm" ? statuses : statuses.slice(0, 2)) {
    for (const [way, put] of ways) {
      await suite.check(`${status} before the first message is HTTP ${http} (${way})`, async () => {
        await engine.play({ sleep: 0.05 }, { error: status, details: "scripted: größer — no" });
        const answer = await put(url, request);
        equal(answer.status, http);
        ok(answer.error, "there is an error message");
        if (status === "INVALID_ARGUMENT") match(answer.error, /scripted: größer — no/);
      });
    }
  }

  for (const [name, steps] of [
    ["an error after some tokens", [{ chunk: ids }, { sleep: 0.1 }, { error: "INTERNAL", details: "scripted" }]],
    ["a stream without its Complete", [{ chunk: ids }, { sleep: 0.1 }]],
    ["finish_reason abort", [{ chunk: ids }, { sleep: 0.1 }, { complete: "abort" }]],
  ] as [string, Step[]][]) {
    await suite.check(`${name}: an error frame, no [DONE] (stream)`, async () => {
      await engine.play(...steps);
      const answer = await askStream(url, request);
      equal(answer.status, 200);
      ok(answer.error, "there is an error frame");
      equal(answer.choices[0]?.finishReason ?? null, null);
      deepEqual(answer.streamFaults, []);
    });
    await suite.check(`${name}: a 5xx (whole)`, async () => {
      await engine.play(...steps);
      const answer = await ask(url, request);
      ok(answer.status >= 500, `status ${answer.status}`);
    });
  }

  await suite.check("an answer that its constraint does not allow: 422", async () => {
    await engine.play({
      error: "FAILED_PRECONDITION",
      details: "no token fits",
      trailers: { "smg-constraint-failed": "engine" },
    });
    for (const [, put] of ways) equal((await put(url, request)).status, 422);
  });

  await suite.check("nothing at all before OK: a 5xx", async () => {
    await engine.play();
    for (const [, put] of ways) ok((await put(url, request)).status >= 500);
  });
}
