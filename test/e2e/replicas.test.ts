/** Several gateways before the same engines: what one learns of their caches, the others know. */
import { afterAll, afterEach, beforeAll, describe, expect, test } from "bun:test";
import type { RouteReport } from "../../src/fleet/explain.ts";
import { hasRedis, ownRedis, type Server, startRedis } from "../contract/history/servers.ts";
import { BUILD_MS } from "./support/binary.ts";
import { eventually, startEngine, startGateway, type TestEngine, type TestGateway } from "./support/processes.ts";

const WAIT_MS = 15_000;
/** Some hundred tokens that begin like no other prompt. */
const promptOf = (number: number): string => `${number}. ${"The quick brown fox jumps over the lazy dog. ".repeat(20)}`;

let engines: TestEngine[];
const gateways: TestGateway[] = [];

beforeAll(async () => {
  engines = await Promise.all([startEngine(), startEngine()]);
}, BUILD_MS);
afterEach(async () => {
  await Promise.all(gateways.splice(0).map((gateway) => gateway.stop()));
}, 20_000);
afterAll(async () => {
  await Promise.all(engines?.map((engine) => engine.stop()) ?? []);
}, 20_000);

async function startPair(args: readonly string[]): Promise<readonly [TestGateway, TestGateway]> {
  const pair = await Promise.all([
    startGateway(engines, ["--threads", "2", ...args]),
    // in another order: nothing may hang on it
    startGateway([...engines].reverse(), ["--threads", "1", ...args]),
  ]);
  gateways.push(...pair);
  for (const gateway of pair) await eventually(() => isReady(gateway), WAIT_MS);
  return pair;
}

async function isReady({ url }: TestGateway): Promise<boolean> {
  const { workers } = (await (await fetch(`${url}/workers`)).json()) as { workers: { status: string }[] };
  return workers.length === 2 && workers.every(({ status }) => status === "ready");
}

const post = ({ url }: TestGateway, path: string, body: object): Promise<Response> =>
  fetch(url + path, { method: "POST", headers: { "content-type": "application/json" }, body: JSON.stringify(body) });

async function complete(gateway: TestGateway, prompt: string): Promise<void> {
  const response = await post(gateway, "/v1/completions", { model: gateway.model, prompt, max_tokens: 2 });
  expect([response.status, await response.text()]).toEqual([200, expect.stringContaining('"choices"')]);
}

async function explained(gateway: TestGateway, prompt: string): Promise<RouteReport> {
  const response = await post(gateway, "/routing/explain", { model: gateway.model, prompt });
  expect(response.status).toBe(200);
  return (await response.json()) as RouteReport;
}

interface Known {
  readonly url: string;
  readonly tokens: number;
  readonly isExact: boolean;
}

/** Who has some of the prompt, as far as a gateway knows. */
async function knownBy(gateway: TestGateway, prompt: string): Promise<Known[]> {
  const { candidates } = await explained(gateway, prompt);
  return candidates.flatMap(({ url, matchedTokens: tokens, isExact }) =>
    tokens > 0 ? [{ url, tokens, isExact }] : [],
  );
}

/** Both come to know of the same worker, and would send the prompt there. */
async function agree(one: TestGateway, other: TestGateway, prompt: string, isExact: boolean): Promise<void> {
  await eventually(async () => {
    const [its, others] = [await knownBy(one, prompt), await knownBy(other, prompt)];
    return its.length === 1 && its[0]!.isExact === isExact && Bun.deepEquals(its, others);
  }, WAIT_MS);
  const [its, others] = [await explained(one, prompt), await explained(other, prompt)];
  const urlOf = ({ candidates, chosen }: RouteReport) => candidates.find(({ id }) => id === chosen)?.url;
  expect(urlOf(its)).toBe((await knownBy(one, prompt))[0]!.url);
  expect(urlOf(others)).toBe(urlOf(its));
  expect((await knownBy(one, prompt))[0]!.tokens).toBeGreaterThan(100);
}

(hasRedis ? describe : describe.skip)("through Redis (needs redis-server or valkey-server)", () => {
  let redis: Server;
  let args: readonly string[];
  beforeAll(async () => {
    redis = await startRedis();
    args = ["--kv-events=false", "--routing-redis-url", redis.url];
  });
  afterAll(() => redis?.stop());
  const shared = (gateway: TestGateway) => gateway.program.until(/is shared with other gateways/);

  test("a prompt that one has sent is known to the other, both ways", async () => {
    const [a, b] = await startPair(args);
    await Promise.all([shared(a), shared(b)]);
    for (let i = 0; i < 4; i++) {
      await complete(a, promptOf(i));
      await agree(a, b, promptOf(i), false);
      await complete(b, promptOf(100 + i));
      await agree(b, a, promptOf(100 + i), false);
    }
  }, 60_000);

  (ownRedis ? test : test.skip)(
    "a server that dies costs no request, and is used again when it is back",
    async () => {
      const [a, b] = await startPair(args);
      await Promise.all([shared(a), shared(b)]);
      await redis.kill();
      await Promise.all([a, b].map(({ program }) => program.until(/nothing is shared with other gateways/)));
      await complete(a, promptOf(200));
      await complete(b, promptOf(201));
      expect(await knownBy(a, promptOf(200))).toHaveLength(1);
      expect(await knownBy(b, promptOf(200))).toEqual([]);
      await redis.start();
      await Promise.all([a, b].map(({ program }) => program.until(/nothing is shared.*caches is shared/s)));
      await complete(a, promptOf(202));
      await agree(a, b, promptOf(202), false);
    },
    60_000,
  );

  test("a server that is not there at the start costs nothing either", async () => {
    const [a] = await startPair(["--kv-events=false", "--routing-redis-url", "redis://127.0.0.1:1"]);
    await a.program.until(/nothing is shared with other gateways/);
    await complete(a, promptOf(300));
  }, 60_000);
});

test("engines that tell of their caches tell each gateway, without Redis", async () => {
  const [a, b] = await startPair([]);
  for (let i = 400; i < 404; i++) {
    await complete(a, promptOf(i));
    await agree(a, b, promptOf(i), true);
  }
}, 60_000);
