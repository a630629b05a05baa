/** The adapter of HTTP engines, against the simulated engine's servers and against servers that misbehave. */
import { describe, expect, test } from "bun:test";
import { EngineError } from "../../../src/engines/engine.ts";
import { Feature } from "../../../src/engines/features.ts";
import { connectHttpEngine, createHttpEngine } from "../../../src/engines/http/create.ts";
import type { HttpAsk, HttpEngine } from "../../../src/engines/http/engine.ts";
import type { SimulatorOptions } from "../../../src/simulator/options.ts";
import { startSimulator } from "../../../src/simulator/simulator.ts";
import { ca, elsewhereCert, otherCa, serverCert, serverKey } from "../../support/certificates.ts";
import { type Answer, openAiServer, rawServer, streamed } from "../../support/openai-server.ts";
import { settings, TABLES } from "../simulator/harness.ts";

const SECOND = 1000;
const never = new AbortController().signal;

async function withEngine(
  changed: Partial<SimulatorOptions>,
  body: (engine: HttpEngine, url: string) => Promise<void>,
  apiKey?: string,
): Promise<void> {
  const peer = await startSimulator(settings({ dialect: "openai", speed: "instant", ...changed }), {
    tokenizerCacheDir: TABLES,
  });
  const url = `http://127.0.0.1:${peer.port}`;
  try {
    const engine = await connectHttpEngine(url, { deadlineMs: SECOND, apiKey });
    await body(engine, url);
    engine.close();
  } finally {
    await peer.stop();
  }
}

const ask = (endpoint: HttpAsk["endpoint"], body: object): HttpAsk => ({
  endpoint,
  body: JSON.stringify(body),
  headers: {},
});
const chat = ask("/v1/chat/completions", { model: "m", messages: [] });
const kindOf = (failing: Promise<unknown>): Promise<string> =>
  failing.then(
    () => "resolved",
    (error: unknown) => (error instanceof EngineError ? error.kind : `no EngineError: ${error}`),
  );

/** The facts of an engine that nobody has asked. */
async function factsOfNobody() {
  const server = openAiServer(() => new Response());
  const { facts } = await connectHttpEngine(server.url, { deadlineMs: SECOND });
  await server.stop();
  return facts;
}
const FACTS = await factsOfNobody();

describe("registration", () => {
  for (const flavor of ["vllm", "sglang", "llamacpp", "ollama"] as const)
    test(`${flavor}: who it is, its models, its health, its load`, () =>
      withEngine({ flavor }, async (engine) => {
        expect(engine.facts.dialect).toBe("openai");
        expect(engine.facts.labels["runtime_type"]).toBe(flavor);
        const [model] = await engine.models(SECOND);
        expect(model!.id).toBe("collie-demo");
        expect(model!.contextLength > 0).toBe(flavor !== "ollama");
        expect(await engine.serving(SECOND)).toBe(flavor === "ollama" ? "unimplemented" : "serving");
        const tellsLoad = flavor !== "ollama";
        expect((engine.facts.features & Feature.loads) !== 0).toBe(tellsLoad);
        if (!tellsLoad) expect(await kindOf(engine.loads(SECOND))).toBe("unimplemented");
        else expect(await engine.loads(SECOND)).toEqual([expect.objectContaining({ rank: 0, running: 0, waiting: 0 })]);
      }));

  test("a server without a list of models is none; nobody there is unavailable; a dead one is not serving", async () => {
    const page = rawServer((_, out) => {
      out.write("HTTP/1.1 200 OK\r\ncontent-type: text/html\r\ncontent-length: 6\r\n\r\n<html>");
      out.end();
    });
    expect(await kindOf(connectHttpEngine(page.url, { deadlineMs: SECOND }))).toBe("failed");
    page.stop();
    expect(await kindOf(connectHttpEngine(page.url, { deadlineMs: SECOND }))).toBe("unavailable");
    const silent = rawServer(() => {});
    expect(await kindOf(connectHttpEngine(silent.url, { deadlineMs: 50 }))).toBe("timeout");
    silent.stop();
    expect(() => createHttpEngine("http://host/path", FACTS)).toThrow(EngineError);
  });

  test("the key of the worker is its bearer token; without it the reason is told", () =>
    withEngine(
      { apiKey: "sesame" },
      async (engine, url) => {
        expect((await engine.models(SECOND)).length).toBe(1);
        const failure = await connectHttpEngine(url, { deadlineMs: SECOND, apiKey: "other" }).catch((error) => error);
        expect(String(failure)).toContain("--worker-api-key");
      },
      "sesame",
    ));

  test("a model that clients know by another name is asked for by the server's own", async () => {
    const one = await connectedTo(["served"]);
    expect([one.nameOf("served"), one.nameOf("shown")]).toEqual(["served", "served"]);
    const two = await connectedTo(["a", "b"]);
    expect([two.nameOf("b"), two.nameOf("shown")]).toEqual(["b", "a"]);
  });
});

async function connectedTo(ids: string[]): Promise<HttpEngine> {
  const server = openAiServer(() => new Response(), { ids });
  try {
    return await connectHttpEngine(server.url, { deadlineMs: SECOND });
  } finally {
    await server.stop();
  }
}

describe("control", () => {
  test("loads of all shapes", async () => {
    const answers: Record<string, () => Response> = {
      "/metrics": () =>
        new Response(
          '# TYPE vllm:num_requests_running gauge\nvllm:num_requests_running{engine="0",model_name="m"} 3.0\n' +
            'vllm:num_requests_waiting{engine="0",model_name="m"} 2.0\nvllm:kv_cache_usage_perc{engine="0",model_name="m"} 0.25\n' +
            'vllm:num_requests_running{engine="1",model_name="m"} 1.0\n',
        ),
      "/get_load": () => Response.json([{ dp_rank: 1, num_reqs: 5, num_waiting_reqs: 2, num_tokens: 77 }]),
      "/slots": () =>
        Response.json([
          { id: 0, is_processing: true },
          { id: 1, is_processing: false },
        ]),
    };
    const loads = async (owner: string) => {
      const server = openAiServer(({ path }) => answers[path]?.() ?? new Response("", { status: 404 }), { owner });
      const engine = await connectHttpEngine(server.url, { deadlineMs: SECOND });
      try {
        return await engine.loads(SECOND);
      } finally {
        engine.close();
        await server.stop();
      }
    };
    expect(await loads("vllm")).toMatchObject([
      { rank: 0, running: 3, waiting: 2, tokenUsage: 0.25 },
      { rank: 1, running: 1, waiting: 0 },
    ]);
    expect(await loads("sglang")).toMatchObject([{ rank: 1, running: 3, waiting: 2, usedTokens: 77 }]);
    expect(await loads("llamacpp")).toMatchObject([{ running: 1, waiting: 0, maxRunning: 2 }]);
  });

  test("SGLang's loads by their own names", () =>
    withEngine({ flavor: "sglang" }, async (engine) => {
      const [load] = await engine.loads(SECOND);
      expect(load!.capacityTokens).toBeGreaterThan(0);
      expect(load!.waitingUncachedTokens).toBe(0);
    }));

  test("caches are flushed and profiles made where the server can", async () => {
    const server = openAiServer(
      ({ path }) => (path.startsWith("/flush") ? new Response("Cache flushed.") : new Response("", { status: 404 })),
      { owner: "sglang" },
    );
    const engine = await connectHttpEngine(server.url, { deadlineMs: SECOND });
    expect(await engine.flushCache(0, SECOND)).toEqual({ success: true, message: "Cache flushed." });
    expect(await kindOf(engine.startProfile({ numSteps: 3 }, SECOND))).toBe("unimplemented");
    expect(JSON.parse(server.asked.at(-1)!.body)).toEqual({ num_steps: 3 });
    engine.close();
    await server.stop();
  });
});

describe("requests", () => {
  test("go on byte for byte, with the headers they are given and the worker's key", async () => {
    const server = openAiServer(() => Response.json({ ok: true }, { status: 418, headers: { "x-its": "own" } }));
    const engine = createHttpEngine(server.url, FACTS, { apiKey: "k" });
    const body = '{ "model":"m" , "n":1.0, "text":"\u00e9\ud83d\ude00" }';
    const reply = await engine.forward({ endpoint: "/v1/completions", body, headers: { "x-request-id": "r1" } }, never);
    expect([reply.status, reply.headers.get("x-its")]).toEqual([418, "own"]);
    expect(await new Response(reply.body).json()).toEqual({ ok: true });
    const [asked] = server.asked;
    expect([asked!.path, asked!.body]).toEqual(["/v1/completions", body]);
    expect(asked!.headers.get("authorization")).toBe("Bearer k");
    expect(asked!.headers.get("x-request-id")).toBe("r1");
    expect(asked!.headers.get("content-type")).toBe("application/json");
    engine.close();
    await server.stop();
  });

  test("rerank goes to the other path where there is none at /v1", async () => {
    const paths: string[] = [];
    const server = openAiServer(({ path }) => {
      paths.push(path);
      return path === "/rerank" ? Response.json({ results: [] }) : new Response("no", { status: 404 });
    });
    const engine = createHttpEngine(server.url, FACTS);
    expect((await engine.forward(ask("/v1/rerank", {}), never)).status).toBe(200);
    expect(paths).toEqual(["/v1/rerank", "/rerank"]);
    engine.close();
    await server.stop();
    const none = openAiServer(({ path }) => new Response(`not at ${path}`, { status: 404 }));
    const other = createHttpEngine(none.url, FACTS);
    const reply = await other.forward(ask("/v1/rerank", {}), never);
    expect([reply.status, await new Response(reply.body).text()]).toEqual([404, "not at /v1/rerank"]);
    other.close();
    await none.stop();
  });

  test("over TLS they need a certificate of an authority that is trusted, for the server's own name", async () => {
    const answer: Answer = () => Response.json({ ok: true });
    const good = openAiServer(answer, { tls: { cert: serverCert, key: serverKey } });
    const wrong = openAiServer(answer, { tls: { cert: elsewhereCert, key: serverKey } });
    const engine = await connectHttpEngine(good.url, { deadlineMs: SECOND, tls: { ca } });
    for (let i = 0; i < 2; i++) expect((await engine.forward(chat, never)).status).toBe(200);
    engine.close();
    expect(await kindOf(connectHttpEngine(good.url, { deadlineMs: SECOND }))).toBe("unavailable");
    expect(await kindOf(connectHttpEngine(good.url, { deadlineMs: SECOND, tls: { ca: otherCa } }))).toBe("unavailable");
    expect(await kindOf(connectHttpEngine(wrong.url, { deadlineMs: SECOND, tls: { ca } }))).toBe("unavailable");
    await Promise.all([good.stop(), wrong.stop()]);
  });

  test("no redirect is followed", async () => {
    const server = openAiServer(() => new Response(null, { status: 307, headers: { location: "/elsewhere" } }));
    const engine = createHttpEngine(server.url, FACTS);
    expect((await engine.forward(chat, never)).status).toBe(307);
    expect(server.asked.length).toBe(1);
    engine.close();
    await server.stop();
  });

  test("more than 256 run at once", async () => {
    const waiting = Promise.withResolvers<void>();
    const server = openAiServer(async () => {
      await waiting.promise;
      return Response.json({});
    });
    const engine = createHttpEngine(server.url, FACTS);
    const replies = Array.from({ length: 400 }, () => engine.forward(chat, never));
    while (server.asked.length < 400) await Bun.sleep(5);
    waiting.resolve();
    expect((await Promise.all(replies)).every(({ status }) => status === 200)).toBe(true);
    engine.close();
    await server.stop();
  }, 20_000);

  test("a connection that the server closed meanwhile is replaced; one that dies with a fresh request is unavailable", async () => {
    const sent: number[] = [];
    const server = rawServer((_, out, connection) => {
      sent.push(connection);
      if (sent.length === 1) out.write("HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok");
      else if (sent.length === 2)
        out.end(); // as if it had closed before the request came
      else if (sent.length === 3) out.write("HTTP/1.1 200 OK\r\ncontent-length: 5\r\n\r\nagain");
      else out.end();
    });
    const engine = createHttpEngine(server.url, FACTS);
    const text = async () => new Response((await engine.forward(chat, never)).body).text();
    expect(await text()).toBe("ok");
    expect(await text()).toBe("again");
    expect(sent).toEqual([0, 0, 1]);
    engine.close();
    const fresh = createHttpEngine(server.url, FACTS);
    expect(await kindOf(fresh.forward(chat, never))).toBe("unavailable");
    expect(sent).toEqual([0, 0, 1, 2]);
    fresh.close();
    server.stop();
  });

  test("a connection that breaks in the middle of a body is told", async () => {
    const server = rawServer((_, out) => {
      out.write("HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n5\r\nbegun\r\n");
      setTimeout(() => out.end(), 10);
    });
    const engine = createHttpEngine(server.url, FACTS);
    const reader = (await engine.forward(chat, never)).body!.getReader();
    expect(new TextDecoder().decode((await reader.read()).value)).toBe("begun");
    expect(await kindOf(reader.read())).toBe("unavailable");
    engine.close();
    server.stop();
  });

  test("a server that does not accept connections is given up", async () => {
    // RFC 5737: an address that nobody has
    const engine = createHttpEngine("http://192.0.2.1:9", FACTS, { connectTimeoutMs: 30 });
    expect(await kindOf(engine.forward(chat, never))).toBe("unavailable");
    engine.close();
  });
});

describe("a client that leaves", () => {
  for (const when of ["before the head", "in the stream"] as const)
    test(`the engine learns of it: ${when}`, async () => {
      const server = openAiServer(() =>
        streamed(async (out) => {
          for (;;) {
            if (when === "in the stream") out.write("data: x\n\n");
            out.flush();
            await Bun.sleep(5);
          }
        }),
      );
      const slow = openAiServer(async () => {
        await Bun.sleep(10_000);
        return new Response();
      });
      const peer = when === "in the stream" ? server : slow;
      const engine = createHttpEngine(peer.url, FACTS);
      const leaving = new AbortController();
      const reply = engine.forward(chat, leaving.signal);
      const ended =
        when === "in the stream"
          ? reply.then(async ({ body }) => {
              for await (const _ of body!) leaving.abort();
            })
          : reply;
      const kind = kindOf(ended); // it may be over before anybody has been asked, as it is seen here
      while (peer.asked.length === 0) await Bun.sleep(1);
      if (when === "before the head") leaving.abort();
      expect(await kind).toBe("cancelled");
      while (peer.left.length === 0) await Bun.sleep(1);
      engine.close();
      await Promise.all([server.stop(), slow.stop()]);
    });

  test("to cancel the body is enough", async () => {
    const server = openAiServer(() =>
      streamed(async (out) => {
        for (;;) {
          await out.write("data: x\n\n");
          await Bun.sleep(5);
        }
      }),
    );
    const engine = createHttpEngine(server.url, FACTS);
    const { body } = await engine.forward(chat, never);
    await body!.cancel();
    while (server.left.length === 0) await Bun.sleep(1);
    engine.close();
    await server.stop();
  });
});

test("a body that nobody reads stops its server, and 200 MB are not held", async () => {
  let sent = 0;
  const frame = `data: ${"x".repeat(8184)}\n\n`;
  const server = openAiServer(() =>
    streamed(async (out) => {
      for (; sent < 200e6; sent += frame.length) {
        await out.write(frame);
        await out.flush();
      }
    }),
  );
  const engine = createHttpEngine(server.url, FACTS);
  const { body } = await engine.forward(chat, never);
  const reader = body!.getReader();
  await reader.read();
  let before = -1;
  while (sent !== before) {
    before = sent;
    await Bun.sleep(100);
  }
  // most of it lies in the sockets of the system
  expect(sent).toBeLessThan(16e6);
  let read = 0;
  for (let next = await reader.read(); !next.done; next = await reader.read()) read += next.value.length;
  expect(read).toBeGreaterThan(199e6);
  engine.close();
  await server.stop();
}, 20_000);
