/** Every store by name, each opened empty; the servers start with the first test that asks. */
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { openHistory, startHistoryThread } from "../../../src/history/open.ts";
import type { SchemaSetting } from "../../../src/history/schema.ts";
import type { HistoryStore } from "../../../src/history/store.ts";
import { hasPostgres, hasRedis, type Server, startPostgres, startRedis } from "./servers.ts";

export const threadEntry = new URL("../../../src/history/thread.ts", import.meta.url);

export interface Opened {
  /** One store for each of so many threads, all on the same data. */
  readonly stores: readonly HistoryStore[];
  close(): Promise<void>;
}

export interface StoreKind {
  readonly name: string;
  readonly available: boolean;
  open(count: number): Promise<Opened>;
}

let names = 0;
/** Tables of each test by their own names: one server for all. */
export function ownSchema(): SchemaSetting {
  const suffix = `${process.pid}_${++names}`;
  const tables = [
    "conversations",
    "responses",
    "conversation_items",
    "conversation_item_links",
    "response_items",
    "response_events",
    "history_migrations",
  ];
  return Object.fromEntries(tables.map((table) => [table, { table: `t${suffix}_${table}` }]));
}

/** The stores of a test file, and how to end what they started. */
export function storeKinds(): { readonly kinds: readonly StoreKind[]; stop(): Promise<void> } {
  const servers = new Map<string, Promise<Server>>();
  const once = (name: string, start: () => Promise<Server>): Promise<Server> => {
    const running = servers.get(name) ?? start();
    servers.set(name, running);
    return running;
  };

  async function byThread(url: string, count: number, clean: () => void): Promise<Opened> {
    const thread = (await startHistoryThread({ url }, threadEntry, (message) => console.error(message)))!;
    const stores = await Promise.all(
      Array.from({ length: count }, async () => (await openHistory({ url }, thread.connect()))!),
    );
    return {
      stores,
      async close() {
        for (const store of stores) await store.close();
        await thread.close();
        clean();
      },
    };
  }
  async function byServer(url: string, schema: unknown, count: number): Promise<Opened> {
    const stores = await Promise.all(Array.from({ length: count }, async () => (await openHistory({ url, schema }))!));
    return {
      stores,
      async close() {
        for (const store of stores) await store.close();
      },
    };
  }

  return {
    kinds: [
      { name: "memory", available: true, open: (count) => byThread("memory:", count, () => {}) },
      {
        name: "sqlite",
        available: true,
        open(count) {
          const at = mkdtempSync(join(tmpdir(), "collie-history-"));
          return byThread(`sqlite://${join(at, "history.db")}`, count, () => rmSync(at, { recursive: true }));
        },
      },
      {
        name: "postgres",
        available: hasPostgres,
        async open(count) {
          return byServer((await once("postgres", startPostgres)).url, ownSchema(), count);
        },
      },
      {
        name: "redis",
        available: hasRedis,
        async open(count) {
          return byServer((await once("redis", startRedis)).url, { owner: `t${process.pid}_${++names}` }, count);
        },
      },
    ],
    async stop() {
      for (const server of servers.values()) await (await server).stop();
    },
  };
}
