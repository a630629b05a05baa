import { afterAll, describe, expect, test } from "bun:test";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { drawReport } from "../../../src/cli/explain-draw.ts";
import { readReport } from "../../../src/cli/explain-report.ts";
import type { ReportedCandidate, RouteReport } from "../../../src/fleet/explain.ts";

const worker = (number: number, over: Partial<ReportedCandidate> = {}): ReportedCandidate => ({
  id: `w${number}`,
  url: `grpc://10.0.0.${number}:50051`,
  role: "regular",
  state: "ready",
  matchedTokens: 0,
  isExact: false,
  queuedTokens: 0,
  running: 0,
  kvUsage: undefined,
  score: undefined,
  ...over,
});

const report: RouteReport = {
  model: "qwen3-8b",
  policy: "cache_aware",
  tokens: 8202,
  blockSize: 16,
  blocks: 512,
  chosen: "w5",
  branch: "hit",
  candidates: [
    worker(4, { queuedTokens: 120, running: 2, kvUsage: 0.2, score: 8300.4 }),
    worker(5, { matchedTokens: 6400, isExact: true, queuedTokens: 900, running: 7, kvUsage: 0.41, score: 2750 }),
    worker(6, { matchedTokens: 1600, queuedTokens: 10, running: 1, score: 6700 }),
    worker(7, { state: "draining", excluded: "it is to leave" }),
  ],
  spans: [
    { fromBlock: 0, toBlock: 100, exact: ["w5"], guessed: ["w6"] },
    { fromBlock: 100, toBlock: 400, exact: ["w5"], guessed: [] },
  ],
};
const screen = { width: 80, isUtf8: true, hasColours: false, most: 20 };

describe("a drawing", () => {
  test("of who has which blocks, what each has to do, and why one was chosen", () => {
    expect(drawReport(report, screen)).toBe(`\
qwen3-8b: 8202 tokens, 512 blocks of 16; policy cache_aware

                         0                                                   512
> grpc://10.0.0.5:50051  ███████████████████████████████████████████············
  grpc://10.0.0.6:50051  ▒▒▒▒▒▒▒▒▒▒·············································
  grpc://10.0.0.4:50051  ·······················································
  █ told by its events   ▒ sent there before   · not there

                          matched           queued  running  KV used  score
> grpc://10.0.0.5:50051  6400 78%  told        900        7      41%   2750
  grpc://10.0.0.6:50051  1600 19%  guessed      10        1        -   6700
  grpc://10.0.0.4:50051         0              120        2      20%   8300

Chosen: grpc://10.0.0.5:50051 (hit: what it has of the prompt outweighs what it
has to do)

Cannot be chosen:
  grpc://10.0.0.7:50051  it is to leave
`);
  });

  test("in a narrow window without UTF-8: addresses lose their schemes, then their middles", () => {
    const narrow = { ...screen, width: 68, isUtf8: false };
    expect(drawReport(report, narrow)).toBe(`\
qwen3-8b: 8202 tokens, 512 blocks of 16; policy cache_aware

                  0                                              512
> 10.0.0.5:50051  #######################################...........
  10.0.0.6:50051  +++++++++.........................................
  10.0.0.4:50051  ..................................................
  # told by its events   + sent there before   . not there

                   matched           queued  running  KV used  score
> 10.0.0.5:50051  6400 78%  told        900        7      41%   2750
  10.0.0.6:50051  1600 19%  guessed      10        1        -   6700
  10.0.0.4:50051         0              120        2      20%   8300

Chosen: grpc://10.0.0.5:50051 (hit: what it has of the prompt
outweighs what it has to do)

Cannot be chosen:
  10.0.0.7:50051  it is to leave
`);
    const long = { ...report, candidates: [worker(5, { url: "grpc://gpu-17.rack-4.example.org:50051" })] };
    expect(drawReport(long, narrow)).toContain("\n> gpu-17.rac...org:50051  ###");
  });

  test("in colours, which say nothing that the signs do not", () => {
    const drawn = drawReport(report, { ...screen, hasColours: true });
    expect(drawn).toContain("\u001b[1m> grpc://10.0.0.5:50051\u001b[0m  \u001b[32m█");
    expect(drawn).toContain("\u001b[33m▒▒▒▒▒▒▒▒▒▒\u001b[0m\u001b[2m··");
    // biome-ignore lint/suspicious/noControlCharactersInRegex: the sequences that a terminal eats
    expect(drawn.replaceAll(/\u001b\[\d+m/g, "")).toBe(drawReport(report, screen));
  });

  test("of fewer blocks than columns: each gets as many", () => {
    const short = {
      ...report,
      tokens: 50,
      blocks: 3,
      spans: [{ fromBlock: 0, toBlock: 2, exact: ["w5"], guessed: [] }],
    };
    const [, , scale, chosen] = drawReport(short, screen).split("\n");
    expect(scale).toBe(`${" ".repeat(25)}0${" ".repeat(52)}3`);
    expect(chosen).toBe(`> grpc://10.0.0.5:50051  ${"█".repeat(36)}${"·".repeat(18)}`);
  });

  test("of a column that has some of its blocks: it counts as missing, the first one as its first block", () => {
    const bar = (toBlock: number): string => {
      const spans = [{ fromBlock: 0, toBlock, exact: ["w5"], guessed: [] }];
      return drawReport({ ...report, spans }, screen)
        .split("\n")[3]!
        .slice(25);
    };
    expect(bar(1)).toBe(`█${"·".repeat(54)}`);
    expect(bar(511)).toBe(`${"█".repeat(54)}·`);
    expect(bar(512)).toBe("█".repeat(55));
  });

  test("of a prompt without a whole block, of workers without scores, and of roles", () => {
    const candidates = [worker(1, { role: "decode" }), worker(2, { role: "prefill" })];
    const drawn = drawReport(
      { ...report, tokens: 1, blocks: 0, policy: "round_robin", branch: "turn", chosen: "w1", candidates, spans: [] },
      screen,
    );
    expect(drawn).toBe(`\
qwen3-8b: 1 token, no whole block; policy round_robin

                         matched    queued  running  KV used  score  role
> grpc://10.0.0.1:50051        0         0        0        -      -  decode
  grpc://10.0.0.2:50051        0         0        0        -      -  prefill

Chosen: grpc://10.0.0.1:50051 (turn: by turns, or by chance)
`);
  });

  test("of a model whose work is split: first who prefills, then who decodes", () => {
    const decode = { ...report, policy: "least_load", branch: "turn" as const, chosen: "w4", blocks: 0, spans: [] };
    const [prefill, below] = drawReport({ ...report, decode }, screen).split(
      "\n\nqwen3-8b: 8202 tokens, no whole block; ",
    );
    expect(prefill).toStartWith("qwen3-8b: 8202 tokens, 512 blocks of 16; prefill policy cache_aware\n");
    expect(below).toStartWith("decode policy least_load\n");
    expect(below).toContain("Chosen: grpc://10.0.0.4:50051 (turn: ");
  });

  test("of nobody who can be chosen", () => {
    const drawn = drawReport({ ...report, candidates: report.candidates.slice(3), chosen: "", spans: [] }, screen);
    expect(drawn).toBe(`\
qwen3-8b: 8202 tokens, 512 blocks of 16; policy cache_aware

Nobody can be chosen.

Cannot be chosen:
  grpc://10.0.0.7:50051  it is to leave
`);
  });

  test("of many workers ends with how many there are besides", () => {
    const candidates = Array.from({ length: 64 }, (_, i) => worker(i + 1, { score: i }));
    const drawn = drawReport({ ...report, chosen: "w1", candidates }, { ...screen, most: 2 });
    expect(drawn).toContain("\n  and 62 more workers\n");
    expect(drawn.match(/^[> ] grpc:/gm)).toHaveLength(4);
  });

  test("never steers the terminal by what a gateway says", () => {
    const candidates = [worker(5, { url: "grpc://\u001b[2J\u202e:1", excluded: "\u0007" })];
    const drawn = drawReport({ ...report, model: "\u001b]0;x\u0007", branch: "\r" as "hit", candidates }, screen);
    expect(drawn).not.toMatch(/[^\n\x20-\x7e█▒·]/);
  });
});

test("what a newer gateway tells besides does not matter, what it no longer tells does", () => {
  expect(readReport({ ...report, more: 1 })).toMatchObject({ more: 1 });
  const { spans: _, ...less } = report;
  expect(readReport(less)).toBeUndefined();
});

describe("the command", () => {
  const folder = mkdtempSync(join(tmpdir(), "collie-explain-"));
  const asked: { readonly body: unknown; readonly headers: Headers }[] = [];
  let answer = (): Response => Response.json(report);
  const gateway = Bun.serve({
    port: 0,
    hostname: "127.0.0.1",
    async fetch(request) {
      if (request.method !== "POST" || new URL(request.url).pathname !== "/base/routing/explain")
        return new Response("no", { status: 404 });
      asked.push({ body: await request.json(), headers: request.headers });
      return answer();
    },
  });
  const url = `http://127.0.0.1:${gateway.port}/base/`;
  afterAll(async () => {
    await gateway.stop(true);
    rmSync(folder, { recursive: true, force: true });
  });

  async function explain(args: readonly string[], input = "", env: Readonly<Record<string, string>> = {}) {
    const child = Bun.spawn([process.execPath, join(import.meta.dir, "run-cli.ts"), "explain", ...args], {
      env: { PATH: process.env["PATH"] ?? "", ...env },
      stdin: Buffer.from(input),
      stdout: "pipe",
      stderr: "pipe",
    });
    const [out, err, status] = await Promise.all([
      new Response(child.stdout).text(),
      new Response(child.stderr).text(),
      child.exited,
    ]);
    return { out, err, status };
  }
  const flags = ["--url", url, "--model", "m"];

  test("draws what the gateway answers, in ASCII unless the locale says UTF-8", async () => {
    const ascii = await explain([...flags, "--prompt", "Hello"], "", { COLUMNS: "100" });
    expect(ascii).toEqual({ out: drawReport(report, { ...screen, width: 100, isUtf8: false }), err: "", status: 0 });
    expect(asked.at(-1)?.body).toEqual({ model: "m", prompt: "Hello" });
    const utf8 = await explain([...flags, "--prompt", "Hello", "--most", "1"], "", { LANG: "C.UTF-8" });
    expect(utf8.out).toBe(drawReport(report, { ...screen, most: 1 }));
    const json = await explain([...flags, "--prompt", "Hello", "--json"]);
    expect(JSON.parse(json.out)).toEqual(report);
  });

  test("takes prompts and chats from files and standard input", async () => {
    const prompt = join(folder, "prompt.txt");
    writeFileSync(prompt, "From a file\n");
    const chat = join(folder, "chat.json");
    const messages = [{ role: "user", content: "Hi" }];
    writeFileSync(chat, JSON.stringify({ messages, tools: [], model: "other" }));
    const given: [string[], string, object][] = [
      [["--file", prompt], "", { prompt: "From a file\n" }],
      [[], "From standard input", { prompt: "From standard input" }],
      [["--chat", chat], "", { messages, tools: [] }],
      [["--chat", "-"], JSON.stringify(messages), { messages }],
    ];
    await explain(["--url", url, "--chat", chat]);
    expect(asked.at(-1)?.body).toEqual({ messages, tools: [], model: "other" });
    await explain(["--url", url, "--prompt", "a"]);
    expect(asked.at(-1)?.body).toEqual({ prompt: "a" });
    for (const [more, input, body] of given) {
      expect(await explain([...flags, ...more], input)).toMatchObject({ err: "", status: 0 });
      expect(asked.at(-1)?.body).toEqual({ ...body, model: "m" });
    }
  });

  test("sends the key, and the headers that the request would have", async () => {
    await explain([...flags, "--prompt", "a", "--routing-key", "k", "--target-worker", "w2"], "", {
      COLLIE_API_KEY: "secret",
    });
    const headers = Object.fromEntries(asked.at(-1)?.headers ?? []);
    expect(headers).toMatchObject({
      authorization: "Bearer secret",
      "x-smg-routing-key": "k",
      "x-smg-target-worker": "w2",
    });
  });

  test.each<[string, string[], string]>([
    ["two prompts", ["--model", "m", "--prompt", "a", "--chat", "b"], "--prompt, --file and --chat exclude each other"],
    ["no address", ["--model", "m", "--url", "10.0.0.1:80"], '--url: "10.0.0.1:80" is no http:// or https:// address'],
  ])("wrong flags give 2: %s", async (_, args, message) => {
    expect(await explain(args)).toEqual({ out: "", err: `collie: ${message}\n`, status: 2 });
  });

  test.each<[string, string[], string, string]>([
    ["a file that is not there", ["--file", "/nonexistent"], "", '"/nonexistent": no such file'],
    ["a chat that is no JSON", ["--chat", "-"], "[", "standard input is not JSON: "],
    ["a chat without messages", ["--chat", "-"], "{}", "standard input has no messages: "],
  ])("what cannot be asked gives 1: %s", async (_, args, input, message) => {
    const { out, err, status } = await explain([...flags, ...args], input);
    expect([out, status]).toEqual(["", 1]);
    expect(err).toStartWith(`collie: ${message}`);
  });

  test("a gateway that cannot be reached gives 1", async () => {
    const { err, status } = await explain(["--url", "http://127.0.0.1:1", "--model", "m", "--prompt", "a"]);
    expect(status).toBe(1);
    expect(err).toStartWith("collie: http://127.0.0.1:1 cannot be asked: ");
  });

  test.each<[string, () => Response, string]>([
    [
      "a wrong key",
      () => Response.json({ error: { message: "Wrong key" } }, { status: 401 }),
      "refuses: Wrong key (--api-key gives the key)",
    ],
    [
      "no such model",
      () => Response.json({ error: "There is no model m" }, { status: 404 }),
      "refuses: There is no model m",
    ],
    ["an older gateway", () => new Response("Not Found", { status: 404 }), "refuses: it has no /routing/explain"],
    ["something else", () => new Response("<html>", { status: 200 }), "answers with status 200"],
    ["another form", () => Response.json({ model: "m" }), "answers in a form that is not known here"],
  ])("refusals give 1: %s", async (_, refuse, message) => {
    const before = answer;
    answer = refuse;
    const { out, err, status } = await explain([...flags, "--prompt", "a"]);
    answer = before;
    expect([out, status]).toEqual(["", 1]);
    expect(err).toStartWith(
      `collie: ${url.slice(0, -1)} ${message.replace(/^answers with/, "refuses: it answers with")}`,
    );
  });
});
