/** Workers that come, change and go while the gateway serves, through its API. */
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { BUILD_MS } from "./support/binary.ts";
import { chat, eventually, type Program, start, startEngine, type TestEngine, user } from "./support/processes.ts";

const SCRIPT = `
- contains: slow stream
  text: "one two three four five six seven eight nine ten"
  ms_per_token: 100
- contains: endless
  text: "${"on and ".repeat(400)}"
  ms_per_token: 100
`;

interface Worker {
  readonly id: string;
  readonly url: string;
  readonly status: string;
  readonly is_healthy: boolean;
  readonly load: number;
  readonly job_status?: { readonly status: string; readonly message?: string };
}

describe.each([1, 2])("with %i thread(s)", (threads) => {
  let first: TestEngine;
  let second: TestEngine;
  let program: Program;
  let url: string;

  beforeAll(async () => {
    [first, second] = await Promise.all([startEngine(SCRIPT), startEngine(SCRIPT)]);
    program = start(["serve", "--host", "127.0.0.1", "--port", "0", "--threads", String(threads), "--log-json"]);
    const [, port] = await program.until(/"message":"listening","url":"http:\/\/127\.0\.0\.1:(\d+)"/);
    url = `http://127.0.0.1:${port}`;
  }, BUILD_MS);
  afterAll(async () => {
    await program?.stop();
    await Promise.all([first?.stop(), second?.stop()]);
  }, 20_000);

  const ask = async (method: string, path: string, body?: object) => {
    const response = await fetch(url + path, {
      method,
      ...(body !== undefined && {
        headers: { "content-type": "application/json" },
        body: JSON.stringify(body),
      }),
    });
    return { status: response.status, body: (await response.json()) as unknown };
  };
  const workers = async () => ((await ask("GET", "/workers")).body as { workers: Worker[] }).workers;
  const add = async (engine: TestEngine) => {
    const { status, body } = await ask("POST", "/workers", { url: engine.url });
    expect(status).toBe(202);
    return (body as { worker_id: string }).worker_id;
  };
  const say = async (content: string) => {
    const response = await chat({ url }, { model: "collie-demo", messages: user(content), max_tokens: 20 });
    await response.text();
    return response.status;
  };

  test("begins with none, and every thread serves as soon as one is ready", async () => {
    expect((await fetch(`${url}/readiness`)).status).toBe(503);
    expect(await say("hello")).toBe(404);
    const id = await add(first);
    await eventually(async () => ((await ask("GET", `/workers/${id}`)).body as Worker).is_healthy, 10_000);
    for (let i = 0; i < 8; i++) expect(await say(`hello ${i}`)).toBe(200);
    expect(((await ask("GET", `/workers/${id}`)).body as Worker).job_status).toBeUndefined();
  });

  test("a worker that leaves ends what it has begun, and gets nothing new", async () => {
    await add(second);
    await eventually(async () => (await workers()).every(({ status }) => status === "ready"), 10_000);
    const running = Promise.all(Array.from({ length: 4 }, () => say("a slow stream please")));
    const open = async () => (await Promise.all([first.stats(), second.stats()])).map((stats) => stats.open);
    await eventually(async () => (await open()).every((count) => count === 2), 5000);
    const { id } = (await workers()).find((worker) => worker.url === first.url)!;
    expect((await ask("DELETE", `/workers/${id}`)).status).toBe(202);
    const leaving = (await ask("GET", `/workers/${id}`)).body as Worker;
    expect(leaving).toMatchObject({ status: "draining", load: 2, job_status: { job_type: "RemoveWorker" } });
    const { received } = await first.stats();
    expect(await running).toEqual([200, 200, 200, 200]);
    await eventually(async () => (await workers()).every((worker) => worker.url === second.url), 5000);
    for (let i = 0; i < 6; i++) expect(await say(`hello ${i}`)).toBe(200);
    expect((await first.stats()).received).toBe(received);
    expect((await first.stats()).abortedByCancel + (await first.stats()).abortedByRpc).toBe(0);
  }, 15_000);

  test("it comes back, is replaced under load, and no request notices", async () => {
    const id = await add(first);
    await eventually(async () => (await workers()).every(({ status }) => status === "ready"), 10_000);
    let over = false;
    const statuses: number[] = [];
    const clients = Array.from({ length: 4 }, async (_, client) => {
      for (let i = 0; !over; i++) statuses.push(await say(`hello ${client} ${i}`));
    });
    for (let i = 0; i < 3; i++) {
      const replaced = await ask("PUT", `/workers/${id}`, { url: first.url, priority: 40 + i });
      expect(replaced.status).toBe(202);
      await eventually(async () => {
        const worker = (await ask("GET", `/workers/${id}`)).body as Worker & { priority: number };
        return worker.priority === 40 + i && worker.status === "ready";
      }, 10_000);
      await eventually(() => statuses.length >= 8 * (i + 1), 10_000);
    }
    over = true;
    await Promise.all(clients);
    expect(new Set(statuses)).toEqual(new Set([200]));
  }, 40_000);

  test("why a worker is not ready is told, and one that is wrong is refused", async () => {
    const { body } = await ask("POST", "/workers", { url: "grpc://127.0.0.1:9" });
    const { worker_id: id } = body as { worker_id: string };
    await eventually(async () => {
      const { job_status: job } = (await ask("GET", `/workers/${id}`)).body as Worker;
      return job?.status === "processing" && (job.message ?? "") !== "";
    }, 5000);
    expect((await ask("POST", "/workers", { url: first.url })).status).toBe(409);
    expect((await ask("DELETE", `/workers/${id}`)).status).toBe(202);
    expect(await say("hello")).toBe(200);
  });

  test("all of them are asked for their load", async () => {
    const { status, body } = await ask("GET", "/get_loads");
    expect(status).toBe(200);
    const told = body as { workers: { worker: string }[] };
    expect(told.workers.map(({ worker }) => worker).toSorted()).toEqual([first.url, second.url].toSorted());
  });
});

test("what is cut when a removed worker's time is over is told that, not that the engine cannot be reached", async () => {
  const engine = await startEngine(SCRIPT);
  const listening = /"message":"listening","url":"(http:[^"]+)"/;
  const program = start([
    "serve",
    "--host",
    "127.0.0.1",
    "--port",
    "0",
    "--log-json",
    "--drain-timeout-secs",
    "1",
    "--worker-urls",
    engine.url,
  ]);
  try {
    const [, url = ""] = await program.until(listening);
    await eventually(async () => (await fetch(`${url}/readiness`)).status === 200, 10_000);
    const asked = chat({ url }, { model: "collie-demo", messages: user("an endless answer"), max_tokens: 400 });
    await eventually(async () => (await engine.stats()).open === 1, 5000);
    const { workers } = (await (await fetch(`${url}/workers`)).json()) as { workers: Worker[] };
    expect((await fetch(`${url}/workers/${workers[0]!.id}`, { method: "DELETE" })).status).toBe(202);
    const answer = await asked;
    expect([answer.status, await answer.json()]).toMatchObject([
      503,
      { error: { code: "engine_unavailable", message: "The worker was removed before it had finished the answer" } },
    ]);
  } finally {
    await program.stop();
    await engine.stop();
  }
}, 40_000);
