/** The history of a process with several serving threads: they all see one. */
import { afterEach, describe, expect, test } from "bun:test";
import { mkdtempSync, readdirSync, rmSync, statSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { HistorySetupError } from "../../../src/history/errors.ts";
import { openHistory } from "../../../src/history/open.ts";
import type { Conversation, HistoryStore } from "../../../src/history/store.ts";
import { UseFlag } from "../../../src/history/use-flag.ts";
import { createLogger } from "../../../src/telemetry/log.ts";
import {
  type HistoryKeeper,
  type KeeperOptions,
  startHistoryKeeper,
  startHistoryKeeperOr,
} from "../../../src/threads/history-keeper.ts";

const lines: string[] = [];
const log = createLogger({ level: "info", json: false, write: (line) => lines.push(line) });
const options = (url: string, more: Partial<KeeperOptions> = {}): KeeperOptions => ({
  history: { url },
  sealingKey: new Uint8Array(32),
  retentionDays: undefined,
  log,
  onEnd: (message) => lines.push(`ended: ${message}`),
  ...more,
});

let folder: string | undefined;
let keeper: HistoryKeeper | undefined;
const stores: HistoryStore[] = [];
afterEach(async () => {
  for (const store of stores.splice(0)) await store.close();
  await keeper?.close();
  keeper = undefined;
  if (folder !== undefined) rmSync(folder, { recursive: true, force: true });
  expect(lines.filter((line) => line.startsWith("ended"))).toEqual([]);
  lines.length = 0;
});

const temporary = (): string => {
  folder = mkdtempSync(join(tmpdir(), "collie-keeper-"));
  return folder;
};

async function seat(): Promise<HistoryStore> {
  const store = await openHistory(keeper!.history, keeper!.connect());
  if (store === null) throw new Error("no store");
  stores.push(store);
  return store;
}

const conversation = (id: string, createdAt: number): Conversation => ({
  tenant: "t",
  id,
  createdAt,
  metadata: "{}",
});

describe.each(["memory", "sqlite"])("%s", (kind) => {
  const url = () => (kind === "memory" ? "memory" : `sqlite:${join(temporary(), "below", "history.db")}`);

  test("what one thread stores, another one finds", async () => {
    keeper = await startHistoryKeeper(options(url()));
    const [one, other] = [await seat(), await seat()];
    await one.createConversation(conversation("conv_1", Date.now()), []);
    expect(await other.getConversation("t", "conv_1")).toMatchObject({ id: "conv_1" });
    expect(await other.getConversation("u", "conv_1")).toBeNull();
  });

  test("its thread starts with the first call, of whatever thread", async () => {
    keeper = await startHistoryKeeper(options(url()), true);
    const used = new UseFlag(keeper.used);
    const stores = [await seat(), await seat(), await seat()];
    await Bun.sleep(50);
    expect(used.isSet).toBe(false);
    await Promise.all(stores.map((store, i) => store.createConversation(conversation(`conv_${i}`, Date.now()), [])));
    expect(used.isSet).toBe(true);
    const last = await seat();
    for (const i of stores.keys())
      expect(await last.getConversation("t", `conv_${i}`)).toMatchObject({ id: `conv_${i}` });
  });

  test("what is too old is removed, again and again", async () => {
    keeper = await startHistoryKeeper(options(url(), { retentionDays: 2, sweepMs: [20, 20] }));
    const store = await seat();
    const days = (n: number) => Date.now() - n * 86_400_000;
    for (const id of ["conv_old", "conv_older"]) {
      await store.createConversation(conversation("conv_new", days(1.9)), []).catch(() => {});
      await store.createConversation(conversation(id, days(2.1)), []);
      for (let tries = 0; (await store.getConversation("t", id)) !== null; tries++) {
        if (tries > 200) throw new Error(`${id} is still there`);
        await Bun.sleep(10);
      }
    }
    expect(await store.getConversation("t", "conv_new")).not.toBeNull();
    expect(lines.join("\n")).toContain("removed what was kept for long enough");
  });
});

test("the file of a history is for its owner alone, with what SQLite puts beside it", async () => {
  const path = join(temporary(), "below", "history.db");
  keeper = await startHistoryKeeper(options(`sqlite:${path}`));
  await (await seat()).createConversation(conversation("conv_1", Date.now()), []);
  const modes = readdirSync(dirname(path)).map((name) => [name, statSync(join(dirname(path), name)).mode & 0o777]);
  expect(modes.sort()).toEqual(["history.db", "history.db-shm", "history.db-wal"].map((name) => [name, 0o600]));
});

test.each(["memory", "sqlite"])(
  "%s: of a thread that ends by itself is told once, and nobody waits for it",
  async (kind) => {
    const url = kind === "memory" ? "memory" : `sqlite:${join(temporary(), "history.db")}`;
    const ends: string[] = [];
    keeper = await startHistoryKeeper(options(url, { onEnd: (message) => void ends.push(message) }));
    await (await seat()).createConversation(conversation("conv_1", Date.now()), []);
    // a defect, which no call of a store makes
    keeper.connect()!.postMessage({ batch: 1, calls: null });
    for (let tries = 0; ends.length === 0 && tries < 300; tries++) await Bun.sleep(10);
    await Bun.sleep(50);
    expect(ends.length).toBe(1);
    const since = performance.now();
    await keeper.close();
    keeper = undefined;
    expect(performance.now() - since).toBeLessThan(2000);
  },
);

test("without a history there is no thread to connect to", async () => {
  keeper = await startHistoryKeeper(options("none", { retentionDays: 1, sweepMs: [1, 1] }));
  expect(keeper.connect()).toBeUndefined();
  expect(await openHistory(keeper.history, keeper.connect())).toBeNull();
});

test("a history that cannot be opened ends the start, unless nobody chose it", async () => {
  const file = join(temporary(), "file");
  writeFileSync(file, "no database, and no folder");
  const broken = options(`sqlite:${join(file, "history.db")}`);
  await expect(startHistoryKeeperOr(broken, false)).rejects.toThrow(HistorySetupError);
  keeper = await startHistoryKeeperOr(broken, true);
  expect(keeper.history.url).toBe("memory");
  expect(lines.join("\n")).toContain("the history is kept in memory");
  expect(await (await seat()).getConversation("t", "conv_1")).toBeNull();
});

test("a history that nobody chose and that is no database is found out when it is used, and kept in memory then", async () => {
  const path = join(temporary(), "history.db");
  writeFileSync(path, "no database".repeat(1000));
  await expect(startHistoryKeeperOr(options(`sqlite:${path}`), false)).rejects.toThrow(HistorySetupError);
  keeper = await startHistoryKeeperOr(options(`sqlite:${path}`), true);
  expect(lines.join("\n")).not.toContain("the history is kept in memory");
  const store = await seat();
  await store.createConversation(conversation("conv_1", Date.now()), []);
  expect(await (await seat()).getConversation("t", "conv_1")).toMatchObject({ id: "conv_1" });
  expect(lines.join("\n")).toContain("the history is kept in memory");
});

test("what an earlier process has kept is cared for without a call", async () => {
  const url = `sqlite:${join(temporary(), "history.db")}`;
  const old = Date.now() - 3 * 86_400_000;
  keeper = await startHistoryKeeper(options(url));
  await (await seat()).createConversation(conversation("conv_old", old), []);
  for (const store of stores.splice(0)) await store.close();
  await keeper.close();
  keeper = await startHistoryKeeper(options(url, { retentionDays: 2, sweepMs: [10, 10] }), true);
  expect(new UseFlag(keeper.used).isSet).toBe(true);
  for (let tries = 0; !lines.join("\n").includes("removed what was kept"); tries++) {
    if (tries > 300) throw new Error("it is still there");
    await Bun.sleep(10);
  }
});

test("one that was never used is closed at once", async () => {
  keeper = await startHistoryKeeper(options(`sqlite:${join(temporary(), "history.db")}`), true);
  await seat();
  await keeper.close();
  keeper = undefined;
});
