/** An engine whose process stands still: its port is open, and nothing ever comes of it. */
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
- contains: slow stream
  text: "one two three four five six seven eight nine ten"
  ms_per_token: 100
`;

describe.each([1, 2])("with %i thread(s)", (threads) => {
  let frozen: TestEngine;
  let other: TestEngine;
  let gateway: TestGateway;

  beforeAll(async () => {
    [frozen, other] = await Promise.all([startEngine(SCRIPT), startEngine(SCRIPT)]);
    gateway = await startGateway(
      [frozen, other],
      ["--threads", String(threads), "--worker-stall-secs", "2", "--health-check-timeout-secs", "1"],
    );
    await eventually(async () => (await status()).every((one) => one === "ready"), 10_000);
  }, BUILD_MS);
  afterAll(async () => {
    frozen?.program.kill("SIGCONT");
    await gateway?.stop();
    await Promise.all([frozen?.stop(), other?.stop()]);
  }, 20_000);

  async function status(): Promise<string[]> {
    const { workers } = (await (await fetch(`${gateway.url}/workers`)).json()) as {
      workers: { url: string; status: string }[];
    };
    return workers
      .toSorted((a, b) => Number(b.url === frozen.url) - Number(a.url === frozen.url))
      .map((one) => one.status);
  }

  test("what has not begun there is answered by another; it returns when it moves again", async () => {
    frozen.program.kill("SIGSTOP");
    const before = (await other.stats()).received;
    const answers = await Promise.all(
      Array.from({ length: 8 }, async (_, i) => {
        const response = await chat(gateway, { model: gateway.model, messages: user(`hello ${i}`), max_tokens: 5 });
        return [
          response.status,
          ((await response.json()) as { usage?: { completion_tokens: number } }).usage?.completion_tokens,
        ];
      }),
    );
    expect(answers).toEqual(Array.from({ length: 8 }, () => [200, 5]));
    expect((await other.stats()).received - before).toBe(8);
    expect(await status()).toEqual(["not_ready", "ready"]);
    frozen.program.kill("SIGCONT");
    await eventually(async () => (await status())[0] === "ready", 30_000);
    expect((await chat(gateway, { model: gateway.model, messages: user("hello"), max_tokens: 5 })).status).toBe(200);
  }, 60_000);
});
