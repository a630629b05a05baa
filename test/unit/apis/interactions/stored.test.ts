/** Interactions that were stored: read, streamed again from any event, cancelled, deleted; in the background. */
import { afterEach, describe, expect, test } from "bun:test";
import { LOST_INTERACTION } from "../../../../src/apis/interactions/logged.ts";
import { endLost } from "../../../../src/apis/shared/lost-run.ts";
import { EngineError } from "../../../../src/engines/engine.ts";
import { checkEvents, readEvents } from "../../../support/schemas/interactions.ts";
import { until } from "../../../support/until.ts";
import { encode } from "../../generation/demo-tokenizer.ts";
import type { ScriptedCall } from "../../generation/scripted-engine.ts";
import type { Gateway } from "../../server/gateway.ts";
import { play, written } from "../../server/tool-chat.ts";
import { get, interactionsGateway, post, refusal, streamed, told, WEATHER, whole } from "./http.ts";

let gateway: Gateway;
afterEach(() => gateway?.stop());

const at = (id: string, query = "") => fetch(`${gateway.url}/v1beta/interactions/${id}${query}`);
const TEXT = `<think>\nHm 👩‍👩‍👧, hm.\n</think>\n\nWait, naïve 日本.${written("get_weather", '{"city": "Oslo"}')}`;

test("with its input", async () => {
  gateway = interactionsGateway((call) => play(["Fine."], call));
  const text = (said: string) => ({ type: "text", text: said });
  const { id } = await whole(gateway, { input: [text("a"), text("b"), { type: "user_input", content: [text("c")] }] });
  expect((await get(gateway, id)).input).toBeUndefined();
  const { input }: { input?: unknown } = await get(gateway, id, "?include_input=true");
  expect(input).toEqual([
    { type: "user_input", content: [text("a"), text("b")] },
    { type: "user_input", content: [text("c")] },
  ]);
});

test("of an unknown id there is none, nor one of another API", async () => {
  gateway = interactionsGateway((call) => play(["Fine."], call));
  const response = await fetch(`${gateway.url}/v1/responses`, {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: JSON.stringify({ model: "org/demo-model", input: "Hi" }),
  });
  const { id } = (await response.json()) as { id: string };
  for (const unknown of ["int_0", id]) {
    for (const [method, path] of [
      ["GET", ""],
      ["GET", "?stream=true"],
      ["DELETE", ""],
      ["POST", "/cancel"],
    ] as const) {
      const found = await fetch(`${gateway.url}/v1beta/interactions/${unknown}${path}`, { method });
      expect(found.status).toBe(404);
      expect(await found.json()).toMatchObject({ error: { code: 404, status: "NOT_FOUND" } });
    }
  }
});

test("deleted", async () => {
  gateway = interactionsGateway((call) => play(["Fine."], call));
  const { id } = await whole(gateway, {});
  const gone = await fetch(`${gateway.url}/v1beta/interactions/${id}`, { method: "DELETE" });
  expect([gone.status, await gone.json()]).toEqual([200, {}]);
  expect((await at(id)).status).toBe(404);
});

test("a cancel leaves what is over", async () => {
  gateway = interactionsGateway((call) => play(["Fine."], call));
  const one = await whole(gateway, {});
  const response = await fetch(`${gateway.url}/v1beta/interactions/${one.id}/cancel`, {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: "{}",
  });
  expect(await response.json()).toEqual(one);
});

/** Cuts a stream behind each of its events and asks for the rest: together they must be the whole. */
async function resumeEverywhere(
  id: string,
  events: Awaited<ReturnType<typeof streamed>>["events"],
  steps: unknown,
): Promise<void> {
  for (const [index, event] of events.entries()) {
    const response = await at(id, `?stream=true&last_event_id=${event.event_id}`);
    const rest = readEvents(await response.text());
    expect(rest.done).toBe(true);
    expect(checkEvents([...events.slice(0, index + 1), ...rest.events]).steps).toEqual(steps as never);
  }
}

describe("streamed again behind any event", () => {
  test.each([
    ["stop", {}],
    ["length", {}],
    ["stop", { generation_config: { thinking_summaries: "none" } }],
  ] as const)("one that ended by %s %j", async (reason, more) => {
    const text = reason === "length" ? TEXT.slice(0, -16) : TEXT;
    gateway = interactionsGateway((call) => play([text], call, { reason }));
    const { events, steps, last } = await streamed(gateway, { tools: [WEATHER], ...more });
    await resumeEverywhere(last.id, events, steps);
  });

  test("one that failed", async () => {
    gateway = interactionsGateway((call) => {
      call.chunk(encode("Once")).idle();
      call.end(new EngineError("failed", "gone"));
    });
    const { events, steps, last } = await streamed(gateway, {});
    await resumeEverywhere(last.id, events, steps);
  });

  test("an id of no event is refused", async () => {
    gateway = interactionsGateway((call) => play(["Fine."], call));
    const { id } = await whole(gateway, {});
    for (const query of ["?stream=true&last_event_id=abc", "?last_event_id=0.0.0"])
      expect((await at(id, query)).status).toBe(400);
  });
});

describe("in the background", () => {
  /** Goes on when it is told. */
  function slowly(): { calls: ScriptedCall[] } {
    const calls: ScriptedCall[] = [];
    gateway = interactionsGateway((call) => void calls.push(call));
    return { calls };
  }
  test("is told at once, and found until it is over", async () => {
    const { calls } = slowly();
    const begun = await whole(gateway, { background: true });
    expect(begun).toMatchObject({ status: "in_progress", steps: [] });
    await until(() => calls.length === 1);
    expect((await get(gateway, begun.id)).status).toBe("in_progress");
    play(["Fine."], calls[0]!);
    await until(async () => (await get(gateway, begun.id)).status === "completed");
    expect(await get(gateway, begun.id)).toMatchObject({ steps: [{ content: [{ text: "Fine." }] }] });
    await until(() => gateway.scopes.size === 0);
  });

  test("is followed from any event, while it runs and when it is over", async () => {
    const { calls } = slowly();
    const { id } = await whole(gateway, { background: true, tools: [WEATHER] });
    await until(() => calls.length === 1);
    const following = told(await at(id, "?stream=true"));
    const ids = encode(TEXT);
    for (let k = 0; k < ids.length; k += 4) {
      calls[0]!.chunk(ids.slice(k, k + 4)).idle();
      if (k % 16 === 0) await Bun.sleep(20);
    }
    const middle = at(id, "?stream=true&last_event_id=0.0.0").then((response) => response.text());
    calls[0]!.finish({ completionTokens: ids.length }).end();
    const { events, steps, last } = await following;
    expect(last).toMatchObject({ status: "requires_action", id });
    expect(steps.map(({ type }) => type)).toEqual(["thought", "model_output", "function_call"]);
    expect(checkEvents([events[0]!, ...readEvents(await middle).events])).toEqual({ last, steps });
    const { steps: stored, ...members } = await get(gateway, id);
    expect(stored).toEqual([...steps]);
    expect(members).toMatchObject(last);
    await resumeEverywhere(id, events, steps);
  });

  test("streamed by its own request, it outlives the client", async () => {
    const { calls } = slowly();
    const leaving = new AbortController();
    const response = await fetch(`${gateway.url}/v1beta/interactions`, {
      method: "POST",
      headers: { "content-type": "application/json" },
      body: JSON.stringify({ model: "org/demo-model", input: "Hi", background: true, stream: true }),
      signal: leaving.signal,
    });
    const reader = response.body!.getReader();
    let read = "";
    while (!read.includes("interaction.created")) read += new TextDecoder().decode((await reader.read()).value);
    const id = /"id":"(int_[0-9a-f]{50})"/.exec(read)?.[1] ?? "";
    leaving.abort();
    await until(() => calls.length === 1);
    await Bun.sleep(50);
    play(["Fine."], calls[0]!);
    await until(async () => (await get(gateway, id)).status === "completed");
    expect(calls[0]!.cancelled).toBe(0);
  });

  test("is cancelled, with what there was", async () => {
    const { calls } = slowly();
    const { id } = await whole(gateway, { background: true });
    await until(() => calls.length === 1);
    const following = told(await at(id, "?stream=true"));
    calls[0]!.chunk(encode("Once upon")).idle();
    await Bun.sleep(100);
    const cancelled = await fetch(`${gateway.url}/v1beta/interactions/${id}/cancel`, { method: "POST" });
    expect(await cancelled.json()).toMatchObject({
      status: "cancelled",
      steps: [{ content: [{ text: "Once upon" }] }],
    });
    expect(calls[0]!.cancelled).toBe(1);
    expect((await following).last.status).toBe("cancelled");
    expect((await refusalOfPrevious(id)).code).toBe(200);
  });

  test("ended by others while it is followed, its open step is closed", async () => {
    const { calls } = slowly();
    const { id } = await whole(gateway, { background: true });
    await until(() => calls.length === 1);
    const following = told(await at(id, "?stream=true"));
    calls[0]!.chunk(encode("Once upon")).idle();
    const history = gateway.history!;
    const logged = { maxEvents: 99, maxBytes: 1e6 };
    await until(async () => (await history.readEvents("default", id, -1, logged))!.length > 2);
    await endLost(history, "default", id, LOST_INTERACTION);
    const { events, steps, last } = await following;
    expect([last.status, steps]).toEqual([
      "failed",
      [{ type: "model_output", content: [{ type: "text", text: "Once upon" }] }],
    ]);
    expect(events.map(({ event_type: type }) => type).slice(-3)).toEqual([
      "step.stop",
      "error",
      "interaction.completed",
    ]);
    await until(() => calls[0]!.cancelled === 1);
  });

  /** What is over can be gone on from, however it ended. */
  async function refusalOfPrevious(id: string): Promise<{ code: number }> {
    const asked = post(gateway, { previous_interaction_id: id });
    await until(() => gateway.engine.calls.length === 2);
    play(["Fine."], gateway.engine.calls[1]!);
    return { code: (await asked).status };
  }

  test("fails as it would at once, and says so", async () => {
    const { calls } = slowly();
    const { id } = await whole(gateway, { background: true });
    await until(() => calls.length === 1);
    calls[0]!.end(new EngineError("failed", "gone"));
    await until(async () => (await get(gateway, id)).status === "failed");
    const { last, events } = await told(await at(id, "?stream=true"));
    expect(last.status).toBe("failed");
    expect(events.map(({ event_type: type }) => type)).toEqual([
      "interaction.created",
      "error",
      "interaction.completed",
    ]);
  });

  test("cannot be gone on from yet; deleted, it ends", async () => {
    const { calls } = slowly();
    const { id } = await whole(gateway, { background: true });
    expect(await refusal(gateway, { previous_interaction_id: id })).toMatchObject({ code: 400 });
    await until(() => calls.length === 1);
    await fetch(`${gateway.url}/v1beta/interactions/${id}`, { method: "DELETE" });
    await until(() => calls[0]!.cancelled === 1);
    await until(() => gateway.scopes.size === 0);
  });

  test("is refused before it begins where it cannot be served", async () => {
    slowly();
    expect(await refusal(gateway, { background: true, input: [] })).toMatchObject({ code: 400 });
    expect(gateway.engine.calls).toEqual([]);
  });
});

test("a key is taken as Google's clients send it", async () => {
  gateway = interactionsGateway((call) => play(["Fine."], call), {}, ["--api-key", "secret"]);
  const ask = (headers: Record<string, string>, query = "") =>
    fetch(`${gateway.url}/v1beta/models${query}`, { headers });
  const refused = await ask({});
  expect(refused.status).toBe(401);
  expect(await refused.json()).toMatchObject({ error: { code: 401, status: "UNAUTHENTICATED" } });
  expect((await ask({ "x-goog-api-key": "secret" })).status).toBe(200);
  expect((await ask({}, "?key=secret")).status).toBe(200);
});

describe("models in Google's shape", () => {
  test("a page of them, and one", async () => {
    gateway = interactionsGateway((call) => play(["Fine."], call));
    const list = (query: string) => fetch(`${gateway.url}/v1beta/models${query}`).then((response) => response.json());
    const both = (await list("")) as { models: { name: string }[]; nextPageToken?: string };
    expect(both.models.map(({ name }) => name)).toEqual(["models/org/demo-model", "models/demo"]);
    expect(both.nextPageToken).toBeUndefined();
    const first = (await list("?pageSize=1")) as typeof both;
    expect(first).toMatchObject({ models: [{ name: "models/org/demo-model" }], nextPageToken: "1" });
    expect(await list("?pageSize=1&pageToken=1")).toEqual({ models: [both.models[1]] });
    expect(await list("?pageSize=x")).toMatchObject({ error: { code: 400, status: "INVALID_ARGUMENT" } });
    const one = await fetch(`${gateway.url}/v1beta/models/org/demo-model`);
    expect(await one.json()).toEqual({
      name: "models/org/demo-model",
      baseModelId: "org/demo-model",
      version: "1",
      displayName: "org/demo-model",
      description: "",
      inputTokenLimit: 4096,
      outputTokenLimit: 4096,
      supportedGenerationMethods: ["createInteraction"],
      temperature: 1,
      topP: 1,
    });
    const none = await fetch(`${gateway.url}/v1alpha/models/x`);
    expect(await none.json()).toMatchObject({ error: { code: 404, status: "NOT_FOUND" } });
  });
});
