import { afterEach, describe, expect, test } from "bun:test";
import { LOST_RESPONSE } from "../../../../src/apis/responses-store/logged.ts";
import { endLost } from "../../../../src/apis/shared/lost-run.ts";
import { EngineError } from "../../../../src/engines/engine.ts";
import { HistoryUnavailableError } from "../../../../src/history/errors.ts";
import type { HistoryStore } from "../../../../src/history/store.ts";
import { testHistory } from "../../../support/kept.ts";
import type { ResponseBody } from "../../../support/schemas/responses.ts";
import { checkEvents } from "../../../support/schemas/responses-order.ts";
import { until as soon } from "../../../support/until.ts";
import type { Gateway } from "../../server/gateway.ts";
import { answered, post } from "../responses/http.ts";
import {
  cancel,
  engineCall,
  finish,
  gatewayOver,
  get,
  inBackground,
  retrieved,
  say,
  streamOf,
  until,
} from "./support.ts";

const running: Gateway[] = [];
const start = (...args: Parameters<typeof gatewayOver>): Gateway => {
  const gateway = gatewayOver(...args);
  running.push(gateway);
  return gateway;
};
/** Two that share a history, as two threads do. */
const pair = (history: HistoryStore = testHistory()): [Gateway, Gateway] => [start(history), start(history)];
afterEach(async () => {
  for (const gateway of running.splice(0)) {
    gateway.scopes.abortAll();
    await gateway.stop();
  }
});

const textOf = (body: ResponseBody): unknown =>
  (body.output as readonly { content?: readonly { text?: string }[] }[])
    .flatMap(({ content }) => content ?? [])
    .map(({ text }) => text)
    .join("");

describe("a response in the background", () => {
  test("is told at once, and found while it runs and when it is over", async () => {
    const gateway = start();
    const queued = await inBackground(gateway, { metadata: { a: "b" } });
    expect(queued).toMatchObject({ status: "queued", background: true, output: [], usage: null });
    const call = await engineCall(gateway);
    say(call, "Hello");
    expect(await until(gateway, queued.id, "in_progress")).toEqual({ ...queued, status: "in_progress" });
    say(call, " there");
    finish(call);
    const body = await until(gateway, queued.id, "completed");
    expect(textOf(body)).toBe("Hello there");
    expect(body).toMatchObject({ id: queued.id, created_at: queued.created_at, metadata: { a: "b" } });
    expect(gateway.scopes.size).toBe(0);
    expect(gateway.runs.get(queued.id)).toBeUndefined();
  });

  test("streams its events to the one who asked, queued among them", async () => {
    const gateway = start();
    const response = await post(gateway, { background: true, stream: true });
    const call = await engineCall(gateway);
    say(call, "<think>\nhm\n</think>\n\nHello");
    finish(call);
    const text = await response.text();
    const id = /"id":"(resp_[0-9a-f]+)"/.exec(text)![1]!;
    const events = await streamOf(gateway, id);
    expect(text.split("\n\n").filter((frame) => frame.startsWith("event: "))).toEqual(
      events.map((event) => `event: ${event.type}\ndata: ${JSON.stringify(event)}`),
    );
    expect(events.slice(0, 3).map(({ type }) => type)).toEqual([
      "response.created",
      "response.queued",
      "response.in_progress",
    ]);
    expect(checkEvents(events)).toEqual(await retrieved(gateway, id));
  });

  test("can be streamed again from any event on, also beyond the last", async () => {
    const gateway = start();
    const { id } = await inBackground(gateway, { stream: false });
    const call = await engineCall(gateway);
    say(call, "One two three");
    finish(call);
    await until(gateway, id, "completed");
    const all = await streamOf(gateway, id);
    expect(checkEvents(all).status).toBe("completed");
    for (let after = 0; after < all.length + 3; after++)
      expect(await streamOf(gateway, id, after)).toEqual(all.slice(after + 1));
  });

  test("goes on when its client leaves; another thread streams the rest", async () => {
    const [one, other] = pair();
    const gone = new AbortController();
    const response = await post(one, { background: true, stream: true }, { signal: gone.signal });
    const call = await engineCall(one);
    say(call, "Hello");
    const reader = response.body!.getReader();
    let read = "";
    while (!read.includes("Hello")) read += new TextDecoder().decode((await reader.read()).value);
    gone.abort();
    const id = /"id":"(resp_[0-9a-f]+)"/.exec(read)![1]!;
    const numbers = [...read.matchAll(/"sequence_number":(\d+)/g)].map(([, number]) => Number(number));
    const last = numbers.at(-1)!;
    const rest = streamOf(other, id, last);
    await Bun.sleep(100);
    say(call, " there");
    await Bun.sleep(100);
    finish(call);
    expect(call.cancelled).toBe(0);
    const events = await rest;
    expect(events[0]?.sequence_number).toBe(last + 1);
    expect(events.at(-1)?.type).toBe("response.completed");
    const all = await streamOf(one, id);
    expect(all.slice(last + 1)).toEqual(events);
    expect(textOf(checkEvents(all))).toBe("Hello there");
  });

  test("is cancelled, with what it has come to; a second cancel changes nothing", async () => {
    const gateway = start();
    const response = await post(gateway, { background: true, stream: true });
    const call = await engineCall(gateway);
    say(call, "Half of");
    const reader = response.body!.getReader();
    let read = "";
    while (!read.includes("Half")) read += new TextDecoder().decode((await reader.read()).value);
    const own = /"id":"(resp_[0-9a-f]+)"/.exec(read)![1]!;
    const body = await answered(await cancel(gateway, own));
    expect(body).toMatchObject({ id: own, status: "cancelled", error: null, incomplete_details: null });
    expect(body["output"]).toMatchObject([{ type: "message", status: "incomplete", content: [{ text: "Half of" }] }]);
    expect(call.cancelled).toBe(1);
    for (let part = await reader.read(); !part.done; part = await reader.read())
      read += new TextDecoder().decode(part.value);
    expect(read).toEndWith("data: [DONE]\n\n");
    expect(read).not.toMatch(/response\.(cancelled|failed|incomplete|completed)"/);
    expect(await answered(await cancel(gateway, own))).toEqual(body);
    expect(await retrieved(gateway, own)).toEqual(body as unknown as ResponseBody);
  });

  test("is cancelled from another thread, while the engine is silent", async () => {
    const [one, other] = pair();
    const { id } = await inBackground(one);
    const call = await engineCall(one);
    const body = await answered(await cancel(other, id));
    expect(body).toMatchObject({ status: "cancelled", output: [] });
    expect(call.cancelled).toBe(1);
    expect((await streamOf(other, id)).map(({ type }) => type)).toEqual([
      "response.created",
      "response.queued",
      "response.in_progress",
    ]);
  });

  test("fails with its engine: error and failed are told, with what there was", async () => {
    const gateway = start();
    const { id } = await inBackground(gateway);
    const call = await engineCall(gateway);
    say(call, "Half");
    call.end(new EngineError("unavailable", "the engine fell over"));
    const body = await until(gateway, id, "failed");
    expect(body["error"]).toMatchObject({ code: "server_error" });
    const events = await streamOf(gateway, id);
    expect(checkEvents(events)).toEqual(body);
    expect(events.slice(-2).map(({ type }) => type)).toEqual(["error", "response.failed"]);
    for (let after = events.length - 4; after < events.length + 2; after++)
      expect(await streamOf(gateway, id, after)).toEqual(events.slice(after + 1));
  });

  test("ends with the gateway, as failed", async () => {
    const [one, other] = pair();
    const { id } = await inBackground(one);
    say(await engineCall(one), "Half");
    await until(one, id, "in_progress");
    const streaming = streamOf(one, id);
    one.scopes.abortAll();
    await one.scopes.whenIdle();
    expect(await retrieved(other, id)).toMatchObject({ status: "failed", error: { code: "server_error" } });
    expect((await streaming).at(-1)?.type).toBe("response.failed");
  });

  test("has failed when nobody has updated it for half a minute, with the items of its log", async () => {
    const history = testHistory();
    const gateway = start(history);
    const { id } = await inBackground(gateway);
    const call = await engineCall(gateway);
    say(call, "<think>\nhm\n</think>\n\nHello");
    await until(gateway, id, "in_progress");
    const logged = async () =>
      (await history.readEvents("default", id, -1, { maxEvents: 99, maxBytes: 1e6 }))!.map(({ json }) => json);
    await soon(async () => (await logged()).some((json) => json.includes("output_item.done")), "the item is logged");
    const row = (await history.getResponse("default", id))!;
    const events = await logged();
    // the same as another process would have left it when it was killed
    const lost = id.replace(/.{8}$/, "00000000");
    const at = Date.now() - 31_000;
    await history.putResponse({ ...row, id: lost, body: row.body.replace(id, lost), itemIds: [], createdAt: at });
    await history.appendEvents(
      "default",
      lost,
      0,
      events.map((json) => json.replaceAll(id, lost)),
    );
    const streamed = await streamOf(gateway, lost);
    const body = await retrieved(gateway, lost);
    expect(body).toMatchObject({ status: "failed", error: { code: "server_error" } });
    expect(checkEvents(streamed)).toEqual(body);
    const { output } = body;
    expect(output.map(({ type, status: ended }) => [type, ended])).toEqual([
      ["reasoning", "completed"],
      ["message", "incomplete"],
    ]);
    expect(streamed.at(-1)).toMatchObject({ type: "response.failed", response: body });
    const cancelled = id.replace(/.{8}$/, "00000001");
    const other = { ...row, id: cancelled, body: row.body.replace(id, cancelled), itemIds: [], createdAt: at };
    await history.putResponse({ ...other, status: "canceling" });
    expect(await retrieved(gateway, cancelled)).toMatchObject({ status: "cancelled", error: null });
    expect((await retrieved(gateway, id)).status).toBe("in_progress");
  });

  test("is worked on no more when it was deleted", async () => {
    const [one, other] = pair();
    const { id } = await inBackground(one);
    const call = await engineCall(one);
    say(call, "Hello");
    expect(await answered(await get(other, id, { method: "DELETE" }))).toEqual({
      id,
      object: "response",
      deleted: true,
    });
    expect((await get(one, id)).status).toBe(404);
    await soon(() => one.scopes.size === 0, "the end of the request");
    expect([one.scopes.size, call.cancelled]).toEqual([0, 1]);
    const loud = one.logged.filter((line) => /"level":"(?:warn|error)"/.test(line));
    expect(loud).toEqual([]);
  });

  test("ends, and logs no more, when others have ended it", async () => {
    const [one, other] = pair();
    const { id } = await inBackground(one);
    const call = await engineCall(one);
    say(call, "Hello");
    await until(one, id, "in_progress");
    await endLost(other.history!, "default", id, LOST_RESPONSE);
    const told = await streamOf(other, id);
    say(call, " there");
    await soon(() => one.scopes.size === 0, "the end of the request");
    expect([one.scopes.size, call.cancelled]).toEqual([0, 1]);
    expect(await streamOf(one, id)).toEqual(told);
    expect(one.logged.filter((line) => /"level":"(?:warn|error)"/.test(line))).toEqual([]);
  });

  test("is gone on from when it is over; its conversation gets its items then", async () => {
    const gateway = start();
    const conversation = await answered(
      await fetch(`${gateway.url}/v1/conversations`, {
        method: "POST",
        body: "{}",
        headers: { "content-type": "application/json" },
      }),
    );
    const { id } = await inBackground(gateway, { conversation: conversation["id"] });
    const items = async () =>
      (await (await fetch(`${gateway.url}/v1/conversations/${conversation["id"]}/items?order=asc`)).json()) as {
        data: unknown[];
      };
    const call = await engineCall(gateway);
    const early = await post(gateway, { previous_response_id: id });
    expect((await answered(early, 400))["error"]).toMatchObject({
      code: "failed_precondition",
      param: "previous_response_id",
    });
    expect((await items()).data).toEqual([]);
    say(call, "Hello");
    finish(call);
    await until(gateway, id, "completed");
    expect((await items()).data).toMatchObject([{ role: "user" }, { role: "assistant", content: [{ text: "Hello" }] }]);
    const next = await inBackground(gateway, { previous_response_id: id, input: "And?" });
    finish(await engineCall(gateway, 1));
    await until(gateway, next.id, "completed");
  });

  test("is refused before it is stored where it could not run", async () => {
    const gateway = start();
    for (const [body, param] of [
      [{ store: false }, "background"],
      [{ input: [{ type: "message", role: "user", content: [{ type: "input_image" }] }] }, "input[0].content[0].type"],
    ] as const)
      expect((await answered(await post(gateway, { background: true, ...body }), 400))["error"]).toMatchObject({
        param,
      });
    expect((await answered(await post(gateway, { background: true, model: "no" }), 404))["error"]).toBeDefined();
    expect((await gateway.history!.listResponses("default", "response", { limit: 9, order: "asc" })).data).toEqual([]);
    const without = start(null);
    expect((await answered(await post(without, { background: true }), 400))["error"]).toMatchObject({
      param: "background",
    });
    expect(gateway.scopes.size + without.scopes.size).toBe(0);
  });
});

describe("a store that fails for a while", () => {
  const UNAVAILABLE = "The store of responses and conversations is unavailable";

  /** Calls of a method fail, `times` in all; `made`: after they were made, as when an answer is lost. */
  function failing(method: "appendEvents" | "updateResponse", times: number, made: boolean): HistoryStore {
    const history = testHistory();
    let left = times;
    const call = history[method] as (...args: unknown[]) => Promise<unknown>;
    return {
      ...history,
      async [method](...args: unknown[]) {
        const fails = left-- > 0;
        if (!fails || made) {
          const value = await call(...args);
          if (!fails) return value;
        }
        throw new HistoryUnavailableError(new Error("no answer"));
      },
    };
  }

  for (const made of [false, true])
    test(`events are stored once (${made ? "only the answer was lost" : "nothing was stored"})`, async () => {
      const gateway = start(failing("appendEvents", 2, made));
      const { id } = await inBackground(gateway);
      const call = await engineCall(gateway);
      say(call, "Hello there");
      finish(call);
      await until(gateway, id, "completed");
      expect(textOf(checkEvents(await streamOf(gateway, id)))).toBe("Hello there");
    });

  test("a run that cannot begin says that the history was away", async () => {
    const gateway = start(failing("updateResponse", 1, false));
    const { id } = await inBackground(gateway);
    expect(await until(gateway, id, "failed")).toMatchObject({ error: { message: UNAVAILABLE } });
  });

  test("a run that cannot store its events fails, and says so once the store is back", async () => {
    const gateway = start(failing("appendEvents", 6, false));
    const { id } = await inBackground(gateway);
    const call = await engineCall(gateway);
    say(call, "Hello there");
    const failed = () => until(gateway, id, "failed");
    // six tries take 6.2 s, and more where the machine is busy
    expect(await failed().catch(failed).catch(failed)).toMatchObject({
      error: { code: "server_error", message: UNAVAILABLE },
    });
    expect(call.cancelled).toBe(1);
  }, 20_000);
});
