/**
 * Writes per second, and how long a write holds the serving thread. By hand:
 *   bun test/contract/history/speed.ts [sqlite|memory|URL of a server]
 * Each response is 8 kB with two items. Held: the time in the call itself, until it returns its promise, and all of the thread's CPU
 * time by write.
 */
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { openHistory, startHistoryThread } from "../../../src/history/open.ts";
import { item, response } from "./samples.ts";
import { threadEntry } from "./stores.ts";

const at = mkdtempSync(join(tmpdir(), "collie-speed-"));
const [given = "sqlite"] = process.argv.slice(2);
const url = given === "sqlite" ? `sqlite://${join(at, "history.db")}` : given === "memory" ? "memory:" : given;
const setting = { url, schema: { owner: "speed" }, memory: { maxEntries: 1e6, maxBytes: 4e9 } };
const { schema: _, ...without } = setting;
const used = given === "sqlite" ? without : setting;
if (url.startsWith("postgres")) {
  const sql = new Bun.SQL(url, { max: 1 });
  await sql.unsafe("CREATE SCHEMA IF NOT EXISTS speed");
  await sql.close();
}
const thread = await startHistoryThread(used, threadEntry, (message) => console.error(message));
const store = (await openHistory(used, thread?.connect()))!;

const run = crypto.randomUUID().slice(0, 8);
const text = 'a "quoted" word, '.repeat(410);
let made = 0;
function next() {
  const id = `resp_${run}_${made++}`;
  const told = item(`msg_out_${id}`, text);
  return response(id, { body: `{"id":"${id}","output":[${told.json}]}`, output: [told.json] });
}
console.log(`${next().body.length} characters a response, ${given.replace(/:[^:@/]*@/, ":…@")}`);

const percentile = (values: number[], p: number): string =>
  values.sort((a, b) => a - b)[Math.floor(values.length * p)]!.toFixed(3);
for (const writers of [0, 1, 8, 64, 256]) {
  const held: number[] = [];
  const took: number[] = [];
  const lag: number[] = [];
  let tick = performance.now();
  const ticker = setInterval(() => {
    const now = performance.now();
    lag.push(now - tick - 1);
    tick = now;
  }, 1);
  const end = performance.now() + 4000;
  const began = performance.now();
  await Promise.all(
    Array.from({ length: Math.max(writers, 1) }, async () => {
      // how late timers are with nothing to do
      if (writers === 0) {
        await Bun.sleep(2000);
        took.push(0);
        held.push(0);
        return;
      }
      while (performance.now() < end) {
        const put = next();
        const start = performance.now();
        const promise = store.putResponse(put);
        held.push(performance.now() - start);
        await promise;
        took.push(performance.now() - start);
      }
    }),
  );
  const seconds = (performance.now() - began) / 1000;
  clearInterval(ticker);
  console.log(
    `${writers} at once: ${Math.round(took.length / seconds)} writes/s, took p50 ${percentile(took, 0.5)} p99 ${percentile(took, 0.99)} ms, ` +
      `call held p50 ${percentile(held, 0.5)} p99 ${percentile(held, 0.99)} ms, loop lag p99 ${percentile(lag, 0.99)} max ${percentile(lag, 0.9999)} ms`,
  );
}
// how much the thread is busy at a steady 200 writes/s
for (const [name, work] of [
  ["nothing but making it", async () => void next()],
  ["put", () => store.putResponse(next())],
  ["get", () => store.getResponse("acme", `resp_${run}_5`)],
] as const) {
  const count = 1000;
  const cpu = process.threadCpuUsage?.();
  const done: Promise<unknown>[] = [];
  for (let n = 0; n < count; n++) {
    done.push(work());
    await Bun.sleep(5);
  }
  await Promise.all(done);
  const spent = process.threadCpuUsage?.(cpu);
  if (spent !== undefined)
    console.log(
      `${name}, 200/s: ${((spent.user + spent.system) / count).toFixed(0)} us of this thread each, timers included`,
    );
}
for (let n = 0; n < 100; n++) {
  const one = next();
  await store.putResponse({ ...one, id: `chain_${run}_${n}`, previousId: n === 0 ? null : `chain_${run}_${n - 1}` });
}
const start = performance.now();
for (let n = 0; n < 20; n++) await store.readChain("acme", `chain_${run}_99`, { maxTurns: 100, maxBytes: 1e8 });
console.log(`a chain of 100: ${((performance.now() - start) / 20).toFixed(2)} ms`);
await store.close();
await thread?.close();
rmSync(at, { recursive: true });
process.exit(0);
