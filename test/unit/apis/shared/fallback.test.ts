import { afterEach, describe, expect, test } from "bun:test";
import { EngineError } from "../../../../src/engines/engine.ts";
import { type DispatchObserver, UNOBSERVED } from "../../../../src/fleet/dispatch/observer.ts";
import type { WorkerEntry } from "../../../../src/fleet/snapshot.ts";
import { WorkerState } from "../../../../src/threads/fleet-board.ts";
import { until } from "../../../support/until.ts";
import { encode, IM_END } from "../../generation/demo-tokenizer.ts";
import { type ScriptedCall, ScriptedEngine } from "../../generation/scripted-engine.ts";
import { type Gateway, MODEL, modelEntry, startGateway } from "../../server/gateway.ts";

const OTHER = "org/other";
const AWAY = new EngineError("unavailable", "gone");

let gateway: Gateway;
afterEach(() => gateway.stop());

function answer(call: ScriptedCall): void {
  const ids = [...encode("Paris"), IM_END];
  call.chunk(ids).finish({ completionTokens: ids.length, matchedTokenId: IM_END }).idle().end();
}

/** A gateway of two models, of which the second stands in for the first; `first`: what the calls of the first come to. */
function start(first: (call: ScriptedCall) => void, { without = false, args = [] as string[] } = {}): ScriptedCall[] {
  const calls: ScriptedCall[] = [];
  let failed = without;
  const engine = new ScriptedEngine((call) => {
    calls.push(call);
    const answers = failed ? answer : first;
    failed = true;
    setTimeout(() => answers(call), 1);
  });
  const models = without
    ? [modelEntry({ id: OTHER, aliases: [] })]
    : [modelEntry(), modelEntry({ id: OTHER, aliases: [] })];
  gateway = startGateway(["--model-card", `${MODEL}:fallback=${OTHER}`, ...args], engine, models);
  const slot = gateway.board.claim();
  gateway.board.setState(slot, WorkerState.ready);
  const other: WorkerEntry = { id: "o", slot, url: "grpc://other.internal:50051", dialect: "scripted", model: OTHER };
  const workers = [...(without ? [] : gateway.snapshot.workers), other];
  gateway.fleet.apply({ ...gateway.snapshot, workers, expected: workers.length });
  return calls;
}

const post = (path: string, body: object): Promise<Response> =>
  fetch(gateway.url + path, {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: JSON.stringify(body),
  });

const messages = [{ role: "user", content: "The capital of France?" }];
const APIS: readonly [path: string, body: Record<string, unknown>][] = [
  ["/v1/chat/completions", { messages }],
  ["/v1/completions", { prompt: "The capital" }],
  ["/v1/messages", { messages, max_tokens: 10 }],
  ["/v1/responses", { input: "The capital" }],
  ["/v1beta/interactions", { input: "The capital" }],
  ["/generate", { text: "The capital" }],
];

describe("another model answers", () => {
  for (const [path, body] of APIS) {
    for (const stream of [false, true]) {
      const how = `${path}${stream ? ", streamed" : ""}`;

      test(`when the workers of the first one fail: ${how}`, async () => {
        const calls = start((call) => call.end(AWAY));
        const response = await post(path, { model: MODEL, stream, ...body });
        const text = await response.text();
        expect([response.status, response.headers.get("x-collie-model")]).toEqual([200, OTHER]);
        expect(text).toContain("Paris");
        expect(text).not.toContain(OTHER);
        if (path !== "/generate") expect(text).toContain(`"${MODEL}"`);
        expect(calls).toHaveLength(2);
        expect([gateway.scopes.size, gateway.board.bookings()]).toEqual([0, 0]);
      });

      test(`when nobody serves the first one: ${how}`, async () => {
        start(answer, { without: true });
        const response = await post(path, { model: MODEL, stream, ...body });
        expect([response.status, response.headers.get("x-collie-model")]).toEqual([200, OTHER]);
        expect(await response.text()).toContain("Paris");
        expect(gateway.scopes.size).toBe(0);
      });

      test(`not when the request is wrong: ${how}`, async () => {
        const calls = start((call) => call.end(new EngineError("invalid", "no such thing")));
        const response = await post(path, { model: MODEL, stream, ...body });
        expect([response.status, calls.length, gateway.scopes.size]).toEqual([400, 1, 0]);
        await response.text();
      });
    }
  }

  test("but for an answer that has begun: that breaks off", async () => {
    const calls = start((call) => call.chunk(encode("Lon")).idle().end(AWAY));
    const response = await post("/v1/chat/completions", { model: MODEL, messages, stream: true });
    const text = await response.text();
    expect([response.status, calls.length]).toEqual([200, 1]);
    expect(text).toContain('"error"');
    expect(text).not.toContain("[DONE]");
  });

  test("and the first failure is told when both fail", async () => {
    start((call) => call.end(new EngineError("overloaded", "full", { retryAfterMs: 7000 })));
    gateway.board.setState(gateway.fleet.lease(gateway.fleet.model(OTHER)).worker.slot, WorkerState.unhealthy);
    const response = await post("/v1/chat/completions", { model: MODEL, messages });
    expect([response.status, response.headers.get("retry-after")]).toEqual([429, "7"]);
    expect(gateway.scopes.size).toBe(0);
  });

  test("in the background", async () => {
    for (const [path, poll] of [
      ["/v1/responses", "/v1/responses/"],
      ["/v1beta/interactions", "/v1beta/interactions/"],
    ]) {
      const calls = start((call) => call.end(AWAY));
      const begun = await post(path!, { model: MODEL, input: "The capital", background: true });
      const { id } = (await begun.json()) as { id: string };
      let text = "";
      await until(async () => {
        text = await (await fetch(gateway.url + poll + id)).text();
        return text.includes('"completed"');
      }, "the answer");
      expect(text).toContain("Paris");
      expect(text).not.toContain(OTHER);
      expect(calls).toHaveLength(2);
    }
  });
});

test("an answer of the first model says so; without others nothing is said", async () => {
  start(answer);
  const response = await post("/v1/chat/completions", { model: "demo", messages });
  expect([response.status, response.headers.get("x-collie-model")]).toEqual([200, MODEL]);
  await response.text();
  const other = await post("/v1/chat/completions", { model: OTHER, messages });
  expect([other.status, other.headers.get("x-collie-model")]).toEqual([200, null]);
  await other.text();
});

test("a model may have its own limit for the whole of a request", async () => {
  start(() => {}, { args: ["--model-card", `${OTHER}:request_timeout_secs=1`, "--request-timeout-secs", "100"] });
  const hang = post("/v1/chat/completions", { model: OTHER, messages });
  const response = await hang;
  expect([response.status, ((await response.json()) as { error: { code: string } }).error.code]).toEqual([
    504,
    "request_timeout",
  ]);
});

test("one that stands in for work in the background is counted when it answers, not when it fails, too", async () => {
  for (const isAway of [false, true]) {
    start((call) => call.end(AWAY));
    const counted: string[] = [];
    const observer: DispatchObserver = { ...UNOBSERVED, fellBack: (...names) => counted.push(names.join(" > ")) };
    Object.defineProperty(gateway.fleet, "observer", { value: observer });
    if (isAway) {
      const lease = gateway.fleet.lease(gateway.fleet.model(OTHER));
      gateway.board.setState(lease.worker.slot, WorkerState.unhealthy);
    }
    const begun = await post("/v1/responses", { model: MODEL, input: "The capital", background: true });
    const { id } = (await begun.json()) as { id: string };
    const state = async () =>
      ((await (await fetch(`${gateway.url}/v1/responses/${id}`)).json()) as { status: string }).status;
    let status = "queued";
    await until(async () => {
      status = await state();
      return status !== "queued" && status !== "in_progress";
    }, "the end");
    expect([status, counted]).toEqual(isAway ? ["failed", []] : ["completed", [`${MODEL} > ${OTHER}`]]);
    if (!isAway) await gateway.stop();
  }
});

test("a model's own limit holds in the background as well", async () => {
  for (const path of ["/v1/responses", "/v1beta/interactions"]) {
    start(() => {}, { args: ["--model-card", `${OTHER}:request_timeout_secs=1`, "--request-timeout-secs", "100"] });
    const begun = await post(path, { model: OTHER, input: "The capital", background: true });
    const { id } = (await begun.json()) as { id: string };
    const text = async () => (await fetch(`${gateway.url}${path}/${id}`)).text();
    await until(async () => (await text()).includes('"failed"'), "the end");
    if (path === "/v1/responses") await gateway.stop();
  }
});
