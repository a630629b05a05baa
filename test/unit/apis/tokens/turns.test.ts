/** Large requests leave the thread to others in between. */
import { afterAll, beforeAll, expect, test } from "bun:test";
import { handleDetokenize } from "../../../../src/apis/tokens/detokenize.ts";
import { handleTokenize } from "../../../../src/apis/tokens/tokenize.ts";
import { resolveOptions } from "../../../../src/config/resolve.ts";
import { serveOptions } from "../../../../src/config/serve-options.ts";
import { ClientClosedError } from "../../../../src/errors.ts";
import type { ServerContext } from "../../../../src/server/context.ts";
import { testControl } from "../../../support/control.ts";
import { testKept } from "../../../support/kept.ts";
import { type Gateway, startGateway } from "../../server/gateway.ts";

let gateway: Gateway;
let context: ServerContext;
beforeAll(() => {
  gateway = startGateway();
  const { values: config } = resolveOptions(serveOptions, { args: [], env: {} });
  const { fleet, scopes } = gateway;
  const log = { debug() {}, info() {}, warn() {}, error() {} };
  context = { config, fleet, control: testControl, scopes, log, ...testKept(), draining: () => false };
});
afterAll(() => gateway.stop());

const texts = Array.from({ length: 30_000 }, (_, i) => `Text number ${i}: ${"some words and 你好, ".repeat(5)}`);
const ids = Array.from({ length: 1_500_000 }, (_, i) => 1000 + ((i * 7919) % 100_000));
const FORM = { key: "text", skipByDefault: true } as const;

/** About 10 on a machine of one's own. */
const MOST_MS = 50;

/** Longest time on the processor between two turns of others, milliseconds: other programs' time does not count. */
async function longestHold(work: () => Promise<Response>): Promise<{ hold: number; turns: number }> {
  let last = process.cpuUsage();
  let hold = 0;
  let turns = 0;
  const look = () => {
    const { user } = process.cpuUsage(last);
    hold = Math.max(hold, user / 1000);
    turns++;
    last = process.cpuUsage();
    if (watching) setImmediate(look);
  };
  let watching = true;
  setImmediate(look);
  const response = await work();
  look();
  watching = false;
  expect(response.status).toBe(200);
  return { hold, turns };
}
const scope = (client = new AbortController().signal) => context.scopes.begin("req-test", client);

test.each<[string, () => Promise<Response>]>([
  ["many texts", () => handleTokenize({ prompt: texts }, false, context, scope())],
  ["strings of many tokens", () => handleTokenize({ prompt: texts, return_token_strs: true }, false, context, scope())],
  ["many ids", () => handleDetokenize({ tokens: ids }, FORM, context, scope())],
  ["many lists", () => handleDetokenize({ tokens: Array(400_000).fill([9707, 1052]) }, FORM, context, scope())],
])(
  "%s do not hold the thread",
  async (_, work) => {
    await work(); // compiled
    let least = Number.POSITIVE_INFINITY;
    for (let round = 0; round < 8 && least >= MOST_MS; round++) {
      const { hold, turns } = await longestHold(work);
      expect(turns).toBeGreaterThan(5);
      least = Math.min(least, hold);
    }
    expect(least).toBeLessThan(MOST_MS);
  },
  60_000,
);

test("work for a client that has left ends", async () => {
  const client = new AbortController();
  const open = scope(client.signal);
  const work = handleTokenize({ prompt: texts }, false, context, open);
  setTimeout(() => client.abort(), 5);
  await expect(work).rejects.toBeInstanceOf(ClientClosedError);
  expect(context.scopes.size).toBe(0);
});
