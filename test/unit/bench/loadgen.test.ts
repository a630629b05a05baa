import { afterAll, describe, expect, test } from "bun:test";
import { runLoad } from "../../../bench/loadgen/load.ts";
import { readCommandLine, UsageError } from "../../../bench/loadgen/options.ts";
import { cpuBetween, readCpu } from "../../../bench/loadgen/procfs.ts";
import { parsePromptMode, promptText } from "../../../bench/loadgen/prompts.ts";
import { poissonArrivals } from "../../../bench/loadgen/random.ts";
import { Reply } from "../../../bench/loadgen/reply.ts";
import { ResponseReader } from "../../../bench/loadgen/response-reader.ts";
import { warmUpClient } from "../../../bench/loadgen/self-warmup.ts";
import { percentiles, quantile, spread } from "../../../bench/loadgen/stats.ts";
import { WORDS } from "../../../bench/loadgen/words.ts";
import { demoModelFiles } from "../../../src/tokenizer/demo-model.ts";
import { loadTokenizer, openTokenizer } from "../../../src/tokenizer/load.ts";

const STREAM =
  'data: {"choices":[{"delta":{"role":"assistant","content":""}}]}\n\n: heartbeat\r\n' +
  'data:{"choices":[{"delta":{"content":"café"},"finish_reason":null}]}\r\n\r\n' +
  'data: {"choices":[{"delta":{"tool_calls":[{"index":0}]},"finish_reason":"tool_calls"}]}\n\n' +
  'data: {"choices":[],"usage":{"prompt_tokens":9,"completion_tokens":3}}\n\ndata: [DONE]\n\n';

function readStream(body: string, size = body.length, expected?: number): Reply {
  const bytes = Buffer.from(body);
  const reply = new Reply(true);
  for (let at = 0; at < bytes.length; at += size)
    reply.feed(200, bytes, at, Math.min(bytes.length, at + size), performance.now());
  reply.end(200, performance.now(), expected);
  return reply;
}

describe("reply", () => {
  test("is the same at every cut", () => {
    for (let size = 1; size < STREAM.length; size++) {
      const reply = readStream(STREAM, size, 3);
      expect([reply.problem, reply.stamps.length, reply.textBytes, reply.promptTokens]).toEqual([undefined, 2, 5, 9]);
    }
  });

  test.each([
    ["malformed", STREAM.replace('{"choices":[],', "{").replace('"usage":{', '"usage":')],
    ["no_finish", STREAM.replace('"tool_calls"}', "null}")],
    ["no_done", STREAM.replace("data: [DONE]", ": [DONE]")],
    ["count", STREAM.replace('"completion_tokens":3', '"completion_tokens":2')],
    ["error_event", STREAM.replace('{"choices":[],', '{"error":{"message":"no"},')],
  ])("tells %s", (problem, body) => {
    expect(readStream(body, 7, 3).problem as string).toBe(problem);
  });

  test("tells more events than tokens", () => {
    expect(readStream(STREAM.replace('"completion_tokens":3', '"completion_tokens":1')).problem).toBe("count");
  });

  test("reads a unary reply and a refusal", () => {
    const body = Buffer.from(
      '{"choices":[{"message":{"content":"hi"},"finish_reason":"stop"}],"usage":{"completion_tokens":1}}',
    );
    const good = new Reply(false);
    good.feed(200, body, 0, 10, 0);
    good.feed(200, body, 10, body.length, 0);
    good.end(200, 0, 1);
    expect([good.problem, good.textBytes]).toEqual([undefined, 2]);
    const refused = new Reply(true);
    refused.feed(503, Buffer.from("busy"), 0, 4, 0);
    refused.end(503, 0, 1);
    expect([refused.problem as string, refused.detail]).toEqual(["status", "503: busy"]);
  });
});

test("responses are read at every cut, one after the other", () => {
  const bytes = Buffer.from(
    "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0a;x=1\r\n0123456789\r\n0\r\n\r\n" +
      "HTTP/1.1 404 Not Found\r\nContent-Length: 4\r\nConnection: close\r\n\r\nnope",
  );
  for (let size = 1; size <= bytes.length; size++) {
    const seen: unknown[] = [];
    let body = "";
    const reader = new ResponseReader({
      onBody: (_status, b, from, to) => {
        body += b.toString("latin1", from, to);
      },
      onResponseEnd: (status, keepAlive) => {
        seen.push([status, keepAlive, body]);
        body = "";
      },
    });
    for (let at = 0; at < bytes.length; at += size) reader.feed(bytes.subarray(at, at + size));
    expect(seen).toEqual([
      [200, true, "abc0123456789"],
      [404, false, "nope"],
    ]);
  }
});

describe("prompts", () => {
  test("words are distinct and one token each", async () => {
    const tokenizer = openTokenizer(await loadTokenizer(await demoModelFiles()));
    expect(new Set(WORDS).size).toBe(WORDS.length);
    expect(WORDS.filter((word) => tokenizer.encode(` ${word}`).length !== 1)).toEqual([]);
    expect(tokenizer.encode(promptText({ kind: "unique" }, 500, 1, 0)).length).toBe(500);
  });

  test("modes share what they say", () => {
    const shared = parsePromptMode("shared:5:2")!;
    const heads = new Set<string>();
    const whole = new Set<string>();
    for (let i = 0; i < 50; i++) {
      const text = promptText(shared, 8, 3, i);
      heads.add(text.split(" ").slice(0, 6).join(" "));
      whole.add(text);
    }
    expect([heads.size, whole.size]).toEqual([2, 50]);
    expect(promptText({ kind: "same" }, 8, 3, 0)).toBe(promptText({ kind: "same" }, 8, 3, 1));
    expect(promptText({ kind: "unique" }, 8, 3, 0)).toBe(promptText({ kind: "unique" }, 8, 3, 0));
    expect(parsePromptMode("shared:5")).toBeUndefined();
  });

  test("arrivals come at their rate and from their seed", () => {
    const times = poissonArrivals(20_000, 100, 7);
    expect(times.at(-1)! / 1000).toBeWithin(190, 210);
    expect(poissonArrivals(3, 100, 7)).toEqual(times.slice(0, 3));
    expect(poissonArrivals(3, 100, 8)).not.toEqual(times.slice(0, 3));
  });
});

test("percentiles interpolate", () => {
  expect(quantile([10, 20, 30, 40], 0.5)).toBe(25);
  expect(percentiles([4, 1, 3, 2])).toEqual({ p50: 2.5, p90: 3.7, p99: 3.9699999999999998, p999: 3.997, max: 4 });
  expect(percentiles([])).toBeUndefined();
  expect(spread([3, 1, 2])).toEqual({ median: 2, min: 1, max: 3 });
});

test("CPU of this process is counted", () => {
  const before = readCpu([process.pid]);
  const began = process.cpuUsage();
  while (process.cpuUsage(began).user < 60_000);
  const used = cpuBetween(before, readCpu([process.pid])) / 1e6;
  expect(used).toBeWithin(40, 500);
});

test("the command line refuses what makes no sense", () => {
  expect(() => readCommandLine([])).toThrow(UsageError);
  expect(() => readCommandLine(["--url", "http://x", "--streams", "many"])).toThrow("--streams");
  expect(() => readCommandLine(["--url", "http://x", "--rate", "0"])).toThrow("--rate");
  expect(() => readCommandLine(["--url", "https://x"])).toThrow("http://");
  expect(readCommandLine(["--url", "http://x", "--max-tokens", "9"]).load.expect).toBe(9);
  expect(readCommandLine(["--url", "http://x", "--expect", "0"]).load.expect).toBeUndefined();
});

describe("load", () => {
  let inFlight = 0;
  let most = 0;
  let sent = 0;
  const server = Bun.serve({
    port: 0,
    hostname: "127.0.0.1",
    async fetch() {
      most = Math.max(most, ++inFlight);
      const bad = ++sent % 5 === 0;
      await Bun.sleep(30);
      inFlight--;
      return new Response(bad ? STREAM.replace("data: [DONE]\n\n", "") : STREAM);
    },
  });
  afterAll(() => server.stop(true));
  const url = server.url.origin;

  test("closed loop: keeps its streams busy and counts what is wrong", async () => {
    most = sent = 0;
    const { load } = readCommandLine(["--url", url, "--streams", "4", "--requests", "20", "--max-tokens", "3"]);
    const result = await runLoad({ ...load, pids: [process.pid] });
    expect(most).toBe(4);
    expect([result.done, result.errors, result.error_kinds]).toEqual([16, 4, { no_done: 4 }]);
    expect([result.output_tokens, result.events]).toEqual([48, 32]);
    expect(result.time_to_first_token_ms!.p50).toBeGreaterThan(25);
    expect(result.cpu_us_per_token).toBeGreaterThan(0);
    expect(result.rss_peak_mb).toBeGreaterThan(10);
  });

  test("open loop: requests go out whatever is still open", async () => {
    most = sent = 0;
    const { load } = readCommandLine(["--url", url, "--rate", "300", "--requests", "30", "--expect", "0"]);
    const result = await runLoad(load);
    expect(most).toBeGreaterThan(3);
    expect(result.done + result.errors).toBe(30);
    expect(result.wall_s).toBeWithin(0.05, 10);
    expect(result.send_delay_ms!.p50).toBeGreaterThanOrEqual(0);
  });

  test("the client warms up on its own replies, whatever it is asked to send", async () => {
    const { load } = readCommandLine(["--url", "http://x", "--prompt-tokens", "8000", "--max-tokens", "1", "--unary"]);
    await warmUpClient(load);
  });

  test("nobody listening and a time limit are errors", async () => {
    const closed = readCommandLine(["--url", "http://127.0.0.1:1", "--requests", "2"]).load;
    expect((await runLoad(closed)).error_kinds).toEqual({ connection: 2 });
    const slow = readCommandLine(["--url", url, "--streams", "3", "--timeout-secs", "0.01"]).load;
    expect((await runLoad(slow)).error_kinds).toEqual({ timeout: 3 });
  });
});
