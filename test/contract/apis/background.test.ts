/** Work in the background over every store: two gateways share it, as threads, processes or machines do. */
import { afterAll, afterEach, describe, expect, test } from "bun:test";
import type { HistoryStore } from "../../../src/history/store.ts";
import { watchLostRuns } from "../../../src/server/lost-runs.ts";
import { createLogger } from "../../../src/telemetry/log.ts";
import { checkEvents } from "../../support/schemas/responses-order.ts";
import { answered } from "../../unit/apis/responses/http.ts";
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
} from "../../unit/apis/responses-store/support.ts";
import type { Gateway } from "../../unit/server/gateway.ts";
import { type Opened, storeKinds } from "../history/stores.ts";

const { kinds, stop } = storeKinds();
afterAll(stop);
const opened: Opened[] = [];
const gateways: Gateway[] = [];
afterEach(async () => {
  for (const gateway of gateways.splice(0)) {
    gateway.scopes.abortAll();
    await gateway.stop();
  }
  for (const one of opened.splice(0)) await one.close();
});

for (const kind of kinds) {
  const check = kind.available ? test : test.skip;
  const pair = async (): Promise<[Gateway, Gateway, HistoryStore]> => {
    const made = await kind.open(3);
    opened.push(made);
    const [one, other] = [gatewayOver(made.stores[0]!), gatewayOver(made.stores[1]!)];
    gateways.push(one, other);
    return [one, other, made.stores[2]!];
  };

  describe(kind.name, () => {
    check("events are followed from elsewhere, and the result is found there", async () => {
      const [one, other] = await pair();
      const { id } = await inBackground(one, { input: "été \u{1f415}" });
      const following = [streamOf(one, id), streamOf(other, id)];
      const call = await engineCall(one);
      for (const word of ["naïve ", "日本 ", "\u{1f415} ", "done"]) {
        say(call, word);
        await Bun.sleep(60);
      }
      finish(call);
      const [here, there] = await Promise.all(following);
      expect(there).toEqual(here!);
      expect(checkEvents(there!)).toEqual(await until(other, id, "completed"));
      for (const after of [0, 3, there!.length - 2, there!.length - 1])
        expect(await streamOf(other, id, after)).toEqual(there!.slice(after + 1));
    });

    check("a cancel from elsewhere ends it, with what there was", async () => {
      const [one, other] = await pair();
      const { id } = await inBackground(one);
      const call = await engineCall(one);
      say(call, "Half");
      await until(other, id, "in_progress");
      const body = await answered(await cancel(other, id));
      expect(body).toMatchObject({ status: "cancelled", output: [{ content: [{ text: "Half" }] }] });
      expect(call.cancelled).toBe(1);
    });

    check("a deletion from elsewhere ends it", async () => {
      const [one, other] = await pair();
      const { id } = await inBackground(one);
      const call = await engineCall(one);
      await answered(await get(other, id, { method: "DELETE" }));
      for (let i = 0; call.cancelled === 0 && i < 200; i++) await Bun.sleep(10);
      expect(call.cancelled).toBe(1);
      expect((await get(one, id)).status).toBe(404);
    });

    check("what has lost its server is ended, though nobody asks", async () => {
      const [one, other, history] = await pair();
      const { id } = await inBackground(one);
      await engineCall(one);
      await until(one, id, "in_progress");
      const row = (await history.getResponse("default", id))!;
      const lost = id.replace(/.{4}$/, "0000");
      await history.putResponse({
        ...row,
        id: lost,
        body: row.body.replace(id, lost),
        itemIds: [],
        createdAt: Date.now() - 31_000,
      });
      const stopWatch = watchLostRuns(
        { history, log: createLogger({ level: "debug", json: true, write() {} }) },
        { isSet: true },
        20,
      );
      try {
        for (let i = 0; (await history.getState("default", lost))?.status !== "failed"; i++) {
          if (i === 300) throw new Error("nobody has ended it");
          await Bun.sleep(10);
        }
      } finally {
        stopWatch();
      }
      expect(await retrieved(other, lost)).toMatchObject({
        id: lost,
        status: "failed",
        error: { code: "server_error" },
      });
      expect((await history.getState("default", id))?.status).toBe("in_progress");
    });
  });
}
