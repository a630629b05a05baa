/**
 * Sends a shape's stream to gateways, each request at its moment whatever is still open, and prints what came of it as one JSON line.
 * Several URLs: each request goes to one of them at random.
 *
 *     bun bench/routing/send.ts --shape tenants --seed 1 --url http://127.0.0.1:30000 [--keys: tell what belongs together]
 */
import { parseArgs } from "node:util";
import { until } from "../loadgen/measure.ts";
import { readCommandLine, UsageError } from "../loadgen/options.ts";
import { Pool } from "../loadgen/pool.ts";
import { mixSeed, Random } from "../loadgen/random.ts";
import { Reply } from "../loadgen/reply.ts";
import { warmUpClient } from "../loadgen/self-warmup.ts";
import { percentiles } from "../loadgen/stats.ts";
import type { SendResult } from "./send-result.ts";
import { type Ask, shapeOf } from "./shapes.ts";

/** What is open that long after the last arrival is lost. */
const LOST_AFTER_MS = 60_000;
const LATE_MS = 5;
const QUARTERS = 4;

interface Times {
  readonly atMs: number;
  readonly ttftMs: number;
  readonly totalMs: number;
  readonly sendDelayMs: number;
  readonly tokens: number;
}

const mean = (values: readonly number[]): number => values.reduce((sum, value) => sum + value, 0) / values.length;

function requestBytes(ask: Ask, url: URL, model: string, withKey: boolean): Buffer {
  const body = JSON.stringify({
    model,
    messages: ask.messages,
    max_tokens: ask.maxTokens,
    ignore_eos: true,
    stream: true,
    stream_options: { include_usage: true },
  });
  const lines = [
    "POST /v1/chat/completions HTTP/1.1",
    `Host: ${url.host}`,
    "Content-Type: application/json",
    ...(withKey ? [`x-smg-routing-key: ${ask.key}`] : []),
    `Content-Length: ${Buffer.byteLength(body)}`,
  ];
  return Buffer.from(`${lines.join("\r\n")}\r\n\r\n${body}`);
}

class Stream {
  readonly times: Times[] = [];
  readonly problems: string[] = [];
  private started = 0;

  constructor(
    private readonly asks: readonly Ask[],
    private readonly pools: readonly Pool[],
    private readonly model: string,
    private readonly withKeys: boolean,
    private readonly random: Random,
  ) {}

  async run(): Promise<void> {
    const open: Promise<void>[] = [];
    this.started = performance.now() + 50;
    for (const ask of this.asks) {
      const pool = this.pools[this.random.below(this.pools.length)]!;
      // Made here and not before: streams of long prompts would be gigabytes.
      const message = requestBytes(ask, pool.url, this.model, this.withKeys);
      await until(this.started + ask.atMs, true);
      open.push(this.send(ask, pool, message));
    }
    await Promise.race([Promise.all(open), Bun.sleep(LOST_AFTER_MS)]);
    const lost = this.asks.length - this.times.length - this.problems.length;
    for (let i = 0; i < lost; i++) this.problems.push("timeout");
  }

  private send(ask: Ask, pool: Pool, message: Buffer): Promise<void> {
    return new Promise((resolve) => {
      const reply = new Reply(true);
      const connection = pool.take();
      const planned = this.started + ask.atMs;
      const sent = performance.now();
      connection.send(message, {
        onBody: (status, bytes, start, end) => reply.feed(status, bytes, start, end, performance.now()),
        onDone: (status, problem) => {
          const end = performance.now();
          reply.end(status, end, ask.maxTokens, problem);
          const first = reply.stamps[0];
          if (reply.problem !== undefined || first === undefined) {
            this.problems.push(`${reply.problem ?? "no text"}: ${reply.detail}`);
            connection.close();
          } else
            this.times.push({
              atMs: ask.atMs,
              ttftMs: first - planned,
              totalMs: end - planned,
              sendDelayMs: sent - planned,
              tokens: ask.maxTokens,
            });
          pool.give(connection);
          resolve();
        },
      });
    });
  }

  result(seconds: number, cpuMs: number): SendResult {
    const { times, problems } = this;
    const kinds: Record<string, number> = {};
    for (const problem of problems) {
      const kind = problem.split(":")[0]!;
      kinds[kind] = (kinds[kind] ?? 0) + 1;
    }
    const ttft = times.map((t) => t.ttftMs);
    const quarter = (q: number) =>
      times.filter((t) => Math.floor((t.atMs / (seconds * 1000)) * QUARTERS) === q).map((t) => t.ttftMs);
    return {
      requests: this.asks.length,
      errors: problems.length,
      error_kinds: kinds,
      ...(problems[0] !== undefined && { first_error: problems[0] }),
      ttft_mean_ms: mean(ttft),
      ...(times.length > 0 && { ttft_ms: percentiles(ttft)! }),
      ttft_mean_ms_by_quarter: Array.from({ length: QUARTERS }, (_, q) => mean(quarter(q))),
      latency_mean_ms: mean(times.map((t) => t.totalMs)),
      time_per_output_token_ms: mean(
        times.filter((t) => t.tokens > 1).map((t) => (t.totalMs - t.ttftMs) / (t.tokens - 1)),
      ),
      late_sends: times.filter((t) => t.sendDelayMs > LATE_MS).length,
      send_delay_p99_ms: percentiles(times.map((t) => t.sendDelayMs))?.p99 ?? 0,
      client_cpu_ms: cpuMs,
    };
  }
}

const string = { type: "string" } as const;
const { values } = parseArgs({
  options: {
    ...{ shape: string, seed: string, seconds: string, model: string },
    url: { ...string, multiple: true },
    keys: { type: "boolean" },
  },
});
const shape = shapeOf(values.shape ?? "");
if (shape === undefined || values.url === undefined) throw new UsageError("--shape and --url are needed");
const seed = Number(values.seed ?? 1);
const seconds = Number(values.seconds ?? shape.seconds);
const urls = values.url.map((text) => new URL(text));
await warmUpClient(readCommandLine(["--url", urls[0]!.href]).load);
const pools = urls.map((url) => new Pool(url));
const stream = new Stream(
  shape.asks(seed, seconds),
  pools,
  values.model ?? "mock-model",
  values.keys === true,
  new Random(mixSeed(seed, 0x73656e64)),
);
const before = process.cpuUsage();
await stream.run();
const { user, system } = process.cpuUsage(before);
for (const pool of pools) pool.close();
console.log(JSON.stringify(stream.result(seconds, (user + system) / 1000)));
process.exit(0);
