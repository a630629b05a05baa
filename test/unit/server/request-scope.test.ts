import { describe, expect, test } from "bun:test";
import { ClientClosedError, RequestTimeoutError, ShuttingDownError } from "../../../src/errors.ts";
import { RequestScopes } from "../../../src/server/request-scope.ts";

const anybody = () => new AbortController().signal;

test("finish counts once, is told once, and whenIdle waits for all", async () => {
  const finished: string[] = [];
  const scopes = new RequestScopes(10, ({ id }) => finished.push(id));
  await scopes.whenIdle();
  const one = scopes.begin("1", anybody());
  const two = scopes.begin("2", anybody());
  let idle = 0;
  const waits = [scopes.whenIdle(), scopes.whenIdle()].map((wait) => wait.then(() => idle++));
  one.finish();
  one.finish();
  one.finish();
  await Bun.sleep(1);
  expect([scopes.size, idle]).toEqual([1, 0]);
  two.finish();
  await Promise.all(waits);
  expect([scopes.size, idle, finished]).toEqual([0, 2, ["1", "2"]]);
});

describe("the signal", () => {
  test("fires when the client leaves, also before the scope began", () => {
    const scopes = new RequestScopes(10);
    const client = new AbortController();
    const scope = scopes.begin("1", client.signal);
    expect(scope.signal.aborted).toBe(false);
    client.abort();
    expect(scope.signal.reason).toBeInstanceOf(ClientClosedError);
    expect(scopes.begin("2", client.signal).signal.reason).toBeInstanceOf(ClientClosedError);
    expect(scopes.size).toBe(2); // leaving is not finishing: the work may have something to tidy up
  });

  test("fires when time is up", async () => {
    const scope = new RequestScopes(0.01).begin("1", anybody());
    await Bun.sleep(40); // timers fire in the order of their times, however late
    expect(scope.signal.reason).toBeInstanceOf(RequestTimeoutError);
  });

  test("does not fire early for a limit beyond what a timer can hold", async () => {
    const scope = new RequestScopes(30 * 24 * 3600).begin("1", anybody());
    await Bun.sleep(20);
    expect(scope.signal.aborted).toBe(false);
    scope.finish();
  });

  test("fires for every open request when the gateway stops; the first reason stays", () => {
    const scopes = new RequestScopes(10);
    const client = new AbortController();
    const left = scopes.begin("1", client.signal);
    const done = scopes.begin("2", anybody());
    const open = scopes.begin("3", anybody());
    client.abort();
    done.finish();
    scopes.abortAll();
    expect(left.signal.reason).toBeInstanceOf(ClientClosedError);
    expect(done.signal.aborted).toBe(false);
    expect(open.signal.reason).toBeInstanceOf(ShuttingDownError);
  });

  test("a scope may finish from within its own abort", () => {
    const scopes = new RequestScopes(10);
    const all = Array.from({ length: 5 }, (_, i) => scopes.begin(String(i), anybody()));
    for (const scope of all) scope.signal.addEventListener("abort", () => scope.finish());
    scopes.abortAll();
    expect(all.every(({ signal }) => signal.aborted)).toBe(true);
    expect(scopes.size).toBe(0);
  });

  test("never fires after the finish", async () => {
    const client = new AbortController();
    const scope = new RequestScopes(0.01).begin("1", client.signal);
    scope.finish();
    client.abort();
    await Bun.sleep(30);
    expect(scope.signal.aborted).toBe(false);
  });
});

test("ten thousand scopes on one client leave no listener, no timer and no memory behind", async () => {
  const client = new AbortController();
  const { signal } = client;
  let listeners = 0;
  const add = signal.addEventListener.bind(signal);
  const remove = signal.removeEventListener.bind(signal);
  signal.addEventListener = (...args: Parameters<typeof add>) => {
    listeners++;
    add(...args);
  };
  signal.removeEventListener = (...args: Parameters<typeof remove>) => {
    listeners--;
    remove(...args);
  };
  const scopes = new RequestScopes(3600);
  const round = () => {
    for (let i = 0; i < 10_000; i++) scopes.begin("id", signal).finish();
    Bun.gc(true);
    return process.memoryUsage().heapUsed;
  };
  round();
  const before = round();
  const after = round();
  expect(listeners).toBe(0);
  expect(scopes.size).toBe(0);
  expect(after - before).toBeLessThan(2_000_000); // a leaked scope of 200 bytes would show
});

test("who watches is told when a request begins alone", () => {
  const scopes = new RequestScopes(10);
  let told = 0;
  scopes.onBusy = () => told++;
  const first = scopes.begin("1", new AbortController().signal);
  const second = scopes.begin("2", new AbortController().signal);
  expect(told).toBe(1);
  first.finish();
  second.finish();
  scopes.begin("3", new AbortController().signal).finish();
  expect(told).toBe(2);
});
