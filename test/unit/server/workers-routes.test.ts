/** The workers' API and what is asked of all workers at once, over HTTP, on a registry whose workers are scripted. */
import { afterEach, describe, expect, test } from "bun:test";
import { testControl } from "../../support/control.ts";
import { A, B, lifeWorld, rank } from "../fleet/life-world.ts";
import { type Gateway, startGateway } from "./gateway.ts";

let gateway: Gateway | undefined;
afterEach(async () => {
  await gateway?.stop();
  gateway = undefined;
});

function start(args: string[] = []) {
  const world = lifeWorld();
  const opened = startGateway(args, undefined, undefined, undefined, { ...testControl, admin: world.admin });
  gateway = opened;
  const ask = async (method: string, path: string, body?: unknown, headers: Record<string, string> = {}) => {
    const response = await fetch(opened.url + path, {
      method,
      headers: { ...(body !== undefined && { "content-type": "application/json" }), ...headers },
      ...(body !== undefined && { body: JSON.stringify(body) }),
    });
    return { status: response.status, headers: response.headers, body: (await response.json()) as never };
  };
  return { ...world, ask };
}

const UUID = /^[0-9a-f]{8}-[0-9a-f]{4}-[47][0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/;

describe("/workers", () => {
  test("a worker is added, shown while it starts and when it serves, changed, and removed", async () => {
    const { ask, clock, script } = start();
    script(A).problem = "still loading";
    const added = await ask("POST", "/workers", {
      url: A,
      runtime_type: "vllm",
      labels: { zone: "a" },
      priority: 60,
      api_key: "secret",
      health: { check_interval_secs: 10 },
      kv_connector: "NixlConnector",
      dp_size: null,
    });
    const { worker_id: id } = added.body as { worker_id: string };
    expect(added.status).toBe(202);
    expect(id).toMatch(UUID);
    expect(added.headers.get("location")).toBe(`/workers/${id}`);
    expect(added.body as unknown).toEqual({
      status: "accepted",
      worker_id: id,
      url: A,
      location: `/workers/${id}`,
      message: expect.any(String),
    });

    await clock.pass(500);
    const starting = await ask("GET", `/workers/${id}`);
    expect(starting.body as unknown).toEqual({
      id,
      url: A,
      models: [],
      worker_type: "regular",
      connection_mode: "grpc",
      runtime_type: "vllm",
      labels: { zone: "a" },
      priority: 60,
      cost: 1,
      health: { check_interval_secs: 10 },
      kv_connector: "NixlConnector",
      is_healthy: false,
      status: "pending",
      load: 0,
      job_status: {
        job_type: "AddWorker",
        worker_url: A,
        status: "processing",
        message: "still loading",
        timestamp: Math.floor(clock.now() / 1000),
      },
    });

    script(A).problem = undefined;
    await clock.pass(1000);
    const ready = await ask("GET", `/workers/${id}`);
    expect(ready.body as unknown).toMatchObject({
      is_healthy: true,
      status: "ready",
      model_id: "served",
      models: [{ id: "served" }],
    });
    expect(Object.keys(ready.body as object)).not.toContain("job_status");

    const patched = await ask("PATCH", `/workers/${id}`, { cost: 2.5 });
    expect([patched.status, patched.body as unknown]).toEqual([
      202,
      { status: "accepted", worker_id: id, message: expect.any(String) },
    ]);
    expect((await ask("GET", `/workers/${id}`)).body as unknown).toMatchObject({ cost: 2.5, priority: 60 });

    expect((await ask("PUT", `/workers/${id}`, { url: A })).status).toBe(202);
    await clock.pass(1000);
    const replaced = (await ask("GET", `/workers/${id}`)).body as object;
    expect(replaced).toMatchObject({ status: "ready", priority: 50, labels: {} });
    expect((await ask("PUT", `/workers/${id}`, { ...replaced, priority: 10 })).status).toBe(202); // what was shown
    await clock.pass(1000);
    expect((await ask("GET", `/workers/${id}`)).body as unknown).toEqual({ ...replaced, priority: 10 });

    expect((await ask("DELETE", `/workers/${id}`)).status).toBe(202);
    await clock.pass(1000);
    expect(await ask("GET", `/workers/${id}`)).toMatchObject({ status: 404, body: { code: "WORKER_NOT_FOUND" } });
  });

  test("the list counts by role and shows those of one model", async () => {
    const { ask, clock, script } = start();
    script(B).model = "other";
    await ask("POST", "/workers", { url: A });
    await ask("POST", "/workers", { url: B, worker_type: "prefill", bootstrap_port: 8998 });
    await ask("POST", "/workers", { url: "10.0.0.3:50051", connection_mode: "grpc", worker_type: "encode" });
    await clock.pass(10);
    const all = await ask("GET", "/workers");
    expect(all.body as unknown).toMatchObject({
      total: 3,
      stats: { prefill_count: 1, decode_count: 0, regular_count: 1 },
      workers: [{ url: A }, { url: B, bootstrap_port: 8998 }, { url: "grpc://10.0.0.3:50051" }],
    });
    const one = await ask("GET", "/workers?model=other");
    expect(one.body as unknown).toMatchObject({
      total: 1,
      stats: { prefill_count: 1, decode_count: 0, regular_count: 0 },
      workers: [{ url: B }],
    });
  });

  test.each<[unknown, string]>([
    [{}, "url is missing"],
    [{ url: "ftp://a:1" }, "no address"],
    [{ url: "grpc://a" }, "no address"],
    [{ url: A, worker_type: "boss" }, "worker_type"],
    [{ url: A, priority: -1 }, "priority"],
    [{ url: A, labels: { a: 1 } }, "labels.a"],
    [{ url: A, health: { timeout_secs: 0 } }, "health.timeout_secs"],
    [{ url: A, health: { disable_health_check: "no" } }, "health.disable_health_check"],
    [{ url: A, health: { interval: 1 } }, "health.interval"],
    [{ url: A, health: { endpoint: "healthz" } }, "health.endpoint"],
    [{ url: A, models: [{ name: "a" }] }, "models"],
    [{ url: A, api_key: "" }, "api_key"],
    [{ url: A, api_key: "two\nlines" }, "api_key"],
    [{ url: A, colour: "red" }, "colour"],
  ])("%j is refused with what is wrong", async (body, told) => {
    const { ask } = start();
    const answer = await ask("POST", "/workers", body);
    expect(answer).toMatchObject({ status: 400, body: { code: "BAD_REQUEST", error: expect.stringContaining(told) } });
    expect((await ask("GET", "/workers")).body as unknown).toMatchObject({ total: 0 });
  });

  test("the same address twice is 409, an id that is none 400, an unknown one 404", async () => {
    const { ask } = start();
    const { worker_id: id } = (await ask("POST", "/workers", { url: A })).body as { worker_id: string };
    const again = await ask("POST", "/workers", { url: "GRPC://10.0.0.1:50051/" });
    expect(again).toMatchObject({ status: 409, body: { code: "WORKER_ALREADY_EXISTS" } });
    const unknown = "01234567-89ab-4cde-8f01-23456789abcd";
    for (const [method, body] of [
      ["GET", undefined],
      ["DELETE", undefined],
      ["PUT", { url: A }],
      ["PATCH", {}],
    ] as const) {
      expect(await ask(method, "/workers/nobody", body)).toMatchObject({ status: 400, body: { code: "BAD_REQUEST" } });
      expect(await ask(method, `/workers/${unknown}`, body)).toMatchObject({
        status: 404,
        body: { code: "WORKER_NOT_FOUND" },
      });
    }
    const elsewhere = await ask("PUT", `/workers/${id}`, { url: B });
    expect(elsewhere).toMatchObject({ status: 400, body: { code: "BAD_REQUEST" } });
    expect(await ask("PATCH", `/workers/${id}`, { url: B })).toMatchObject({ status: 400 });
  });

  test("needs the gateway's key, if there is one", async () => {
    const { ask } = start(["--api-key", "key"]);
    expect(await ask("GET", "/workers")).toMatchObject({ status: 401, body: { code: "INVALID_API_KEY" } });
    expect((await ask("POST", "/flush_cache")).status).toBe(401);
    expect((await ask("GET", "/workers", undefined, { authorization: "Bearer key" })).status).toBe(200);
  });
});

describe("all workers at once", () => {
  async function two() {
    const world = start();
    await world.ask("POST", "/workers", { url: A });
    await world.ask("POST", "/workers", { url: B });
    await world.clock.pass(10);
    return world;
  }

  test("loads; a worker that does not tell has -1", async () => {
    const { ask, script } = await two();
    script(A).loads = [
      rank({ running: 2, waiting: 1, usedTokens: 300, capacityTokens: 1000, tokenUsage: 0.3, throughput: 12.5 }),
      rank({ rank: 1, usedTokens: 50 }),
    ];
    const { body } = await ask("GET", "/get_loads");
    expect(body as unknown).toEqual({
      workers: [
        {
          worker: A,
          load: 350,
          details: {
            timestamp: expect.stringMatching(/^\d{4}-\d\d-\d\dT/),
            dp_rank_count: 2,
            loads: [
              {
                dp_rank: 0,
                num_running_reqs: 2,
                num_waiting_reqs: 1,
                num_waiting_uncached_tokens: 0,
                num_total_reqs: 3,
                num_used_tokens: 300,
                max_total_num_tokens: 1000,
                token_usage: 0.3,
                gen_throughput: 12.5,
                cache_hit_rate: 0,
                utilization: 0,
                max_running_requests: 0,
              },
              expect.objectContaining({ dp_rank: 1, num_used_tokens: 50 }),
            ],
          },
        },
        { worker: B, load: -1 },
      ],
    });
  });

  test("flushing tells who did it; 206 where one failed", async () => {
    const { ask, script } = await two();
    const whole = await ask("POST", "/flush_cache?timeout=5");
    expect([whole.status, whole.body as unknown]).toEqual([
      200,
      {
        status: "success",
        message: "2 of 2 workers flushed",
        workers_flushed: 2,
        total_http_workers: 0,
        total_grpc_workers: 2,
        total_zmq_workers_skipped: 0,
        total_workers: 2,
        successful: [A, B],
      },
    ]);
    script(B).refuses = "requests are running";
    const partly = await ask("POST", "/flush_cache");
    expect([partly.status, partly.body as unknown]).toEqual([
      206,
      expect.objectContaining({
        status: "partial_success",
        workers_flushed: 1,
        total_workers: 2,
        successful: [A],
        failed: [{ worker: B, error: "requests are running" }],
      }),
    ]);
    expect((await ask("POST", "/flush_cache?timeout=soon")).status).toBe(400);
  });

  test("profiling of one, of all, of none", async () => {
    const { ask } = await two();
    const one = await ask("POST", "/start_profile", { url: A, num_steps: 3, activities: ["CPU"] });
    expect([one.status, one.body as unknown]).toEqual([
      200,
      {
        status: "success",
        message: expect.any(String),
        workers_profiled: 1,
        total_workers: 1,
        successful: [A],
      },
    ]);
    expect((await ask("POST", "/stop_profile")).body as unknown).toMatchObject({ workers_profiled: 2 });
    expect((await ask("POST", "/stop_profile", { url: "grpc://10.9.9.9:1" })).status).toBe(404);
    const wrong = { error: expect.any(String), code: "BAD_REQUEST" };
    const none = { error: "No worker has this address", code: "WORKER_NOT_FOUND" };
    for (const [path, body, status, error] of [
      ["/start_profile", { num_steps: 0 }, 400, wrong],
      ["/stop_profile", { url: 1 }, 400, wrong],
      ["/stop_profile", { url: "grpc://10.0.0.9:1" }, 404, none],
      ["/flush_cache?timeout=soon", undefined, 400, wrong],
    ] as const) {
      const answer = await ask("POST", path, body);
      expect([answer.status, answer.body as unknown]).toEqual([status, error]);
    }
  });
});
