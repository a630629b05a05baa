/** One model of workers of both kinds: requests go to the one that is loaded least, whatever it speaks. */
import { afterEach, expect, test } from "bun:test";
import type { Simulator } from "../../../src/simulator/simulator.ts";
import { startSimulator } from "../../../src/simulator/simulator.ts";
import { type Answer, openAiServer } from "../../support/openai-server.ts";
import { modelEntry } from "../../unit/server/gateway.ts";
import { settings, TABLES } from "../simulator/harness.ts";
import { type HttpGateway, startHttpGateway } from "./gateway.ts";

const MODEL = "collie-demo";
const CHAT = { model: MODEL, max_tokens: 8, messages: [{ role: "user", content: "hello there" }] };

const opened: { stop(): unknown }[] = [];
afterEach(async () => {
  for (const one of opened.splice(0).reverse()) await one.stop();
});

async function both(
  answer: Answer,
  args: readonly string[] = [],
): Promise<{ engine: Simulator; worker: ReturnType<typeof openAiServer>; front: HttpGateway }> {
  const engine = await startSimulator(settings({ speed: "instant" }), { tokenizerCacheDir: TABLES });
  const worker = openAiServer(answer, { ids: [MODEL] });
  const grpc = { url: `grpc://127.0.0.1:${engine.port}`, entry: modelEntry({ id: MODEL, aliases: ["demo"] }) };
  const front = await startHttpGateway({ http: [worker.url], grpc, aliases: ["demo"], args });
  opened.push(engine, worker, front);
  return { engine, worker, front };
}

test("both take requests in turn; a busy one gets none; the APIs that need tokens go to the one that takes them", async () => {
  let go = Promise.withResolvers<void>();
  go.resolve();
  const { engine, worker, front } = await both(async () => {
    await go.promise;
    return Response.json({ by: "http" });
  });
  const by = async (path: string, body: object): Promise<string> => {
    const reply = await front.post(path, body);
    expect(reply.status).toBe(200);
    return ((await reply.json()) as { by?: string }).by ?? "tokens";
  };
  const turns = [];
  for (let i = 0; i < 4; i++) turns.push(await by("/v1/chat/completions", CHAT));
  expect(turns.toSorted()).toEqual(["http", "http", "tokens", "tokens"]);

  go = Promise.withResolvers<void>();
  const asked = worker.asked.length;
  const asking: Promise<string>[] = [];
  while (worker.asked.length === asked) {
    asking.push(by("/v1/chat/completions", { ...CHAT, model: "demo" }));
    await Bun.sleep(50);
  }
  for (let i = 0; i < 3; i++)
    expect(await by("/v1/completions", { model: MODEL, prompt: "x", max_tokens: 4 })).toBe("tokens");
  go.resolve();
  await Promise.all(asking);

  const before = worker.asked.length;
  for (let i = 0; i < 2; i++) expect((await front.post("/v1/messages", CHAT)).status).toBe(200);
  expect(worker.asked.length).toBe(before);
  expect(engine.stats().received).toBeGreaterThan(6);
  expect(front.running()).toBe(0);
});

test("where nobody of the one kind can be reached, the other kind answers, streamed and whole", async () => {
  const { engine, worker, front } = await both(() => Response.json({ by: "http" }));
  await worker.stop();
  for (const stream of [true, false, true, false]) {
    const reply = await front.post("/v1/chat/completions", { ...CHAT, stream });
    expect([reply.status, await reply.text()]).toEqual([200, expect.stringContaining("simulated")]);
  }
  await engine.stop();
  const other = await both(() => Response.json({ by: "http" }));
  await other.engine.stop();
  for (const stream of [true, false, true, false]) {
    const reply = await other.front.post("/v1/chat/completions", { ...CHAT, stream });
    expect([reply.status, await reply.json()]).toEqual([200, { by: "http" }]);
  }
  expect(other.front.running()).toBe(0);
});

test("a prompt goes where its beginning is cached, whichever kind has it, and is explained so", async () => {
  const { engine, worker, front } = await both(() => Response.json({ by: "http" }));
  const [http, grpc] = [worker.url, `grpc://127.0.0.1:${engine.port}`];
  const texts = ["one", "two"].map((word) => `${word} `.repeat(400));
  const ask = (text: string, more: string, headers: Record<string, string> = {}) =>
    front.post("/v1/completions", { model: MODEL, prompt: text + more, max_tokens: 4 }, { headers });
  await ask(texts[0]!, "", { "x-smg-target-worker": http });
  await ask(texts[1]!, "", { "x-smg-target-worker": grpc });
  for (let i = 0; i < 3; i++)
    for (const [at, by] of ["http", undefined].entries()) {
      const reply = await ask(texts[at]!, `and ${i}`);
      expect(((await reply.json()) as { by?: string }).by).toBe(by);
    }
  for (const [at, url] of [http, grpc].entries()) {
    const reply = await front.post("/routing/explain", { model: MODEL, prompt: `${texts[at]!}and more` });
    const { branch, chosen, candidates } = (await reply.json()) as {
      branch: string;
      chosen: string;
      candidates: { id: string; url: string; score: number; matchedTokens: number }[];
    };
    expect([branch, candidates.find(({ id }) => id === chosen)?.url]).toEqual(["hit", url]);
    expect(candidates.map((candidate) => candidate.url).toSorted()).toEqual([grpc, http].toSorted());
    const [best, other] = candidates.toSorted((a, b) => a.score - b.score);
    expect([best!.url, best!.matchedTokens > 300, other!.matchedTokens]).toEqual([url, true, 0]);
  }
  expect(front.running()).toBe(0);
});

test("what only those over HTTP understand goes to them", async () => {
  const { front } = await both(() => Response.json({ by: "http" }));
  for (let i = 0; i < 4; i++) {
    const reply = await front.post("/v1/chat/completions", { ...CHAT, cache_salt: "a tenant" });
    expect([reply.status, await reply.json()]).toEqual([200, { by: "http" }]);
  }
});

test("what is wrong with a request is told by the kind that got it", async () => {
  const { front } = await both(() => new Response('{"error":{"message":"no"}}', { status: 400 }));
  const statuses = [];
  for (let i = 0; i < 4; i++) {
    for (let sent = 0; sent < i; sent++) await front.post("/v1/chat/completions", CHAT); // with each the turn goes on
    const reply = await front.post("/v1/chat/completions", { ...CHAT, messages: [] });
    const { error } = (await reply.json()) as { error: { message: string } };
    statuses.push(`${reply.status} ${error.message === "no" ? "http" : "tokens"}`);
  }
  expect(new Set(statuses)).toEqual(new Set(["400 http", "400 tokens"]));
});

test("a worker that a client names answers, of whichever kind it is and whoever has less to do", async () => {
  const oneAtATime = ["--max-concurrent-requests", "1", "--queue-size", "0"];
  const { engine, worker, front } = await both(() => Response.json({ by: "http" }), oneAtATime);
  const [http, grpc] = [worker.url, `grpc://127.0.0.1:${engine.port}`];
  for (const [target, by] of [http, grpc, grpc, grpc, http, http].map((url) => [
    url,
    url === http ? "http" : undefined,
  ])) {
    const reply = await front.post("/v1/chat/completions", CHAT, { headers: { "x-smg-target-worker": target! } });
    expect(reply.status).toBe(200);
    expect(((await reply.json()) as { by?: string }).by).toBe(by);
  }
  const refused = await front.post("/v1/chat/completions", CHAT, { headers: { "x-smg-target-worker": "nobody" } });
  expect(refused.status).toBe(503);
  await refused.text();
  expect((await front.post("/v1/chat/completions", CHAT)).status).toBe(200); // it is over
});
