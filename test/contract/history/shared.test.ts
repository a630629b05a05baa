/** Several processes and programs on one store: starts at the same time, versions, SMG's databases, servers that go away. */
import { Database } from "bun:sqlite";
import { afterAll, describe, expect, test } from "bun:test";
import { mkdtempSync, rmSync, statSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { HistorySetupError, HistoryUnavailableError } from "../../../src/history/errors.ts";
import { openHistory, startHistoryThread } from "../../../src/history/open.ts";
import type { HistoryStore } from "../../../src/history/store.ts";
import { item, NOW, rejection, response } from "./samples.ts";
import { hasPostgres, hasRedis, ownPostgres, ownRedis, type Server, startPostgres, startRedis } from "./servers.ts";
import { ownSchema, threadEntry } from "./stores.ts";

const started: Server[] = [];
const cache = new Map<string, Promise<Server>>();
const serverOf = (name: "postgres" | "redis"): Promise<Server> => {
  const running = cache.get(name) ?? (name === "postgres" ? startPostgres() : startRedis());
  cache.set(name, running);
  void running.then((server) => started.push(server));
  return running;
};
afterAll(async () => {
  for (const server of new Set(started)) await server.stop();
});

const folder = (): string => mkdtempSync(join(tmpdir(), "collie-history-"));
async function openFile(path: string): Promise<{ store: HistoryStore; close(): Promise<void> }> {
  const url = `sqlite://${path}`;
  const thread = (await startHistoryThread({ url }, threadEntry, (message) => console.error(message)))!;
  const store = (await openHistory({ url }, thread.connect()))!;
  return { store, close: () => store.close().then(() => thread.close()) };
}
const all = { maxEvents: 99, maxBytes: 1e6 };

describe("sqlite", () => {
  test("is made by several that start at once, who then read each other's logs", async () => {
    const at = folder();
    const opened = await Promise.all(Array.from({ length: 5 }, () => openFile(join(at, "history.db"))));
    await opened[0]!.store.putResponse(response("resp_1", { status: "in_progress" }));
    for (const [index, { store }] of opened.entries()) {
      expect((await store.getResponse("acme", "resp_1"))?.status).toBe("in_progress");
      expect(await store.appendEvents("acme", "resp_1", index, [`{"n":${index}}`])).toBe(true);
      const next = opened[(index + 1) % opened.length]!.store;
      expect((await next.readEvents("acme", "resp_1", -1, all))?.length).toBe(index + 1);
    }
    for (const { close } of opened) await close();
    rmSync(at, { recursive: true });
  });

  test("has a write-ahead log, and is for its owner only", async () => {
    const at = folder();
    const { store, close } = await openFile(join(at, "history.db"));
    await store.putResponse(response("resp_1"));
    for (const name of ["history.db", "history.db-wal"]) expect(statSync(join(at, name)).mode & 0o777).toBe(0o600);
    await close();
    const database = new Database(join(at, "history.db"));
    expect(database.query("PRAGMA journal_mode").get()).toEqual({ journal_mode: "wal" });
    database.close();
    rmSync(at, { recursive: true });
  });

  test("of a newer program is refused, and so is what is no database", async () => {
    const at = folder();
    const { close } = await openFile(join(at, "history.db"));
    await close();
    const database = new Database(join(at, "history.db"));
    database.run("INSERT INTO history_migrations VALUES (99)");
    database.close();
    expect(String(await rejection(openFile(join(at, "history.db"))))).toContain("newer program");
    await Bun.write(join(at, "text.db"), "just a text, long enough to be looked at".repeat(100));
    for (const path of ["text.db", "none/history.db"])
      expect(await rejection(openFile(join(at, path)))).toBeInstanceOf(HistorySetupError);
    rmSync(at, { recursive: true });
  });
});

describe("postgres", () => {
  const check = hasPostgres ? test : test.skip;

  check("is made by several that start at once; a newer program's is refused", async () => {
    const { url } = await serverOf("postgres");
    const schema = ownSchema();
    const stores = await Promise.all(Array.from({ length: 6 }, () => openHistory({ url, schema })));
    await stores[0]!.putResponse(response("resp_1"));
    expect(await stores[5]!.getResponse("acme", "resp_1")).not.toBeNull();
    const sql = new Bun.SQL(url, { max: 1 });
    await sql.unsafe(`INSERT INTO "${schema.history_migrations!.table}" VALUES (99)`);
    await sql.close();
    expect(String(await rejection(openHistory({ url, schema })))).toContain("newer program");
    for (const store of stores) await store!.close();
  });

  // the DDL of SMG 1.9's data_connector, here with names that its --schema-config would give
  check("takes over a database of SMG, with renamed tables and columns", async () => {
    const { url } = await serverOf("postgres");
    const sql = new Bun.SQL(url, { max: 1 });
    await sql.unsafe(`CREATE SCHEMA smg`);
    await sql.unsafe(`CREATE TABLE smg."Answers" (id VARCHAR(64) PRIMARY KEY, conversation_id VARCHAR(64), previous_response_id VARCHAR(64),
      input JSON, created_at TIMESTAMPTZ, safety_identifier VARCHAR(128), model_name VARCHAR(128), raw_response JSON)`);
    await sql.unsafe(
      `CREATE TABLE smg."conversations" (id VARCHAR(64) PRIMARY KEY, created_at TIMESTAMPTZ, metadata JSON)`,
    );
    await sql.unsafe(`CREATE TABLE smg."conversation_items" (id VARCHAR(64) PRIMARY KEY, response_id VARCHAR(64), item_type VARCHAR(32) NOT NULL,
      role VARCHAR(32), content JSON, status VARCHAR(32), created_at TIMESTAMPTZ)`);
    await sql.unsafe(`CREATE TABLE smg."conversation_item_links" (conversation_id VARCHAR(64), item_id VARCHAR(64) NOT NULL, added_at TIMESTAMPTZ,
      CONSTRAINT pk_conv_item_link PRIMARY KEY (conversation_id, item_id))`);
    const at = "'2026-11-30T12:00:00.123456Z'";
    await sql.unsafe(`INSERT INTO smg."Answers" VALUES
      ('resp_1', NULL, NULL, '[{"id":"msg_1","type":"message"}]', ${at}, NULL, 'qwen3', '{"id":"resp_1","output":[{"id":"msg_2","type":"message"}]}'),
      ('resp_2', 'conv_1', 'resp_1', '[]', ${at}, 'u', NULL, '{"output":[]}')`);
    await sql.unsafe(`INSERT INTO smg."conversations" VALUES ('conv_1', ${at}, NULL)`);
    await sql.unsafe(`INSERT INTO smg."conversation_items" VALUES
      ('msg_3', NULL, 'message', 'user', '[{"type":"input_text","text":"hi"}]', 'completed', ${at}),
      ('msg_4', 'resp_2', 'message', 'assistant', '{"content": [], "phase": "final"}', 'completed', ${at}),
      ('fc_1', 'resp_2', 'function_call', NULL, '{"id":"fc_1","type":"function_call","name":"f","arguments":"{}"}', 'completed', ${at})`);
    await sql.unsafe(
      `INSERT INTO smg."conversation_item_links" VALUES ('conv_1', 'msg_3', ${at}), ('conv_1', 'msg_4', ${at}), ('conv_1', 'fc_1', ${at})`,
    );
    await sql.close();

    const schema = {
      owner: "smg",
      auto_migrate: false,
      responses: { table: "Answers", columns: { model: "MODEL_NAME" }, skip_columns: [] },
    };
    const store = (await openHistory({ url, schema }))!;
    const chain = await store.readChain("", "resp_2", { maxTurns: 9, maxBytes: 1e6 });
    expect(chain?.begin).toBe("first_turn");
    expect(chain?.turns[0]).toEqual({
      id: "resp_1",
      kind: "response",
      createdAt: NOW + 123,
      conversationId: null,
      model: "qwen3",
      status: "completed",
      input: ['{"id":"msg_1","type":"message"}'],
      output: ['{"id":"msg_2","type":"message"}'],
    });
    expect((await store.getConversation("", "conv_1"))?.metadata).toBe("{}");
    const listed = await store.listItems("", "conv_1", { limit: 9, order: "asc" });
    expect(listed?.data.map(({ json }) => JSON.parse(json))).toEqual([
      { id: "fc_1", type: "function_call", name: "f", arguments: "{}" },
      {
        id: "msg_3",
        type: "message",
        role: "user",
        content: [{ type: "input_text", text: "hi" }],
        status: "completed",
      },
      { id: "msg_4", type: "message", role: "assistant", content: [], phase: "final", status: "completed" },
    ]);
    // ids are each tenant's own from now on, and longer ones fit
    const long = "msg_".padEnd(300, "x");
    expect(await store.addItems("", "conv_1", [item(long)], NOW)).toBe(true);
    await store.putResponse(response("resp_1", { tenant: "acme", previousId: "resp_2" }));
    expect((await store.readChain("acme", "resp_1", { maxTurns: 9, maxBytes: 1e6 }))?.begin).toBe("missing");
    await store.close();
    const again = (await openHistory({ url, schema }))!;
    expect(await again.getItem("", "conv_1", long)).toEqual(item(long));
    for (let removed = 1; removed > 0; ) removed = await again.removeExpired(NOW + 1e6, 2);
    expect(await again.getResponse("", "resp_1")).toBeNull();
    expect(await again.getConversation("", "conv_1")).toBeNull();
    await again.close();
  });

  (ownPostgres ? test : test.skip)("that goes away is unavailable, and used again when it is back", async () => {
    const server = await serverOf("postgres");
    const store = (await openHistory({ url: server.url, schema: ownSchema(), timeoutMs: 3000 }))!;
    await outage(server, store, "127.0.0.1:");
  });

  check("that refuses the password says so without it", async () => {
    const { url, password } = await serverOf("postgres");
    const wrong = url.replace(password, "wrong-secret");
    const failure = (await rejection(openHistory({ url: wrong }))) as Error;
    expect(failure).toBeInstanceOf(HistorySetupError);
    expect(Bun.inspect(failure)).toContain("password authentication failed");
    expect(Bun.inspect(failure)).not.toContain("wrong-secret");
  });
});

describe("redis", () => {
  const check = hasRedis ? test : test.skip;

  check("takes over what SMG has written", async () => {
    const { url } = await serverOf("redis");
    const redis = new Bun.RedisClient(url);
    const at = "2026-11-30T12:00:00.123456789+00:00";
    const hash = (key: string, fields: Record<string, string>) =>
      redis.send("HSET", [key, ...Object.entries(fields).flat()]);
    await hash("smg:response:resp_1", {
      id: "resp_1",
      input: "[]",
      created_at: at,
      model: "qwen3",
      raw_response: '{"output":[{"id":"msg_2"}]}',
    });
    await hash("smg:response:resp_2", {
      id: "resp_2",
      previous_response_id: "resp_1",
      input: "[]",
      created_at: at,
      raw_response: "null",
    });
    await hash("smg:conversation:conv_1", { id: "conv_1", created_at: at });
    await hash("smg:item:msg_3", {
      id: "msg_3",
      item_type: "message",
      role: "user",
      content: '[{"type":"input_text"}]',
      created_at: at,
    });
    await redis.send("ZADD", ["smg:conversation:conv_1:items", String(NOW), "msg_3"]);
    redis.close();
    const store = (await openHistory({ url, schema: { owner: "smg" } }))!;
    const chain = await store.readChain("", "resp_2", { maxTurns: 9, maxBytes: 1e6 });
    expect(chain?.turns.map(({ id, output, createdAt }) => [id, output, createdAt])).toEqual([
      ["resp_1", ['{"id":"msg_2"}'], NOW + 123],
      ["resp_2", [], NOW + 123],
    ]);
    await store.addItems("", "conv_1", [item("msg_4")], NOW - 1);
    const listed = await store.listItems("", "conv_1", { limit: 9, order: "asc" });
    expect(listed?.data.map(({ id }) => id)).toEqual(["msg_3", "msg_4"]);
    expect(JSON.parse(listed?.data[0]?.json ?? "")).toEqual({
      id: "msg_3",
      type: "message",
      role: "user",
      content: [{ type: "input_text" }],
    });
    expect(await store.deleteResponse("", "resp_1")).toBe(true);
    expect(await store.deleteConversation("", "conv_1")).toBe(true);
    await store.close();
  });

  (ownRedis ? test : test.skip)("that goes away is unavailable, and used again when it is back", async () => {
    const server = await serverOf("redis");
    const store = (await openHistory({ url: server.url, schema: { owner: "outage" }, timeoutMs: 3000 }))!;
    await outage(server, store, "127.0.0.1:");
  });

  check("that refuses the password says so without it", async () => {
    const { url, password } = await serverOf("redis");
    const failure = (await rejection(openHistory({ url: url.replace(password, "wrong-secret") }))) as Error;
    expect(failure).toBeInstanceOf(HistorySetupError);
    expect(Bun.inspect(failure)).not.toContain("wrong-secret");
  });
});

test("a server that is not there is unavailable, and nothing shows its password", async () => {
  for (const scheme of ["postgres", "redis"]) {
    const failure = (await rejection(openHistory({ url: `${scheme}://user:hidden-secret@127.0.0.1:1/0` }))) as Error;
    expect(failure).toBeInstanceOf(HistoryUnavailableError);
    expect(Bun.inspect(failure)).not.toContain("hidden-secret");
  }
}, 30_000);

async function outage(server: Server, store: HistoryStore, address: string): Promise<void> {
  await store.putResponse(response("resp_1"));
  await server.kill();
  for (let n = 0; n < 4; n++) {
    const failure = (await rejection(
      n % 2 === 0 ? store.getResponse("acme", "resp_1") : store.putResponse(response(`x${n}`)),
    )) as Error;
    expect(failure).toBeInstanceOf(HistoryUnavailableError);
    expect(failure.message).not.toContain(address);
    expect(Bun.inspect(failure)).not.toContain(server.password);
  }
  await server.start();
  const deadline = performance.now() + 15_000;
  let read: unknown;
  while (read === undefined && performance.now() < deadline) {
    read = await store.getResponse("acme", "resp_1").catch(() => undefined);
    await Bun.sleep(100);
  }
  // with its own log on disk, the server lost nothing either
  expect(read).toMatchObject({ id: "resp_1" });
  expect(await store.putResponse(response("resp_2"))).toBe("stored");
  await store.close();
}
