import { describe, expect, test } from "bun:test";
import { checkedHistory } from "../../../src/history/checked.ts";
import { HistoryConflictError, HistoryUnavailableError } from "../../../src/history/errors.ts";
import { type Call, localHistory, remoteHistory, serveHistory, storeOf } from "../../../src/history/host.ts";
import { createMemory } from "../../../src/history/memory.ts";
import { item, NOW, rejection, response } from "../../contract/history/samples.ts";

function counting() {
  const memory = createMemory({ maxEntries: 1000, maxBytes: 1e9 });
  const turns: number[] = [];
  const store = {
    ...memory,
    execute(calls: readonly Call[]) {
      turns.push(calls.length);
      return memory.execute(calls);
    },
  };
  const host = serveHistory(store);
  const connect = () => {
    const { port1, port2 } = new MessageChannel();
    host.serve(port1);
    return remoteHistory(port2);
  };
  return { turns, connect };
}

describe("a store behind ports", () => {
  test("executes what comes together together, of all ports", async () => {
    const { turns, connect } = counting();
    const [one, two] = [connect(), connect()];
    await Promise.all(Array.from({ length: 100 }, (_, n) => (n % 2 === 0 ? one : two).putResponse(response(`r${n}`))));
    expect(turns.reduce((sum, calls) => sum + calls, 0)).toBe(100);
    expect(turns.length).toBeLessThanOrEqual(2);
    expect((await two.getResponse("acme", "r0"))?.id).toBe("r0");
    await one.close();
    await two.close();
  });

  test("answers each call for itself", async () => {
    const { connect } = counting();
    const store = connect();
    const outcomes = await Promise.allSettled(["a", "b", "a", "c"].map((id) => store.putResponse(response(id))));
    expect(outcomes.map(({ status }) => status)).toEqual(["fulfilled", "fulfilled", "rejected", "fulfilled"]);
    expect(await rejection(store.putResponse(response("b")))).toBeInstanceOf(HistoryConflictError);
    await store.close();
  });

  test("keeps no more than so many calls waiting, and lets none wait for ever", async () => {
    const { port1, port2 } = new MessageChannel();
    // nobody listens on the other port
    const store = remoteHistory(port2);
    const calls = Array.from({ length: 10_001 }, () => store.getResponse("", "r"));
    expect(await rejection(calls[10_000]!)).toBeInstanceOf(HistoryUnavailableError);
    const first = rejection(calls[0]!);
    await store.close();
    expect(await first).toBeInstanceOf(HistoryUnavailableError);
    expect(await rejection(store.getResponse("", "r"))).toBeInstanceOf(HistoryUnavailableError);
    await Promise.allSettled(calls);
    port1.close();
  });
});

describe("a checked store", () => {
  test("is unavailable when no answer comes in time", async () => {
    const silent = storeOf(
      () => new Promise(() => {}),
      async () => {},
    );
    const start = performance.now();
    expect(await rejection(checkedHistory(silent, 50).getResponse("", "r"))).toBeInstanceOf(HistoryUnavailableError);
    expect(performance.now() - start).toBeLessThan(5000);
  });

  test("passes numbers in bounds, and only ids that can be there", async () => {
    const seen: unknown[] = [];
    const store = checkedHistory(
      storeOf(
        async (method, args) => void seen.push([method, ...args]),
        async () => {},
      ),
      1000,
    );
    await store.findItems("", ["a", "\0", "", "b"]);
    await store.listItems("", "c", { limit: 1e9, order: "asc", after: "\0" });
    await store.readEvents("", "r", -7.5, { maxEvents: 0, maxBytes: Number.POSITIVE_INFINITY });
    expect(seen).toEqual([
      ["findItems", "", ["a", "b"]],
      ["listItems", "", "c", { limit: 1000, order: "asc", after: "-".repeat(513) }],
      ["readEvents", "", "r", -1, { maxEvents: 1, maxBytes: Number.MAX_SAFE_INTEGER }],
    ]);
    seen.length = 0;
    expect(await store.findItems("\0", ["a"])).toEqual([]);
    expect(await store.updateResponse({ tenant: "", id: "\0", updatedAt: 1 })).toBe("not_found");
    for (const id of ["", "\n", "x".repeat(513), "\ud800"]) {
      expect(await rejection(store.putResponse(response(id)))).toBeInstanceOf(TypeError);
      expect(await rejection(store.addItems("", "c", [item(id)], NOW))).toBeInstanceOf(TypeError);
    }
    expect(await rejection(store.appendEvents("", "r", 0, ["{\n}"]))).toBeInstanceOf(TypeError);
    expect(seen).toEqual([]);
  });
});

describe("the store in memory", () => {
  test("drops the oldest when it has too many", async () => {
    const store = localHistory(createMemory({ maxEntries: 3, maxBytes: 1e9 }));
    await store.createConversation({ tenant: "", id: "c", createdAt: NOW, metadata: "{}" }, [item("m")]);
    for (let n = 1; n <= 4; n++) await store.putResponse(response(`r${n}`, { createdAt: NOW + n }));
    expect(await store.getConversation("", "c")).toBeNull();
    expect(await store.findItems("", ["m"])).toEqual([]);
    expect(await store.getResponse("acme", "r1")).toBeNull();
    expect(await store.getResponse("acme", "r2")).not.toBeNull();
  });

  test("drops the oldest when it has too much, logs and items counted", async () => {
    const store = localHistory(createMemory({ maxEntries: 1000, maxBytes: 100_000 }));
    for (let n = 0; n < 10; n++)
      await store.putResponse(response(`r${n}`, { createdAt: NOW + n, status: "in_progress" }));
    for (let n = 0; n < 34; n++) await store.appendEvents("acme", "r9", n, [JSON.stringify("x".repeat(1400))]);
    expect(await store.getResponse("acme", "r8")).not.toBeNull();
    expect(await store.getResponse("acme", "r3")).toBeNull();
    await store.createConversation({ tenant: "", id: "c", createdAt: NOW + 99, metadata: "{}" }, [
      item("m", "y".repeat(40_000)),
    ]);
    expect(await store.getResponse("acme", "r9")).toBeNull();
    expect(await store.getItem("", "c", "m")).not.toBeNull();
  });
});
