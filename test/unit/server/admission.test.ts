import { afterEach, describe, expect, test } from "bun:test";
import { ClientClosedError, QueueFullError, QueueTimeoutError } from "../../../src/errors.ts";
import { Admission, LIMITED_PATHS } from "../../../src/server/admission.ts";
import { RequestScopes } from "../../../src/server/request-scope.ts";
import { LimitBoard } from "../../../src/threads/limit-board.ts";
import { until } from "../../support/until.ts";
import { ScriptedEngine } from "../generation/scripted-engine.ts";
import { type Gateway, MODEL, startGateway } from "./gateway.ts";

/** Two threads in one: each with its own admission over one board. */
function world({ running = 1, waiting = 10, timeoutSecs = 60 } = {}) {
  const { memory } = LimitBoard.create(2, { running, waiting, retriesPerRequest: 0, retriesPerSec: 0 });
  const order: string[] = [];
  const threads = [0, 1].map((thread) => {
    const admission = new Admission(LimitBoard.open(memory, thread), timeoutSecs);
    const scopes = new RequestScopes(3600, (scope) => admission.leave(scope));
    return (name: string) => {
      const client = new AbortController();
      const scope = scopes.begin(name, client.signal);
      const turn = admission.enter(scope);
      const result = turn?.then(
        () => order.push(name),
        (error: unknown) => error,
      );
      if (turn === undefined) order.push(name);
      return { scope, result, leave: () => client.abort() };
    };
  });
  return { one: threads[0]!, two: threads[1]!, order, board: LimitBoard.open(memory, 0) };
}

describe("requests over the limit", () => {
  test("run in the order in which they came to their thread", async () => {
    const { one, order, board } = world();
    const asked = ["a", "b", "c", "d"].map(one);
    expect([order, board.runningCount(), board.waitingCount()]).toEqual([["a"], 1, 3]);
    for (const { scope, result } of asked) {
      await result;
      expect(board.runningCount()).toBe(1);
      scope.finish();
      scope.finish();
    }
    expect(order).toEqual(["a", "b", "c", "d"]);
    expect([board.runningCount(), board.waitingCount(), board.someoneWaits()]).toEqual([0, 0, false]);
  });

  test("of another thread get their turn, also while this one has more of them", async () => {
    const { one, two, order } = world();
    const first = one("a");
    const [foreign, late] = [two("x"), one("b")];
    first.scope.finish();
    await foreign.result;
    expect(order).toEqual(["a", "x"]);
    foreign.scope.finish();
    await late.result;
    expect(order).toEqual(["a", "x", "b"]);
  });

  test("do not overtake those that wait in another thread", async () => {
    const { one, two, order } = world();
    const first = one("a");
    const waits = two("x");
    first.scope.finish();
    const late = one("b"); // there is a free place, but it is not for this one
    await waits.result;
    expect(order).toEqual(["a", "x"]);
    waits.scope.finish();
    await late.result;
  });

  test("are refused when as many wait as may", async () => {
    const { one, two, board } = world({ waiting: 1 });
    const first = one("a");
    const second = two("b");
    expect(() => one("c")).toThrow(QueueFullError);
    expect(() => two("c")).toThrow(expect.objectContaining({ status: 429, retryAfterSecs: 1 }));
    first.scope.finish();
    await second.result;
    second.scope.finish();
    expect([board.runningCount(), board.waitingCount()]).toEqual([0, 0]);
  });

  test("are refused at once where none may wait", () => {
    const { one } = world({ waiting: 0 });
    one("a");
    expect(() => one("b")).toThrow(QueueFullError);
  });

  test("wait for a limited time", async () => {
    const { one, board } = world({ timeoutSecs: 0.05 });
    one("a");
    expect(await one("b").result).toBeInstanceOf(QueueTimeoutError);
    expect(board.waitingCount()).toBe(0);
  });

  test("free their place when their client leaves", async () => {
    const { one, order, board } = world({ waiting: 2 });
    const first = one("a");
    const [gone, stays] = [one("b"), one("c")];
    gone.leave();
    expect(await gone.result).toBeInstanceOf(ClientClosedError);
    expect(board.waitingCount()).toBe(1);
    const next = one("d");
    first.scope.finish();
    await stays.result;
    stays.scope.finish();
    await next.result;
    expect(order).toEqual(["a", "c", "d"]);
  });

  test("run nevertheless when the one that was woken for them has gone", async () => {
    const { one, two, order } = world();
    const first = one("a");
    const [gone, stays] = [two("x"), one("b")];
    first.scope.finish(); // wakes the other thread
    gone.leave();
    await stays.result;
    expect(order).toEqual(["a", "b"]);
  });

  test("go on when the thread that ran has died", async () => {
    const { one, two, board } = world();
    one("a");
    const waits = two("x");
    board.forgetThread(0);
    await waits.result;
    expect(board.runningCount()).toBe(1);
  });
});

describe("over HTTP", () => {
  let gateway: Gateway | undefined;
  afterEach(() => gateway?.stop());

  const BODIES: Readonly<Record<string, object>> = {
    "/v1/chat/completions": { messages: [{ role: "user", content: "x" }] },
    "/v1/completions": { prompt: "x" },
    "/generate": { text: "x" },
    "/v1/embeddings": { input: "x" },
    "/rerank": { query: "x", documents: ["y"] },
    "/v1/rerank": { query: "x", documents: ["y"] },
    "/v1/classify": { input: "x" },
    "/v1/responses": { input: "x" },
    "/v1/responses/compact": { input: "x" },
    "/v1/messages": { max_tokens: 5, messages: [{ role: "user", content: "x" }] },
    "/v1/interactions": { input: "x" },
    "/v1beta/interactions": { input: "x" },
    "/v1alpha/interactions": { input: "x" },
  };
  const ask = ({ url }: Gateway, path: string, signal?: AbortSignal) =>
    fetch(url + path, {
      method: "POST",
      headers: { "content-type": "application/json" },
      body: JSON.stringify({ model: MODEL, ...BODIES[path] }),
      ...(signal && { signal }),
    });

  test("every route that models work for is limited, and no other one", async () => {
    gateway = startGateway();
    const posts = (await gateway.routes()).filter(({ method }) => method === "POST").map(({ path }) => path);
    const free = posts.filter((path) => !LIMITED_PATHS.has(path));
    expect(posts).toEqual(expect.arrayContaining([...LIMITED_PATHS]));
    expect(Object.keys(BODIES).sort()).toEqual([...LIMITED_PATHS].sort());
    for (const path of free)
      expect(path).toMatch(
        /tokenize|parse|separate_reasoning|conversations|batches|cancel|count_tokens|input_tokens|workers|explain|_cache|_profile/,
      );
  });

  test("a full queue is 429 in the form of each API, with the time to come back", async () => {
    gateway = startGateway(["--max-concurrent-requests", "0", "--queue-size", "0"]);
    for (const path of LIMITED_PATHS) {
      const response = await ask(gateway, path);
      const body = (await response.json()) as {
        type?: string;
        error: { type?: string; code?: unknown; status?: string };
      };
      expect([path, response.status, response.headers.get("retry-after")]).toEqual([path, 429, "1"]);
      if (path === "/v1/messages") expect([body.type, body.error.type]).toEqual(["error", "rate_limit_error"]);
      else if (path.endsWith("/interactions")) expect(body.error.status).toBe("RESOURCE_EXHAUSTED");
      else expect([body.error.type, body.error.code]).toEqual(["rate_limit_error", "queue_full"]);
    }
    expect(gateway.scopes.size).toBe(0);
    // what needs no model is served
    const counted = await fetch(`${gateway.url}/v1/tokenize`, {
      method: "POST",
      headers: { "content-type": "application/json" },
      body: JSON.stringify({ model: MODEL, prompt: "x" }),
    });
    expect(counted.status).toBe(200);
  });

  test("requests over a WebSocket count, each by itself", async () => {
    gateway = startGateway(["--max-concurrent-requests", "0", "--queue-size", "0"]);
    const socket = new WebSocket(`${gateway.url.replace("http", "ws")}/v1/responses`);
    const told = Promise.withResolvers<unknown>();
    socket.onerror = () => told.reject(new Error("no connection"));
    socket.onmessage = ({ data }) => told.resolve(JSON.parse(data as string));
    socket.onopen = () => socket.send(JSON.stringify({ type: "response.create", model: MODEL, input: "x" }));
    expect(await told.promise).toMatchObject({ type: "error", status: 429, error: { code: "queue_full" } });
    socket.close();
  });

  test("waiting in vain is 408", async () => {
    gateway = startGateway(["--max-concurrent-requests", "0", "--queue-timeout-secs", "1"]);
    const [response, other] = await Promise.all([ask(gateway, "/v1/chat/completions"), ask(gateway, "/v1/messages")]);
    expect([response.status, response.headers.get("retry-after")]).toEqual([408, "1"]);
    expect(await response.json()).toMatchObject({ error: { code: "queue_timeout" } });
    expect([other.status, await other.json()]).toMatchObject([408, { error: { type: "timeout_error" } }]);
    expect([gateway.scopes.size, gateway.limits.waitingCount()]).toEqual([0, 0]);
  });

  test("a place is held until the answer is over, and then the next request runs", async () => {
    const engine = new ScriptedEngine();
    gateway = startGateway(["--max-concurrent-requests", "1"], engine);
    const { limits } = gateway;
    const [first, second] = [ask(gateway, "/v1/chat/completions"), ask(gateway, "/v1/chat/completions")];
    await until(() => engine.calls.length === 1 && limits.waitingCount() === 1);
    engine.calls[0]!.finish({ completionTokens: 0 }).end();
    await until(() => engine.calls.length === 2);
    expect(limits.runningCount()).toBe(1);
    engine.calls[1]!.finish({ completionTokens: 0 }).end();
    expect((await Promise.all([first, second])).map(({ status }) => status)).toEqual([200, 200]);
    await until(() => limits.runningCount() === 0);
  });

  test("a client that leaves frees its place, whether it waits or runs, however large its body is", async () => {
    const engine = new ScriptedEngine();
    gateway = startGateway(["--max-concurrent-requests", "1"], engine);
    const { limits, url } = gateway;
    const clients = [new AbortController(), new AbortController(), new AbortController()];
    const large = JSON.stringify({ model: MODEL, messages: [{ role: "user", content: "word ".repeat(600_000) }] });
    const failed = (answer: Promise<Response>) =>
      answer.then(
        () => "answered",
        () => "failed",
      );
    const gone = [failed(ask(gateway, "/v1/chat/completions", clients[0]!.signal))];
    await until(() => engine.calls.length === 1);
    gone.push(failed(ask(gateway, "/v1/chat/completions", clients[1]!.signal)));
    const headers = { "content-type": "application/json" };
    const { signal } = clients[2]!;
    gone.push(failed(fetch(`${url}/v1/chat/completions`, { method: "POST", headers, body: large, signal })));
    await until(() => limits.waitingCount() === 2);
    await Bun.sleep(100); // the large body is there
    clients[1]!.abort();
    clients[2]!.abort();
    await until(() => limits.waitingCount() === 0);
    expect(engine.calls.length).toBe(1);
    clients[0]!.abort();
    await until(() => limits.runningCount() === 0);
    expect(await Promise.all(gone)).toEqual(["failed", "failed", "failed"]);
  });

  test("bodies that are refused free their places", async () => {
    gateway = startGateway(["--max-concurrent-requests", "2"]);
    const { url, limits } = gateway;
    for (const body of [
      "{",
      "[]",
      JSON.stringify({ model: MODEL }),
      JSON.stringify({ model: "nobody", messages: [] }),
    ]) {
      const headers = { "content-type": "application/json" };
      const { status } = await fetch(`${url}/v1/chat/completions`, { method: "POST", headers, body });
      expect(status).toBeGreaterThanOrEqual(400);
    }
    expect((await ask(gateway, "/v1/embeddings/")).status).toBeGreaterThanOrEqual(400);
    await until(() => limits.runningCount() === 0);
  });
});
