/** Sends a load to a gateway and times every event of the answers. */
import { Connection } from "./connection.ts";
import type { LoadOptions } from "./options.ts";
import { cpuBetween, readCpu, watchMemory } from "./procfs.ts";
import { promptText } from "./prompts.ts";
import { poissonArrivals } from "./random.ts";
import { Reply } from "./reply.ts";
import { type LoadResult, loadResult, Tally } from "./result.ts";

/** Above this rate the generator would spin all the time to be exact, at the cost of whoever shares its core. */
const MAX_SPIN_RATE = 200;

/** The bytes of a request, ready to be written. */
function requestMessage(options: LoadOptions, index: number): Buffer {
  const text = promptText(options.prompts, options.promptTokens, options.seed, index);
  const body = JSON.stringify({
    model: options.model,
    ...(options.path.endsWith("/chat/completions")
      ? { messages: [{ role: "user", content: text }] }
      : { prompt: text }),
    max_tokens: options.maxTokens,
    stream: !options.unary,
    ...(options.unary ? {} : { stream_options: { include_usage: true } }),
    ...options.extra,
  });
  const prefix = options.url.pathname.replace(/\/+$/, "");
  const lines = [
    `POST ${prefix}${options.path} HTTP/1.1`,
    `Host: ${options.url.host}`,
    "Content-Type: application/json",
    "Accept: text/event-stream, application/json",
    ...options.headers,
    `Content-Length: ${Buffer.byteLength(body)}`,
  ];
  return Buffer.from(`${lines.join("\r\n")}\r\n\r\n${body}`);
}

/** Sends one request and books its reply; resolves when it is over. `planned` is its arrival in the open loop. */
function exchange(
  options: LoadOptions,
  connection: Connection,
  message: Buffer,
  tally: Tally,
  planned: number | undefined,
): Promise<void> {
  return new Promise((resolve) => {
    const reply = new Reply(!options.unary);
    const sent = performance.now();
    const from = planned ?? sent;
    if (planned !== undefined) tally.sendDelay.push(sent - planned);
    connection.send(message, {
      onBody: (status, bytes, start, end) => reply.feed(status, bytes, start, end, performance.now()),
      onDone: (status, problem) => {
        const end = performance.now();
        reply.end(status, end, options.expect, problem);
        if (reply.problem !== undefined) {
          tally.error(reply.problem, reply.detail);
          connection.close();
        } else {
          tally.done++;
          tally.outputTokens += reply.completionTokens ?? reply.stamps.length;
          tally.promptTokens += reply.promptTokens;
          tally.events += reply.stamps.length;
          tally.textBytes += reply.textBytes;
          tally.times(from, end, reply.stamps);
        }
        resolve();
      },
    });
  });
}

/** Connections that are open and free, for one gateway. */
class Pool {
  private readonly free: Connection[] = [];
  private readonly all: Connection[] = [];

  constructor(private readonly url: URL) {}

  take(): Connection {
    const free = this.free.pop();
    if (free !== undefined) return free;
    const connection = new Connection(this.url.hostname, Number(this.url.port || 80));
    this.all.push(connection);
    return connection;
  }

  give(connection: Connection): void {
    this.free.push(connection);
  }

  close(): void {
    for (const connection of this.all) connection.close();
  }
}

/** Keeps `streams` requests in flight until `count` have been sent. */
async function closedLoop(options: LoadOptions, pool: Pool, tally: Tally, base: number, count: number): Promise<void> {
  let next = 0;
  const lane = async (): Promise<void> => {
    const connection = pool.take();
    while (next < count) await exchange(options, connection, requestMessage(options, base + next++), tally, undefined);
    pool.give(connection);
  };
  await Promise.all(Array.from({ length: Math.min(options.streams, count) }, lane));
}

/** Sends each request at its planned moment, however many are open. */
async function openLoop(options: LoadOptions, pool: Pool, tally: Tally, base: number, rate: number): Promise<void> {
  const arrivals = poissonArrivals(options.requests, rate, options.seed + base);
  const open: Promise<void>[] = [];
  const started = performance.now() + 5;
  for (let i = 0; i < options.requests; i++) {
    const message = requestMessage(options, base + i);
    const planned = started + arrivals[i]!;
    await until(planned, rate <= MAX_SPIN_RATE);
    const connection = pool.take();
    open.push(exchange(options, connection, message, tally, planned).then(() => pool.give(connection)));
  }
  await Promise.all(open);
}

/** Waits for a moment. Timers step by a millisecond; the rest is spun away through the event loop where asked. */
async function until(moment: number, exact: boolean): Promise<void> {
  for (;;) {
    const left = moment - performance.now();
    if (left <= 0) return;
    if (left >= 2) await Bun.sleep(exact ? Math.floor(left) - 1 : left);
    else if (exact) await new Promise((resolve) => setImmediate(resolve));
    else await Bun.sleep(1);
  }
}

/** One repeat of a load. `base` is the number of requests sent before with this seed. */
export async function runLoad(options: LoadOptions, base = 0): Promise<LoadResult> {
  const pool = new Pool(options.url);
  if (options.warmup > 0) await closedLoop(options, pool, new Tally(), base, options.warmup);
  const tally = new Tally();
  const memory = watchMemory(options.pids);
  const ownBefore = readCpu([process.pid]);
  const before = readCpu(options.pids);
  const started = performance.now();
  const first = base + options.warmup;
  const load =
    options.rate === undefined
      ? closedLoop(options, pool, tally, first, options.requests)
      : openLoop(options, pool, tally, first, options.rate);
  let limit: ReturnType<typeof setTimeout> | undefined;
  const timeout = new Promise<"timeout">((resolve) => {
    limit = setTimeout(() => resolve("timeout"), options.timeoutMs);
  });
  const outcome = await Promise.race([load, timeout]);
  clearTimeout(limit);
  const wallMs = performance.now() - started;
  const cpuNs = cpuBetween(before, readCpu(options.pids));
  const clientCpuNs = cpuBetween(ownBefore, readCpu([process.pid]));
  const peakBytes = memory.stop();
  if (outcome === "timeout") {
    const open = options.requests - tally.done - Object.values(tally.errorKinds).reduce((sum, n) => sum + n, 0);
    for (let i = 0; i < open; i++) tally.error("timeout", `open after ${options.timeoutMs / 1000} s`);
  }
  const result = loadResult(tally, {
    seed: options.seed,
    requests: options.requests,
    wallMs,
    clientCpuNs,
    ...(options.pids.length > 0 && { watched: { cpuNs, peakBytes, idleMsPerSecond: options.idleMsPerSecond } }),
  });
  pool.close();
  return result;
}
