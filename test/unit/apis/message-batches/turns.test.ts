/** Large batches do not keep other requests of the thread waiting. */
import { afterAll, beforeAll, expect, test } from "bun:test";
import { ScriptedEngine } from "../../generation/scripted-engine.ts";
import { type Gateway, MODEL, modelEntry, startGateway } from "../../server/gateway.ts";
import { user } from "../messages/asking.ts";

/** Far from what turns take that are cut (10 ms), and from what all at once would take (seconds): machines differ several times over. */
const TURN_MS = 150;
const ROUNDS = 6;

let gateway: Gateway;
let isSilent: boolean;
beforeAll(() => {
  const engine = new ScriptedEngine((call) => {
    if (!isSilent) queueMicrotask(() => call.chunk([1]).idle().finish({ completionTokens: 1 }).end());
  });
  gateway = startGateway([], engine, [modelEntry()]);
});
afterAll(() => gateway.stop());

const bodyOf = (count: number): string => {
  const params = JSON.stringify({ model: MODEL, max_tokens: 5, messages: [user("hello")] });
  return `{"requests":[${Array.from({ length: count }, (_, i) => `{"custom_id":"r-${i}","params":${params}}`).join()}]}`;
};

interface Batch {
  readonly id: string;
  readonly processing_status: string;
  readonly request_counts: Readonly<Record<string, number>>;
}

async function ask(method: string, path = "", body?: string): Promise<Batch> {
  const init = body === undefined ? {} : { body, headers: { "content-type": "application/json" } };
  const response = await fetch(`${gateway.url}/v1/messages/batches${path}`, { method, ...init });
  if (response.status !== 200) throw new Error(await response.text());
  return (await response.json()) as Batch;
}

async function ended(id: string): Promise<Batch> {
  for (;;) {
    const batch = await ask("GET", `/${id}`);
    if (batch.processing_status === "ended") return batch;
    await Bun.sleep(20);
  }
}

/** What this thread has worked, in ms. */
function worked(): number {
  const { user, system } = process.threadCpuUsage();
  return (user + system) / 1000;
}

/** The most that was worked in one turn of the event loop meanwhile; of several rounds, the one with the least. */
async function longestTurn(work: () => Promise<void>): Promise<number> {
  let least = Number.POSITIVE_INFINITY;
  for (let round = 0; round < ROUNDS && least > TURN_MS; round++) {
    let [longest, last, running] = [0, worked(), true];
    const look = (): void => {
      const now = worked();
      longest = Math.max(longest, now - last);
      last = now;
      if (running) setTimeout(look, 0);
    };
    look();
    await work();
    running = false;
    least = Math.min(least, longest);
  }
  return least;
}

test("while 2000 requests are answered at once by an engine that takes no time", async () => {
  isSilent = false;
  const body = bodyOf(2000);
  const longest = await longestTurn(async () => {
    const { id } = await ask("POST", "", body);
    expect((await ended(id)).request_counts["succeeded"]).toBe(2000);
  });
  expect(longest).toBeLessThan(TURN_MS);
}, 120_000);

test("while 100,000 requests are taken, cancelled, and told of", async () => {
  isSilent = true;
  const body = bodyOf(100_000);
  let results = "";
  const longest = await longestTurn(async () => {
    const { id } = await ask("POST", "", body);
    await ask("POST", `/${id}/cancel`);
    expect((await ended(id)).request_counts["canceled"]).toBe(100_000);
    results = await (await fetch(`${gateway.url}/v1/messages/batches/${id}/results`)).text();
  });
  expect(longest).toBeLessThan(TURN_MS);
  const lines = results.split("\n").slice(0, -1);
  const custom = (line: string) => (JSON.parse(line) as { custom_id: string }).custom_id;
  expect([lines.length, new Set(lines.map(custom)).size]).toEqual([100_000, 100_000]);
}, 120_000);
