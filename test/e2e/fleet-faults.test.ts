/** Connections that break and engines that restart or are half dead: two of them, of which one has the fault. */
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { BUILD_MS } from "./support/binary.ts";
import {
  chat,
  eventually,
  startEngine,
  startGateway,
  type TestEngine,
  type TestGateway,
  user,
} from "./support/processes.ts";

const SCRIPT = `
- contains: long story
  text: alpha beta gamma delta epsilon zeta eta theta iota kappa
  ms_per_token: 20
`;

describe.each(["framing", "grpc-js"])("over %s", (transport) => {
  let bad: TestEngine;
  let good: TestEngine;
  let gateway: TestGateway;

  beforeAll(async () => {
    [bad, good] = await Promise.all([startEngine(SCRIPT), startEngine(SCRIPT)]);
    gateway = await startGateway(
      [bad, good],
      [
        ...["--threads", "1", "--engine-transport", transport, "--disable-circuit-breaker"],
        ...["--health-check-interval-secs", "1", "--health-check-timeout-secs", "1", "--health-failure-threshold", "2"],
      ],
    );
    await allReady();
  }, BUILD_MS);
  afterAll(async () => {
    await gateway?.stop();
    await Promise.all([bad?.stop(), good?.stop()]);
  }, 20_000);

  async function status(): Promise<string[]> {
    const { workers } = (await (await fetch(`${gateway.url}/workers`)).json()) as {
      workers: { url: string; status: string }[];
    };
    return [bad, good].map(({ url }) => workers.find((one) => one.url === url)?.status ?? "absent");
  }
  const allReady = () => eventually(async () => (await status()).every((one) => one === "ready"), 30_000);
  const ask = (text: string, stream = false) =>
    chat(gateway, { model: gateway.model, messages: user(text), max_tokens: 3, stream });

  /** Requests one after the other until the faulty engine has had one; all are answered. */
  async function untilHit(text: string, stream: boolean): Promise<void> {
    const before = (await bad.stats()).received;
    await eventually(async () => {
      const response = await ask(text, stream);
      const answer = await response.text();
      expect([response.status, answer.includes('"error"')]).toEqual([200, false]);
      return (await bad.stats()).received > before;
    }, 10_000);
  }

  for (const [name, fault] of [
    ["a reset stream", { kind: "reset", code: "INTERNAL_ERROR" }],
    ["a stream that is refused", { kind: "reset", code: "REFUSED_STREAM" }],
    ["a connection that is cut", { kind: "disconnect" }],
    ["GOAWAY without an error", { kind: "goaway", code: "NO_ERROR" }],
    ["GOAWAY for too many pings", { kind: "goaway", code: "ENHANCE_YOUR_CALM" }],
  ] as const) {
    for (const stream of [false, true]) {
      test(`${name} before the first token is not noticed${stream ? ", streamed" : ""}`, async () => {
        await bad.control("/faults", { fault: { ...fault, after_tokens: 0 } });
        try {
          await untilHit("hello", stream);
        } finally {
          await bad.heal();
        }
        await allReady();
      }, 60_000);
    }
  }

  test("GOAWAY for too many pings in mid-stream ends that stream, and the next request is served", async () => {
    await bad.control("/faults", { fault: { kind: "goaway", code: "ENHANCE_YOUR_CALM", after_tokens: 2 } });
    try {
      // at first the faulty one may be left alone, as it could not be reached a moment ago
      await eventually(async () => {
        const answers = await Promise.all(
          Array.from({ length: 4 }, async () =>
            (await chat(gateway, { model: gateway.model, messages: user("long story"), stream: true })).text(),
          ),
        );
        const broken = answers.filter((text) => !text.includes("[DONE]"));
        for (const text of broken) expect(text).toContain('"engine_unavailable"');
        for (const text of answers.filter((one) => !broken.includes(one))) expect(text).not.toContain('"error"');
        return broken.length > 0;
      }, 10_000);
    } finally {
      await bad.heal();
    }
    expect((await ask("hello")).status).toBe(200);
  }, 30_000);

  test("an engine that restarts with other blocks is found again, and nobody waits for it", async () => {
    await allReady();
    const restart = bad.control("/restart", { block_size: 32, down_ms: 1500 });
    const until = performance.now() + 3000;
    while (performance.now() < until) expect((await ask("hello")).status).toBe(200);
    await restart;
    await allReady();
    await untilHit("hello", false);
  }, 60_000);

  test("an engine whose core has died is left out, and comes back", async () => {
    await bad.control("/alive?value=false");
    await eventually(async () => {
      expect((await ask("hello")).status).toBe(200);
      return (await status())[0] === "not_ready";
    }, 20_000);
    const before = (await bad.stats()).received;
    for (let i = 0; i < 5; i++) expect((await ask("hello")).status).toBe(200);
    expect((await bad.stats()).received).toBe(before);
    await bad.control("/alive?value=true");
    await allReady();
    await untilHit("hello", false);
  }, 60_000);
});
