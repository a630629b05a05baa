/** Processes that write are killed at any moment: what the store had acknowledged is there, and nothing is there by half. */
import { Database } from "bun:sqlite";
import { expect, test } from "bun:test";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { openHistory, startHistoryThread } from "../../../src/history/open.ts";
import { NOW } from "./samples.ts";
import { threadEntry } from "./stores.ts";

const ROUNDS = 12;
const WRITERS = ["a", "b"];

test("kill -9 of two writers, again and again, loses no acknowledged response", async () => {
  const at = mkdtempSync(join(tmpdir(), "collie-crash-"));
  const url = `sqlite://${join(at, "history.db")}`;
  const open = async () => {
    const thread = (await startHistoryThread({ url }, threadEntry, (message) => console.error(message)))!;
    const store = (await openHistory({ url }, thread.connect()))!;
    return { store, close: () => store.close().then(() => thread.close()) };
  };
  const first = await open();
  await first.store.createConversation({ tenant: "acme", id: "conv_1", createdAt: NOW, metadata: "{}" }, []);
  await first.close();

  const acknowledged = new Set<string>();
  for (let round = 0; round < ROUNDS; round++) {
    const writers = WRITERS.map((name) => {
      const script = join(import.meta.dir, "crash-writer.ts");
      const child = Bun.spawn([process.execPath, script, url, name, String(round * 100_000)], {
        stdout: "pipe",
        stderr: "inherit",
      });
      const heard = Promise.withResolvers<void>();
      const read = async (): Promise<void> => {
        const decoder = new TextDecoder();
        let text = "";
        for await (const chunk of child.stdout) {
          text += decoder.decode(chunk, { stream: true });
          heard.resolve();
        }
        // what stands before a line end was acknowledged
        for (const n of text.split("\n").slice(0, -1)) acknowledged.add(`resp_${name}_${n}`);
      };
      return { child, heard: heard.promise, done: read() };
    });
    await Promise.all(writers.map(({ heard }) => heard));
    await Bun.sleep(20 + ((round * 53) % 200));
    for (const { child } of writers) child.kill("SIGKILL");
    await Promise.all(writers.map(({ done }) => done));
  }
  expect(acknowledged.size).toBeGreaterThan(200);

  const { store, close } = await open();
  const lost: string[] = [];
  const all = { maxEvents: 9, maxBytes: 99 };
  for (const id of acknowledged) {
    const response = await store.getResponse("acme", id);
    const events = await store.readEvents("acme", id, -1, all);
    if (response === null || JSON.parse(response.body).id !== id || events?.length !== 2) lost.push(id);
  }
  expect(lost).toEqual([]);
  await close();

  const database = new Database(join(at, "history.db"), { readonly: true });
  expect(database.query("PRAGMA integrity_check").all()).toEqual([{ integrity_check: "ok" }]);
  // also of those that were never acknowledged, a response and its two items are there together
  const half = `SELECT r.id FROM responses r LEFT JOIN conversation_items i ON i.response_id = r.id
      LEFT JOIN conversation_item_links l ON l.item_id = i.id GROUP BY r.id HAVING count(l.item_id) <> 2`;
  expect(database.query(half).all()).toEqual([]);
  database.close();
  rmSync(at, { recursive: true });
}, 60_000);
