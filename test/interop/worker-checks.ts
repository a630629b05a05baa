/** Which scripted engines the gateway takes as workers and which not, and what it learns of them. */
import { deepEqual, equal, match, ok } from "node:assert/strict";
import { ask } from "../engines/answer.ts";
import { type RunningServer, ServerStartError, startGateway } from "../engines/servers.ts";
import { type InteropDialect, type Release, reaches, refuses } from "./dialects.ts";
import { bundleFolder, ScriptedEngine } from "./scripted-engine.ts";
import type { Suite } from "./suite.ts";

/** Long enough for several tries of a worker that is refused. */
const NOT_READY_MS = 2500;

/** The scripted engines fail on purpose: each failure has to be seen, not avoided. */
const NO_SECOND_TRY = ["--disable-retries", "--disable-circuit-breaker", "--disable-health-check"];

/** A peer of one dialect and release. */
export interface Peer {
  readonly python: string;
  readonly dialect: InteropDialect;
  readonly release: Release;
  /** Flags for the gateway. */
  readonly flags: readonly string[];
}

/** The gateway in front of a scripted engine. */
export function gatewayOf(engine: ScriptedEngine, peer: Peer, limitMs?: number): Promise<RunningServer> {
  const { dialect, release, flags } = peer;
  const files = reaches(release, dialect.bundleSince) ? [] : ["--model-path", bundleFolder];
  return startGateway(engine.url, [...NO_SECOND_TRY, ...files, ...flags], limitMs);
}

async function neverReady(peer: Peer, engineFlags: readonly string[], words: RegExp): Promise<void> {
  const engine = await ScriptedEngine.start(peer.python, peer.dialect.name, engineFlags);
  try {
    const gateway = await gatewayOf(engine, peer, NOT_READY_MS).catch((error: unknown) => error);
    if (!(gateway instanceof ServerStartError)) {
      await (gateway as RunningServer).stop();
      throw new Error("the gateway took it as ready");
    }
    match(gateway.message, words);
    match(gateway.message, /was not ready/);
  } finally {
    await engine.stop();
  }
}

async function withEngine(
  peer: Peer,
  engineFlags: readonly string[],
  use: (engine: ScriptedEngine, url: string) => Promise<void>,
): Promise<void> {
  const engine = await ScriptedEngine.start(peer.python, peer.dialect.name, engineFlags);
  try {
    const gateway = await gatewayOf(engine, peer);
    try {
      await use(engine, gateway.url);
    } finally {
      await gateway.stop();
    }
  } finally {
    await engine.stop();
  }
}

/** Engines that are not as they should be, or not as most are. */
export async function workerChecks(suite: Suite, peer: Peer): Promise<void> {
  const { dialect, release } = peer;
  if (dialect.name === "vllm")
    await suite.check("worker whose tokenizer bundle has a wrong digest: not ready", () =>
      neverReady(peer, ["--bad-digest"], /digest/),
    );
  await suite.check("worker that says it is not healthy: not ready", () =>
    neverReady(peer, ["--unhealthy"], /not healthy|not serving/),
  );
  await suite.check("without reflection: found, and what it may lack is refused", () =>
    withEngine(peer, ["--no-reflection"], async (engine, url) => {
      await engine.play({ chunk: [9707] }, { complete: "stop" });
      const body = { model: dialect.model, messages: [{ role: "user", content: "x" }], max_tokens: 5 };
      const plain = await ask(url, body);
      equal(plain.choices[0]?.text, "Hello", plain.error ?? "no error");
      equal((await ask(url, { ...body, seed: 1 })).status, refuses(dialect, release, "seed") ? 400 : 200);
    }),
  );
  if (dialect.embeds)
    await suite.check("embeddings", () =>
      withEngine(peer, ["--pooling"], async (engine, url) => {
        await engine.play();
        const { status, body } = await post(url, "/v1/embeddings", { model: dialect.model, input: "Hello" });
        equal(status, 200, JSON.stringify(body));
        const data = body["data"] as { embedding: number[] }[];
        deepEqual(
          data[0]?.embedding.map((value) => Math.round(value * 1e6) / 1e6),
          [0.6, 0.8],
        );
        const { request_ids: ids } = await engine.next("embed", 1000);
        ok(ids?.includes(9707), `ids ${ids}`);
      }),
    );
}

async function post(
  url: string,
  path: string,
  body: object,
): Promise<{ status: number; body: Record<string, unknown> }> {
  const response = await fetch(url + path, {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: JSON.stringify(body),
  });
  return { status: response.status, body: (await response.json()) as Record<string, unknown> };
}

/** The model and the worker as the gateway shows them. */
export async function modelChecks(suite: Suite, url: string, { dialect, release }: Peer): Promise<void> {
  await suite.check("model list shows the engine's served name", async () => {
    const response = await fetch(`${url}/v1/models`);
    equal(response.status, 200);
    const { data } = (await response.json()) as { data: { id: string; object: string }[] };
    deepEqual(
      data.map(({ id, object }) => [id, object]),
      [[dialect.model, "model"]],
    );
  });
  await suite.check("another model: 404", async () => {
    equal((await ask(url, { model: "nobody", messages: [{ role: "user", content: "x" }] })).status, 404);
  });
  await suite.check("loads", async () => {
    const response = await fetch(`${url}/get_loads`);
    equal(response.status, 200);
    const text = await response.text();
    if (dialect.loads) match(text, /"num_running_reqs":3/);
    else ok(!text.includes("num_running_reqs"), text);
  });
  await suite.check("flush of the cache", async () => {
    const { status, body } = await post(url, "/flush_cache", {});
    equal(status, reaches(release, dialect.flushSince) ? 200 : 206, JSON.stringify(body));
  });
}
