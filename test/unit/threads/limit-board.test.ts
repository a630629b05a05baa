import { describe, expect, test } from "bun:test";
import { LimitBoard, type LimitRules } from "../../../src/threads/limit-board.ts";

const RULES: LimitRules = { running: 3, waiting: 2, retriesPerRequest: 0.2, retriesPerSec: 1 };
const NOW = 1_700_000_000_000;

/** The board as each of three threads sees it. */
function views(rules: Partial<LimitRules> = {}): readonly [LimitBoard, LimitBoard, LimitBoard] {
  const { memory } = LimitBoard.create(3, { ...RULES, ...rules });
  return [LimitBoard.open(memory, 0), LimitBoard.open(memory, 1), LimitBoard.open(memory, 2)];
}

describe("requests that run", () => {
  test("are as many as may, over all threads", () => {
    const [a, b, c] = views();
    const permits = [a.tryRun(), b.tryRun(), c.tryRun()];
    expect([...permits].sort()).toEqual([0, 1, 2]);
    expect([a.tryRun(), b.tryRun(), c.runningCount()]).toEqual([-1, -1, 3]);
    b.ran(permits[1]!);
    expect(a.tryRun()).toBe(permits[1]!);
    expect(c.tryRun()).toBe(-1);
  });

  test("of a dead thread run no more, and those of the others do", () => {
    const [a, b, c] = views();
    const kept = a.tryRun();
    b.tryRun();
    b.tryRun();
    a.forgetThread(1);
    expect(a.runningCount()).toBe(1);
    const taken = [c.tryRun(), c.tryRun()];
    expect(taken).not.toContain(kept);
    expect(c.tryRun()).toBe(-1);
  });

  test("may be none at all", () => {
    const [a] = views({ running: 0 });
    expect([a.isLimited, a.tryRun()]).toEqual([true, -1]);
  });

  test("are not limited without a limit", () => {
    const [a] = views({ running: undefined });
    expect([a.isLimited, a.runningCount(), a.waitingCount()]).toEqual([false, 0, 0]);
  });

  test("a million permits are found quickly enough to use them all", () => {
    const [a] = views({ running: 1_000_000 });
    for (let i = 0; i < 1_000_000; i++) if (a.tryRun() < 0) throw new Error(`only ${i} permits`);
    expect(a.tryRun()).toBe(-1);
  });
});

describe("requests that wait", () => {
  test("are as many as may, over all threads, and all threads see that there are some", () => {
    const [a, b, c] = views();
    expect(c.someoneWaits()).toBe(false);
    const places = [a.tryWait(), b.tryWait()];
    expect([places.every((place) => place >= 0), c.tryWait(), c.someoneWaits()]).toEqual([true, -1, true]);
    a.waited(places[0]!);
    expect([c.waitingCount(), c.someoneWaits()]).toEqual([1, true]);
    b.waited(places[1]!);
    expect([c.waitingCount(), c.someoneWaits()]).toEqual([0, false]);
  });

  test("of a dead thread wait no more", () => {
    const [a, b] = views();
    b.tryWait();
    b.tryWait();
    a.forgetThread(1);
    expect([a.someoneWaits(), a.waitingCount()]).toEqual([false, 0]);
  });

  test("are woken one thread after the other, by an end, by a death, or after a while", async () => {
    const [a, b, c] = views({ running: 1 });
    const permit = a.tryRun();
    b.tryWait();
    const woken: string[] = [];
    const sleep = (board: LimitBoard, name: string) => board.changed(board.turn(), 10_000).then(() => woken.push(name));
    const all = [sleep(b, "b"), sleep(c, "c")];
    a.ran(permit);
    await all[0];
    await Bun.sleep(20);
    expect(woken).toEqual(["b"]);
    a.forgetThread(2);
    await Promise.all(all);
    expect(woken).toEqual(["b", "c"]);
    const seen = a.turn();
    await b.changed(seen, 20); // nobody tells
    a.wakeOne();
    await b.changed(seen, 10_000); // it has changed before
  });
});

describe("retries", () => {
  const spend = (board: LimitBoard, most: number, now = NOW) => {
    let tokens = 0;
    while (tokens < most && board.retryToken(now)) tokens++;
    return tokens;
  };

  test("are a share of the requests of ten seconds, and some more, over all threads", () => {
    const [a, b, c] = views();
    for (let i = 0; i < 50; i++) (i % 2 === 0 ? a : b).deposit(NOW);
    expect(spend(c, 15)).toBe(15);
    expect(spend(a, 100)).toBe(5);
    expect([a, b, c].map((board) => board.retryToken(NOW))).toEqual([false, false, false]);
  });

  test("may be made again when requests and retries are long ago", () => {
    const [a, b] = views();
    expect(spend(a, 100)).toBe(10);
    expect(spend(b, 100, NOW + 9000)).toBe(0);
    for (let i = 0; i < 100; i++) b.deposit(NOW + 9000);
    expect(spend(b, 100, NOW + 10_000)).toBe(30);
    expect(spend(b, 100, NOW + 19_000)).toBe(0);
    expect(spend(b, 100, NOW + 20_000)).toBe(10);
  });

  test("may be none", () => {
    const [a] = views({ retriesPerRequest: 0, retriesPerSec: 0 });
    for (let i = 0; i < 100; i++) a.deposit(NOW);
    expect(a.retryToken(NOW)).toBe(false);
  });
});
