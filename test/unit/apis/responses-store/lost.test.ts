/** Responses whose server has gone, after any of their events: others tell how they ended, with what there was. */
import { afterAll, expect, test } from "bun:test";
import { LOST_RESPONSE } from "../../../../src/apis/responses-store/logged.ts";
import { endLost } from "../../../../src/apis/shared/lost-run.ts";
import type { HistoryStore } from "../../../../src/history/store.ts";
import { testHistory } from "../../../support/kept.ts";
import type { ResponseBody } from "../../../support/schemas/responses.ts";
import { checkEvents } from "../../../support/schemas/responses-order.ts";
import { engineCall, finish, gatewayOver, inBackground, retrieved, say, streamOf, until } from "./support.ts";

const history = testHistory();
const gateway = gatewayOver(history);
afterAll(() => gateway.stop());

const all = { maxEvents: 1000, maxBytes: 1 << 24 };
const logOf = async (id: string): Promise<string[]> =>
  (await history.readEvents("default", id, -1, all))!.map(({ json }) => json);
const FUNCTION = { type: "function", name: "f", parameters: { type: "object", properties: { x: { type: "string" } } } };
const LOST = "The server that worked on it has gone away, or could not reach the store of responses";
let calls = 0;

/** A run to its end: its queued object and its log. */
async function whole(body: object, pieces: readonly string[]): Promise<{ queued: ResponseBody; log: string[] }> {
  const queued = await inBackground(gateway, body);
  const call = await engineCall(gateway, calls++);
  for (const piece of pieces) say(call, piece);
  finish(call);
  await until(gateway, queued.id, "completed");
  return { queued, log: await logOf(queued.id) };
}

/** The same as another process would have left it when it was killed. */
async function left(queued: ResponseBody, log: readonly string[], n: number, status = "in_progress"): Promise<string> {
  const row = (await history.getResponse("default", queued.id))!;
  const id = queued.id.replace(/.{8}$/, String(n).padStart(8, "0"));
  const body = JSON.stringify(queued).replace(queued.id, id);
  const createdAt = Date.now() - 31_000;
  await history.putResponse({ ...row, id, body, status, output: [], itemIds: [], createdAt });
  await history.appendEvents(
    "default",
    id,
    0,
    log.map((json) => json.replaceAll(queued.id, id)),
  );
  return id;
}

const THOUGHT = ["<think>\n", "hm", ", so", "\n</think>\n\n"];
const CALL = ["<tool_call>\n", '{"name": "f", "arguments": {"x": "a', 'b"}}', "\n</tool_call>"];
test.each([
  ["reasoning and text", {}, [...THOUGHT, "Hel", "lo"]],
  ["a summary and text", { reasoning: { summary: "auto" } }, [...THOUGHT, "Hel", "lo"]],
  ["text with logprobs", { include: ["message.output_text.logprobs"], top_logprobs: 1 }, ["Hel", "lo"]],
  ["text and a call", { tools: [FUNCTION] }, ["Well", ...CALL]],
  ["a custom call", { tools: [{ type: "custom", name: "f" }] }, CALL],
])("%s: the events are in order, and the object has what was told", async (_, body, pieces) => {
  const { queued, log } = await whole(body, pieces);
  expect(log.length).toBeGreaterThan(6);
  for (let n = 0; n <= log.length; n++) {
    const id = await left(queued, log.slice(0, n), n);
    const events = await streamOf(gateway, id);
    const told = checkEvents(events);
    expect(events.slice(0, n) as unknown[]).toEqual(
      log.slice(0, n).map((json) => JSON.parse(json.replaceAll(queued.id, id)) as unknown),
    );
    expect(told).toEqual(await retrieved(gateway, id));
    expect(told).toMatchObject({ status: "failed", error: { code: "server_error", message: LOST } });
    const isOpen = n > 3 && n < log.length && !log[n - 1]!.includes("output_item.done");
    expect(told.output.at(-1)?.status === "incomplete").toBe(isOpen);
    for (let after = Math.max(n - 2, 0); after < events.length; after++)
      expect(await streamOf(gateway, id, after)).toEqual(events.slice(after + 1));
  }
});

test("a cancel keeps the same, and its stream closes the item", async () => {
  const { queued, log } = await whole({}, ["Hel", "lo"]);
  const id = await left(queued, log.slice(0, 6), 1, "canceling");
  const events = await streamOf(gateway, id);
  expect(events.at(-1)?.type).toBe("response.output_item.done");
  const { status, output } = await retrieved(gateway, id);
  expect([status, output.map((item) => item.status)]).toEqual(["cancelled", ["incomplete"]]);
  expect(events.at(-1)?.item).toEqual(output[0]!);
});

test("what a slow runner logs before the row has its end is in the output", async () => {
  const { queued, log } = await whole({}, ["Hel", "lo"]);
  const id = await left(queued, log.slice(0, 6), 2);
  let late = true;
  const racing: HistoryStore = {
    ...history,
    async updateResponse(update) {
      if (late) {
        late = false;
        const rest = log.slice(6).map((json) => json.replaceAll(queued.id, id));
        expect(await history.appendEvents("default", id, 6, rest)).toBe(true);
      }
      return history.updateResponse(update);
    },
  };
  await endLost(racing, "default", id, LOST_RESPONSE);
  expect(checkEvents(await streamOf(gateway, id))).toMatchObject({ output: [{ content: [{ text: "Hello" }] }] });
});
