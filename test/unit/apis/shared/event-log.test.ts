import { expect, test } from "bun:test";
import { EventLog, RunOverError, TooManyEventsError } from "../../../../src/apis/shared/event-log.ts";
import type { GatewayError } from "../../../../src/errors.ts";
import { localHistory } from "../../../../src/history/host.ts";
import { createMemory } from "../../../../src/history/memory.ts";
import type { HistoryStore, NewResponse } from "../../../../src/history/store.ts";
import { until } from "../../../support/until.ts";

const row: NewResponse = {
  tenant: "t",
  id: "resp_1",
  kind: "response",
  createdAt: 1,
  previousId: null,
  conversationId: null,
  model: null,
  safetyIdentifier: null,
  status: "in_progress",
  body: "{}",
  input: [],
  output: [],
  itemIds: [],
};

async function begin(): Promise<{ history: HistoryStore; log: EventLog; batches: number[]; reasons: GatewayError[] }> {
  const memory = localHistory(createMemory({ maxEntries: 10, maxBytes: 1 << 27 }));
  await memory.putResponse(row);
  const batches: number[] = [];
  const history: HistoryStore = {
    ...memory,
    appendEvents(tenant, id, first, events) {
      batches.push(events.length);
      return memory.appendEvents(tenant, id, first, events);
    },
  };
  const reasons: GatewayError[] = [];
  const log = new EventLog(history, { tenant: "t", id: "resp_1" }, (reason) => reasons.push(reason));
  return { history, log, batches, reasons };
}
const all = async (history: HistoryStore): Promise<string[]> =>
  ((await history.readEvents("t", "resp_1", -1, { maxEvents: 1e6, maxBytes: 1e9 })) ?? []).map(({ json }) => json);

test("events that come together are stored together, at once where there are many", async () => {
  const { history, log, batches } = await begin();
  let woken = 0;
  log.readers.add(() => {
    woken++;
  });
  for (let n = 0; n < 500; n++) log.append(`${n}`);
  await Bun.sleep(80); // timers fire in the order of their times, however late
  expect(batches).toEqual([500]);
  await until(() => woken > 0, "the reader is woken");
  expect(woken).toBe(1);
  log.append(`"${"x".repeat(70_000)}"`);
  log.append("501");
  // what comes while a batch is stored waits for that only, and for no timer: none can fire before these promises are through
  for (let i = 0; i < 1000 && batches.length < 3; i++) await Promise.resolve();
  expect(batches).toEqual([500, 1, 1]);
  await log.close();
  log.append("late");
  await Bun.sleep(80);
  const events = await all(history);
  expect([events.length, events.at(-1)]).toEqual([502, "501"]);
});

test("a run whose events take too much room is ended", async () => {
  const { log, reasons } = await begin();
  const event = `"${"x".repeat(1 << 20)}"`;
  for (let n = 0; n < 15; n++) log.append(event);
  expect(reasons).toEqual([]);
  log.append(event);
  log.append(event);
  expect(reasons[0]).toBeInstanceOf(TooManyEventsError);
  await log.close();
});

test.each(["deleted", "ended by others"])("a run that was %s ends, and logs no more", async (how) => {
  const { history, log, reasons } = await begin();
  log.append("1");
  await until(async () => (await all(history)).length > 0, "stored");
  if (how === "deleted") await history.deleteResponse("t", "resp_1");
  else await history.updateResponse({ tenant: "t", id: "resp_1", updatedAt: 2, status: "failed" });
  log.append("2");
  expect(await log.close().catch((error: unknown) => error)).toBeInstanceOf(RunOverError);
  expect(reasons[0]).toBeInstanceOf(RunOverError);
  expect(await all(history)).toEqual(how === "deleted" ? [] : ["1"]);
});
