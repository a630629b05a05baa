/** What every store does, on the real ones: the cases are the same, and so are the answers. */
import { afterAll, afterEach, describe, expect, test } from "bun:test";
import { HistoryConflictError, UnknownCursorError } from "../../../src/history/errors.ts";
import type { HistoryStore, PageRequest, StoredItem } from "../../../src/history/store.ts";
import { item, NOW, rejection, response } from "./samples.ts";
import { type Opened, storeKinds } from "./stores.ts";

const { kinds, stop } = storeKinds();
const opened: Opened[] = [];
afterEach(async () => {
  for (const one of opened.splice(0)) await one.close();
});
afterAll(stop);

const LIMITS = { maxTurns: 100, maxBytes: 1 << 20 };
const ids = (items: readonly { readonly id: string }[]): string[] => items.map(({ id }) => id);

for (const kind of kinds) {
  const check = kind.available ? test : test.skip;
  const open = async (count = 1): Promise<HistoryStore> => {
    const one = await kind.open(count);
    opened.push(one);
    return one.stores[0]!;
  };

  describe(kind.name, () => {
    check("gives back a response as it was put, text for text", async () => {
      const store = await open();
      const { itemIds, ...put } = response("resp_1", {
        tenant: "",
        previousId: "resp_0",
        conversationId: "conv_1",
        safetyIdentifier: "user \u{1f415} é",
        status: "incomplete",
      });
      expect(await store.putResponse({ ...put, itemIds })).toBe("stored");
      expect(await store.getResponse("", "resp_1")).toEqual(put);
      expect(await store.getResponse("", "resp_2")).toBeNull();
    });

    check("keeps an output that the body does not show", async () => {
      const store = await open();
      const secret = item("rs_1", "raw reasoning\u0000 with \n");
      const { itemIds: _, ...put } = response("resp_1", { output: [secret.json] });
      await store.putResponse({ ...put, itemIds: [secret.id] });
      expect(await store.getResponse("acme", "resp_1")).toEqual(put);
      const { itemIds: __, ...steps } = response("int_1", {
        kind: "interaction",
        body: '{"steps": [ {"type":"thought"} ]}',
      });
      await store.putResponse({ ...steps, output: ['{"type":"thought"}'], itemIds: [] });
      expect(await store.getResponse("acme", "int_1")).toEqual({ ...steps, output: ['{"type":"thought"}'] });
    });

    check("refuses a second response of an id, of the same tenant only", async () => {
      const store = await open();
      await store.putResponse(response("resp_1"));
      expect(await rejection(store.putResponse(response("resp_1", { body: "{}" })))).toBeInstanceOf(
        HistoryConflictError,
      );
      expect(await store.putResponse(response("resp_1", { tenant: "other", body: "{}" }))).toBe("stored");
      expect((await store.getResponse("acme", "resp_1"))?.body).toContain("output");
      expect((await store.getResponse("other", "resp_1"))?.body).toBe("{}");
    });

    check("hides everything from other tenants", async () => {
      const store = await open();
      await store.createConversation({ tenant: "acme", id: "conv_1", createdAt: NOW, metadata: "{}" }, [item("msg_c")]);
      await store.putResponse(response("resp_1", { status: "in_progress" }));
      await store.appendEvents("acme", "resp_1", 0, ["{}"]);
      const page: PageRequest = { limit: 10, order: "asc" };
      for (const tenant of ["", "other", "acme:", "ACME"]) {
        expect(await store.getResponse(tenant, "resp_1")).toBeNull();
        expect(await store.readChain(tenant, "resp_1", LIMITS)).toBeNull();
        expect(await store.listInputItems(tenant, "resp_1", page)).toBeNull();
        expect(await store.findItems(tenant, ["msg_c", "msg_in_resp_1"])).toEqual([]);
        expect((await store.listResponses(tenant, "response", page)).data).toEqual([]);
        expect(await store.readEvents(tenant, "resp_1", -1, { maxEvents: 9, maxBytes: 999 })).toBeNull();
        expect(await store.appendEvents(tenant, "resp_1", 1, ["{}"])).toBe(false);
        expect(await store.updateResponse({ tenant, id: "resp_1", updatedAt: NOW, status: "failed" })).toBe(
          "not_found",
        );
        expect(await store.deleteResponse(tenant, "resp_1")).toBe(false);
        expect(await store.getConversation(tenant, "conv_1")).toBeNull();
        expect(await store.updateConversation(tenant, "conv_1", "{}", NOW)).toBeNull();
        expect(await store.addItems(tenant, "conv_1", [item("msg_x")], NOW)).toBe(false);
        expect(await store.getItem(tenant, "conv_1", "msg_c")).toBeNull();
        expect(await store.listItems(tenant, "conv_1", page)).toBeNull();
        expect(await store.newestItems(tenant, "conv_1", { maxItems: 9, maxBytes: 999 })).toBeNull();
        expect(await store.removeItem(tenant, "conv_1", "msg_c")).toBe(false);
        expect(await store.deleteConversation(tenant, "conv_1")).toBe(false);
      }
      expect((await store.getResponse("acme", "resp_1"))?.status).toBe("in_progress");
      expect(ids((await store.listItems("acme", "conv_1", page))?.data ?? [])).toEqual(["msg_c"]);
    });

    check("reads a chain, oldest first, up to its limits", async () => {
      const store = await open();
      for (let n = 1; n <= 6; n++)
        await store.putResponse(response(`resp_${n}`, { previousId: n === 1 ? null : `resp_${n - 1}` }));
      const whole = await store.readChain("acme", "resp_6", LIMITS);
      expect(whole?.begin).toBe("first_turn");
      expect(ids(whole?.turns ?? [])).toEqual(["resp_1", "resp_2", "resp_3", "resp_4", "resp_5", "resp_6"]);
      expect(whole?.turns[0]?.input).toEqual(response("resp_1").input);
      expect(whole?.turns[0]?.output).toEqual(response("resp_1").output);
      const short = await store.readChain("acme", "resp_6", { ...LIMITS, maxTurns: 2 });
      expect([ids(short?.turns ?? []), short?.begin]).toEqual([["resp_5", "resp_6"], "max_turns"]);
      const { input, body } = response("resp_1");
      const size = `[${input[0]}]`.length + body.length;
      for (const [maxBytes, turns] of [
        [3 * size, 3],
        [3 * size - 1, 2],
        [1, 1],
      ] as const) {
        const light = await store.readChain("acme", "resp_6", { ...LIMITS, maxBytes });
        expect([light?.turns.length, light?.begin]).toEqual([turns, "max_bytes"]);
      }
      expect(await store.readChain("acme", "resp_7", LIMITS)).toBeNull();
    });

    check("ends a chain where a response was deleted; the rest goes on", async () => {
      const store = await open();
      for (let n = 1; n <= 4; n++)
        await store.putResponse(response(`resp_${n}`, { previousId: n === 1 ? null : `resp_${n - 1}` }));
      expect(await store.deleteResponse("acme", "resp_2")).toBe(true);
      expect(await store.deleteResponse("acme", "resp_2")).toBe(false);
      const chain = await store.readChain("acme", "resp_4", LIMITS);
      expect([ids(chain?.turns ?? []), chain?.begin]).toEqual([["resp_3", "resp_4"], "missing"]);
      expect((await store.readChain("acme", "resp_1", LIMITS))?.begin).toBe("first_turn");
      expect(await store.readChain("acme", "resp_2", LIMITS)).toBeNull();
      expect(await store.findItems("acme", ["msg_in_resp_2"])).toEqual([]);
    });

    check("survives a chain that is a circle", async () => {
      const store = await open();
      await store.putResponse(response("resp_1", { previousId: "resp_2" }));
      await store.putResponse(response("resp_2", { previousId: "resp_1" }));
      const chain = await store.readChain("acme", "resp_2", LIMITS);
      expect([ids(chain?.turns ?? []), chain?.begin]).toEqual([["resp_1", "resp_2"], "missing"]);
    });

    check("updates a response once: of a cancel and an end, the first one holds", async () => {
      const store = await open();
      await store.putResponse(response("resp_1", { status: "in_progress", body: "{}", output: [], itemIds: [] }));
      const result = { body: '{"output":[1]}', output: ["1"], itemIds: ["msg_in_resp_1"] };
      const end = { tenant: "acme", id: "resp_1", updatedAt: NOW + 5, ifStatus: ["queued", "in_progress"] };
      expect(await store.updateResponse({ ...end, ifStatus: ["queued"], status: "x" })).toBe("other_status");
      expect(await store.updateResponse({ ...end, ifStatus: [], status: "x" })).toBe("other_status");
      expect(await store.updateResponse({ ...end, status: "completed", result })).toBe("stored");
      expect(await store.updateResponse({ ...end, status: "cancelled" })).toBe("other_status");
      expect(await store.updateResponse({ ...end, id: "resp_2" })).toBe("not_found");
      const read = await store.getResponse("acme", "resp_1");
      expect([read?.status, read?.body, read?.output, read?.input.length]).toEqual([
        "completed",
        result.body,
        ["1"],
        1,
      ]);
      expect(ids(await store.findItems("acme", ["msg_in_resp_1"]))).toEqual(["msg_in_resp_1"]);
    });

    check("pages input items both ways", async () => {
      const store = await open();
      const items = Array.from({ length: 7 }, (_, n) => item(`msg_${n}`));
      await store.putResponse(response("resp_1", { input: items.map(({ json }) => json) }));
      await pages((page) => store.listInputItems("acme", "resp_1", page), ids(items));
    });

    check("lists responses of a kind by time, then id", async () => {
      const store = await open();
      for (const [id, at] of [
        ["b", 2],
        ["a", 2],
        ["d", 1],
        ["c", 3],
        ["e", 4],
        ["g", 5],
        ["f", 5],
      ] as const)
        await store.putResponse(response(id, { kind: "batch", createdAt: NOW + at }));
      await store.putResponse(response("z"));
      await pages((page) => store.listResponses("acme", "batch", page), ["d", "a", "b", "c", "e", "f", "g"]);
      const [first] = (await store.listResponses("acme", "batch", { limit: 1, order: "asc" })).data;
      expect(first).toEqual({ id: "d", createdAt: NOW + 1, status: "completed", body: response("d").body });
    });

    check("keeps conversations and their metadata", async () => {
      const store = await open();
      const made = { tenant: "acme", id: "conv_1", createdAt: NOW, metadata: '{"topic": "dogs"}' };
      await store.createConversation(made, []);
      expect(await store.getConversation("acme", "conv_1")).toEqual(made);
      expect(await rejection(store.createConversation(made, []))).toBeInstanceOf(HistoryConflictError);
      const changed = { ...made, metadata: '{"topic":"cats"}' };
      expect(await store.updateConversation("acme", "conv_1", changed.metadata, NOW + 1)).toEqual(changed);
      expect(await store.getConversation("acme", "conv_1")).toEqual(changed);
      expect(await store.updateConversation("acme", "conv_2", "{}", NOW)).toBeNull();
      expect(await store.deleteConversation("acme", "conv_1")).toBe(true);
      expect(await store.deleteConversation("acme", "conv_1")).toBe(false);
      expect(await store.getConversation("acme", "conv_1")).toBeNull();
    });

    check("keeps items in the order in which they came, whatever the clock says", async () => {
      const store = await open();
      await store.createConversation({ tenant: "acme", id: "conv_1", createdAt: NOW, metadata: "{}" }, [
        item("z"),
        item("y"),
      ]);
      expect(await store.addItems("acme", "conv_1", [item("m"), item("a")], NOW - 1000)).toBe(true);
      expect(await store.addItems("acme", "conv_1", [item("b"), item("y", "again"), item("k"), item("k")], NOW)).toBe(
        true,
      );
      expect(await store.addItems("acme", "conv_2", [item("b")], NOW)).toBe(false);
      await pages((page) => store.listItems("acme", "conv_1", page), ["z", "y", "m", "a", "b", "k"]);
      expect(await store.listItems("acme", "conv_2", { limit: 1, order: "asc" })).toBeNull();
      expect(await store.getItem("acme", "conv_1", "y")).toEqual(item("y"));
      expect(await store.getItem("acme", "conv_1", "q")).toBeNull();
    });

    check("gives the newest items of a long conversation", async () => {
      const store = await open();
      const items = Array.from({ length: 40 }, (_, n) => item(`msg_${n}`, "x".repeat(n)));
      await store.createConversation({ tenant: "acme", id: "conv_1", createdAt: NOW, metadata: "{}" }, items);
      const newest = (maxItems: number, maxBytes: number) =>
        store.newestItems("acme", "conv_1", { maxItems, maxBytes });
      expect(await newest(3, 1e9)).toEqual({ items: items.slice(37), more: true });
      expect(await newest(40, 1e9)).toEqual({ items, more: false });
      expect(await newest(41, 1e9)).toEqual({ items, more: false });
      const two = items[39]!.json.length + items[38]!.json.length;
      expect((await newest(9, two))?.items).toEqual(items.slice(38));
      expect(await newest(9, two - 1)).toEqual({ items: items.slice(39), more: true });
      expect(await newest(9, 1)).toEqual({ items: items.slice(39), more: true });
      await store.createConversation({ tenant: "acme", id: "conv_2", createdAt: NOW, metadata: "{}" }, []);
      expect(await store.newestItems("acme", "conv_2", { maxItems: 9, maxBytes: 9 })).toEqual({
        items: [],
        more: false,
      });
    });

    check("shares items by id between conversations and responses", async () => {
      const store = await open();
      const conversation = { tenant: "acme", createdAt: NOW, metadata: "{}" };
      await store.createConversation({ ...conversation, id: "conv_1" }, [item("msg_1", "first")]);
      await store.createConversation({ ...conversation, id: "conv_2" }, [item("msg_1", "second"), item("msg_2")]);
      expect(await store.getItem("acme", "conv_2", "msg_1")).toEqual(item("msg_1", "first"));
      await store.putResponse(response("resp_1", { input: [item("msg_2", "in a response").json], itemIds: ["msg_2"] }));
      const found = await store.findItems("acme", ["msg_1", "msg_2", "msg_3", "msg_1"]);
      expect(found.toSorted((a, b) => (a.id < b.id ? -1 : 1))).toEqual([item("msg_1", "first"), item("msg_2")]);
      expect(await store.removeItem("acme", "conv_2", "msg_1")).toBe(true);
      expect(await store.removeItem("acme", "conv_2", "msg_1")).toBe(false);
      expect(ids(await store.findItems("acme", ["msg_1"]))).toEqual(["msg_1"]);
      expect(await store.deleteConversation("acme", "conv_1")).toBe(true);
      expect(await store.findItems("acme", ["msg_1"])).toEqual([]);
      expect(await store.deleteConversation("acme", "conv_2")).toBe(true);
      expect(await store.findItems("acme", ["msg_2"])).toEqual([item("msg_2", "in a response")]);
    });

    check("puts a response and its conversation's items together", async () => {
      const store = await open();
      await store.createConversation({ tenant: "acme", id: "conv_1", createdAt: NOW, metadata: "{}" }, [item("msg_0")]);
      const conversationItems = [item("msg_1"), item("msg_2")];
      const one = response("resp_1", { conversationId: "conv_1", conversationItems });
      expect(await store.putResponse(one)).toBe("stored");
      expect(await rejection(store.putResponse({ ...one, conversationItems: [item("msg_9")] }))).toBeInstanceOf(
        HistoryConflictError,
      );
      const gone = response("resp_2", { conversationId: "conv_2", conversationItems });
      expect(await store.putResponse(gone)).toBe("no_conversation");
      expect(await store.getResponse("acme", "resp_2")).not.toBeNull();
      const update = { tenant: "acme", id: "resp_1", updatedAt: NOW, status: "completed" };
      expect(await store.updateResponse({ ...update, conversationItems: [item("msg_3")] })).toBe("stored");
      expect(await store.updateResponse({ ...update, id: "resp_2", conversationItems: [item("msg_3")] })).toBe(
        "no_conversation",
      );
      const listed = await store.listItems("acme", "conv_1", { limit: 9, order: "asc" });
      expect(ids(listed?.data ?? [])).toEqual(["msg_0", "msg_1", "msg_2", "msg_3"]);
      // items of a conversation stay when the response goes
      expect(await store.deleteResponse("acme", "resp_1")).toBe(true);
      expect(await store.getItem("acme", "conv_1", "msg_2")).toEqual(item("msg_2"));
    });

    check("keeps a log that others read while it is written", async () => {
      const one = await kind.open(2);
      opened.push(one);
      const [writer, reader] = one.stores as [HistoryStore, HistoryStore];
      await writer.putResponse(response("resp_1", { status: "in_progress" }));
      const all = { maxEvents: 1000, maxBytes: 1 << 20 };
      expect(await reader.readEvents("acme", "resp_1", -1, all)).toEqual([]);
      const events = Array.from({ length: 200 }, (_, n) => `{"sequence_number":${n},"delta":"é ${n}"}`);
      for (let at = 0; at < 200; at += 40)
        expect(await writer.appendEvents("acme", "resp_1", at, events.slice(at, at + 40))).toBe(true);
      const numbered = events.map((json, sequence) => ({ sequence, json }));
      expect(await reader.readEvents("acme", "resp_1", -1, all)).toEqual(numbered);
      expect(await reader.readEvents("acme", "resp_1", 57, all)).toEqual(numbered.slice(58));
      expect(await reader.readEvents("acme", "resp_1", 57, { ...all, maxEvents: 50 })).toEqual(numbered.slice(58, 108));
      expect(await reader.readEvents("acme", "resp_1", 199, all)).toEqual([]);
      const some = await reader.readEvents("acme", "resp_1", -1, { ...all, maxBytes: 100 });
      expect(some?.length).toBeGreaterThan(1);
      expect(some?.length).toBeLessThan(6);
      for (const first of [0, 40, 199, 201])
        expect(await rejection(writer.appendEvents("acme", "resp_1", first, ["{}"]))).toBeInstanceOf(
          HistoryConflictError,
        );
      expect(await writer.appendEvents("acme", "resp_1", 200, [])).toBe(true);
      // a cancel that is under way leaves the runner its last words; an end, whoever has made it, does not
      await reader.updateResponse({ tenant: "acme", id: "resp_1", updatedAt: NOW, status: "canceling" });
      expect(await writer.appendEvents("acme", "resp_1", 200, ["{}"])).toBe(true);
      await reader.updateResponse({ tenant: "acme", id: "resp_1", updatedAt: NOW, status: "failed" });
      for (const events of [["{}"], []]) expect(await writer.appendEvents("acme", "resp_1", 201, events)).toBe(false);
      expect(await reader.readEvents("acme", "resp_1", 200, all)).toEqual([]);
      expect(await writer.deleteResponse("acme", "resp_1")).toBe(true);
      expect(await reader.readEvents("acme", "resp_1", -1, all)).toBeNull();
      expect(await writer.appendEvents("acme", "resp_1", 200, ["{}"])).toBe(false);
      await writer.putResponse(response("resp_1"));
      expect(await reader.readEvents("acme", "resp_1", -1, all)).toEqual([]);
    });

    check("adds nothing to a log once the response has ended, of two who come at the same time", async () => {
      const one = await kind.open(2);
      opened.push(one);
      const [writer, other] = one.stores as [HistoryStore, HistoryStore];
      const all = { maxEvents: 1000, maxBytes: 1 << 20 };
      for (let n = 0; n < 40; n++) {
        const id = `resp_${n}`;
        await writer.putResponse(response(id, { status: "in_progress" }));
        const appends = (async () => {
          let at = 0;
          while (await writer.appendEvents("acme", id, at, ["{}"])) at++;
          return at;
        })();
        await Bun.sleep(n % 4);
        await other.updateResponse({ tenant: "acme", id, updatedAt: NOW, status: "failed" });
        const told = await other.readEvents("acme", id, -1, all);
        expect(await appends).toBe(told!.length);
      }
    });

    check("tells whose runner is gone", async () => {
      const store = await open();
      const statuses = ["queued", "in_progress", "completed", "canceling", "in_progress"];
      for (const [n, status] of statuses.entries())
        await store.putResponse(response(`resp_${n}`, { tenant: `t${n}`, status, createdAt: NOW + n }));
      await store.updateResponse({ tenant: "t4", id: "resp_4", updatedAt: NOW + 5000 });
      await store.updateResponse({ tenant: "t0", id: "resp_0", updatedAt: NOW + 20, status: "in_progress" });
      expect(ids(await store.listUnfinished(NOW + 1000, 10))).toEqual(["resp_1", "resp_3", "resp_0"]);
      expect(await store.listUnfinished(NOW + 1000, 1)).toEqual([
        { tenant: "t1", id: "resp_1", kind: "response", status: "in_progress", updatedAt: NOW + 1 },
      ]);
      expect(await store.getState("t1", "resp_1")).toEqual({ status: "in_progress", updatedAt: NOW + 1 });
      expect(await store.getState("other", "resp_1")).toBeNull();
      await store.updateResponse({ tenant: "t1", id: "resp_1", updatedAt: NOW + 2 });
      expect(await store.getState("t1", "resp_1")).toEqual({ status: "in_progress", updatedAt: NOW + 2 });
      await store.updateResponse({ tenant: "t1", id: "resp_1", updatedAt: NOW, status: "failed" });
      expect(await store.getState("t1", "resp_1")).toEqual({ status: "failed", updatedAt: null });
      await store.deleteResponse("t3", "resp_3");
      expect(await store.getState("t3", "resp_3")).toBeNull();
      expect(ids(await store.listUnfinished(NOW + 1000, 10))).toEqual(["resp_0"]);
    });

    check("removes what is too old, a bounded number at a time", async () => {
      const store = await open();
      for (let n = 0; n < 10; n++) {
        await store.putResponse(response(`resp_${n}`, { tenant: `t${n % 2}`, createdAt: NOW + n, status: "queued" }));
        await store.appendEvents(`t${n % 2}`, `resp_${n}`, 0, ["{}"]);
        await store.createConversation({ tenant: "acme", id: `conv_${n}`, createdAt: NOW + n, metadata: "{}" }, [
          item(`msg_${n}`),
          item("msg_all"),
        ]);
      }
      // one is in use
      await store.addItems("acme", "conv_1", [item("msg_new")], NOW + 50);
      let calls = 0;
      for (let removed = -1; removed !== 0; calls++) {
        removed = await store.removeExpired(NOW + 5, 3);
        expect(removed).toBeLessThanOrEqual(6);
      }
      expect(calls).toBeGreaterThan(3);
      const kept = async (n: number) => [
        (await store.getResponse(`t${n % 2}`, `resp_${n}`)) !== null,
        (await store.getConversation("acme", `conv_${n}`)) !== null,
        (await store.findItems("acme", [`msg_${n}`])).length === 1,
      ];
      expect(await kept(4)).toEqual([false, false, false]);
      expect(await kept(5)).toEqual([true, true, true]);
      expect(await kept(1)).toEqual([false, true, true]);
      expect(ids(await store.findItems("acme", ["msg_all"]))).toEqual(["msg_all"]);
      expect((await store.listUnfinished(NOW + 100, 99)).length).toBe(5);
    });

    check("finds nothing by ids that cannot be, and no id reaches into another's keys", async () => {
      const store = await open();
      await store.createConversation({ tenant: "acme", id: "conv_1", createdAt: NOW, metadata: "{}" }, [item("a")]);
      await store.putResponse(response("resp_1", { status: "in_progress" }));
      await store.appendEvents("acme", "resp_1", 0, ["{}"]);
      const strange = [
        "",
        "\0",
        "a\nb",
        "x".repeat(5000),
        "\ud800",
        "conv_1:items",
        "resp_1:events",
        "resp_1:items",
        "*",
        "%",
        "' OR 1=1 --",
        "conv%5F1",
      ];
      for (const id of strange) {
        expect(await store.getResponse("acme", id)).toBeNull();
        expect(await store.getConversation("acme", id)).toBeNull();
        expect(await store.getItem("acme", "conv_1", id)).toBeNull();
        expect(await store.findItems("acme", [id])).toEqual([]);
        expect(await store.deleteResponse("acme", id)).toBe(false);
        expect(await store.getResponse(id === "" ? "\0" : id, "resp_1")).toBeNull();
        expect(
          await rejection(store.listItems("acme", "conv_1", { limit: 1, order: "asc", after: id })),
        ).toBeInstanceOf(UnknownCursorError);
      }
      for (const id of ["conv_1:items", "' OR 1=1 --", "a/b c?é", "{x}", "\u{1f415}"]) {
        await store.createConversation({ tenant: id, id, createdAt: NOW, metadata: "{}" }, [item(id)]);
        expect(await store.getItem(id, id, id)).toEqual(item(id));
      }
    });

    check("serves many writers at once", async () => {
      const one = await kind.open(3);
      opened.push(one);
      await one.stores[0]!.createConversation({ tenant: "acme", id: "conv_1", createdAt: NOW, metadata: "{}" }, []);
      const writes = Array.from({ length: 150 }, async (_, n) => {
        const store = one.stores[n % 3]!;
        const added = response(`resp_${n}`, {
          conversationId: "conv_1",
          conversationItems: [item(`a${n}`), item(`b${n}`)],
        });
        expect(await store.putResponse(added)).toBe("stored");
        expect(await one.stores[(n + 1) % 3]!.getResponse("acme", `resp_${n}`)).not.toBeNull();
      });
      await Promise.all(writes);
      const listed = await one.stores[1]!.listItems("acme", "conv_1", { limit: 1000, order: "asc" });
      const order = ids(listed?.data ?? []);
      expect(new Set(order).size).toBe(300);
      for (let n = 0; n < 150; n++) expect(order.indexOf(`b${n}`)).toBe(order.indexOf(`a${n}`) + 1);
      // of writers of one id, one wins
      const same = one.stores.map((store) => store.putResponse(response("resp_same")));
      const outcomes = await Promise.allSettled(same);
      expect(outcomes.filter(({ status }) => status === "fulfilled").length).toBe(1);
    });
  });
}

/** All ways to page a list that is `all` in ascending order. */
async function pages(
  list: (
    page: PageRequest,
  ) => Promise<{ readonly data: readonly Pick<StoredItem, "id">[]; readonly hasMore: boolean } | null>,
  all: readonly string[],
): Promise<void> {
  for (const order of ["asc", "desc"] as const) {
    const expected = order === "asc" ? all : all.toReversed();
    for (const limit of [1, 2, 3, all.length, all.length + 1]) {
      const read: string[] = [];
      for (let more = true; more; ) {
        const after = read.at(-1);
        const page = await list({ limit, order, ...(after !== undefined && { after }) });
        read.push(...ids(page?.data ?? []));
        more = page?.hasMore === true;
        expect(more).toBe(read.length < expected.length);
      }
      expect(read).toEqual([...expected]);
      for (const [index, before] of expected.entries()) {
        const page = await list({ limit, order, before });
        expect(ids(page?.data ?? [])).toEqual(expected.slice(Math.max(0, index - limit), index));
        expect(page?.hasMore).toBe(index > limit);
      }
      const [after, before] = [expected[0]!, expected.at(-1)!];
      expect(ids((await list({ limit, order, after, before }))?.data ?? [])).toEqual(
        expected.slice(1, -1).slice(0, limit),
      );
    }
    expect(await rejection(list({ limit: 1, order, after: "nothing" }))).toMatchObject({ param: "after" });
    expect(await rejection(list({ limit: 1, order, before: "nothing" }))).toMatchObject({ param: "before" });
  }
}
