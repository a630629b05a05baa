/** Workers that a file and a cluster tell of, with the compiled program, while requests run. */
import { afterAll, afterEach, beforeAll, describe, expect, test } from "bun:test";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { KubeApi, type TestPod } from "../support/kube-api.ts";
import { BUILD_MS } from "./support/binary.ts";
import { chat, eventually, type Program, start, startEngine, type TestEngine, user } from "./support/processes.ts";

const SCRIPT = `
- contains: hello
  text: "one two three four five six seven eight"
  ms_per_token: 20
`;

let engines: TestEngine[];
let folder: string;
let program: Program | undefined;
let url: string;

beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), "collie-discovery-"));
  engines = await Promise.all([2, 3].map((n) => startEngine(SCRIPT, ["--host", `127.0.0.${n}`])));
}, BUILD_MS);
afterEach(() => program?.stop());
afterAll(async () => {
  await Promise.all(engines.map((engine) => engine.stop()));
  rmSync(folder, { recursive: true });
});

async function serve(args: readonly string[], env: Record<string, string> = {}): Promise<void> {
  program = start(["serve", "--host", "127.0.0.1", "--port", "0", "--log-json", ...args], { env });
  const [, port] = await program.until(/"message":"listening","url":"http:\/\/127\.0\.0\.1:(\d+)"/);
  url = `http://127.0.0.1:${port}`;
}

async function workers(): Promise<Record<string, unknown>[]> {
  return ((await (await fetch(`${url}/workers`)).json()) as { workers: Record<string, unknown>[] }).workers;
}

/** Waits until these are ready, and nobody else is there. */
async function untilReady(...urls: readonly string[]): Promise<void> {
  const wanted = urls.map((one) => new URL(one).host).toSorted();
  await eventually(async () => {
    const all = await workers();
    const there = all.map((worker) => String(worker["url"]).replace(/^grpc:\/\//, "")).toSorted();
    return Bun.deepEquals(there, wanted) && all.every(({ status }) => status === "ready");
  }, 10_000);
}

interface Answer {
  readonly choices: readonly { readonly message: { readonly content: string }; readonly finish_reason: string }[];
}

/** Clients that ask without a pause until they are stopped. Gives what came, each answer in brief. */
function clients(count: number) {
  let over = false;
  const answers: string[] = [];
  const all = Array.from({ length: count }, async (_, client) => {
    for (let i = 0; !over; i++) {
      const response = await chat(
        { url },
        { model: "collie-demo", messages: user(`hello ${client} ${i}`), max_tokens: 20 },
      );
      const text = await response.text();
      const [choice] = response.status === 200 ? (JSON.parse(text) as Answer).choices : [];
      answers.push(`${response.status} ${choice === undefined ? text : choice.message.content}`);
    }
  });
  return {
    answers,
    async stop() {
      over = true;
      await Promise.all(all);
      return new Set(answers);
    },
  };
}

const WHOLE = new Set(["200 one two three four five six seven eight"]);

/** Waits for the requests of some clients that begin from now on. */
async function more(answers: readonly string[]): Promise<void> {
  const before = answers.length;
  await eventually(() => answers.length >= before + 12, 10_000);
}

describe("a worker file", () => {
  test("adds and takes away workers while requests run, and none is lost", async () => {
    const [first, second] = engines as [TestEngine, TestEngine];
    const file = join(folder, "workers.yaml");
    const save = (...urls: string[]) => writeFileSync(file, `workers: ${JSON.stringify(urls)}\n`);
    save(first.url);
    await serve(["--worker-file", file, "--threads", "2"]);
    await untilReady(first.url);
    const running = clients(6);
    await more(running.answers);
    save(first.url, second.url);
    await untilReady(first.url, second.url);
    await more(running.answers);
    expect((await second.stats()).received).toBeGreaterThan(0);
    save(second.url);
    await untilReady(second.url);
    await more(running.answers);
    const { received } = await first.stats();
    writeFileSync(file, "workers: [oops");
    await program?.until(/a source of workers fails/);
    await more(running.answers);
    save(first.url, second.url);
    await untilReady(first.url, second.url);
    await more(running.answers);
    expect(await running.stop()).toEqual(WHOLE);
    const stats = await first.stats();
    expect(stats.received).toBeGreaterThan(received);
    expect(stats.abortedByCancel + stats.abortedByRpc).toBe(0);
  }, 60_000);

  test("that cannot be taken stops the start", async () => {
    const file = join(folder, "bad.yaml");
    writeFileSync(file, "workers: [grpc://a:1, 7]");
    program = start(["serve", "--port", "0", "--worker-file", file]);
    expect(await program.exited).toBe(2);
    expect(program.output()).toContain(`--worker-file: ${file}: workers[1]: A worker must be an object`);
  });
});

describe("pods of a cluster", () => {
  let api: KubeApi;
  const pod = (n: number, engine: TestEngine): TestPod => ({
    name: `engine-${n}`,
    uid: `uid-${n}`,
    ip: new URL(engine.url).hostname,
    labels: { app: "engine", model: "my-model" },
    annotations: { "smg.ai/worker-ports": new URL(engine.url).port },
  });

  beforeAll(() => {
    api = new KubeApi();
    api.writeKubeconfig(join(folder, "kubeconfig"));
  });
  afterAll(() => api.stop());

  test("come, go and are relabelled while requests run, and none is lost", async () => {
    const [first, second] = engines as [TestEngine, TestEngine];
    api.put(pod(1, first));
    const env = { KUBECONFIG: join(folder, "kubeconfig") };
    await serve(["--service-discovery", "--selector", "app=engine"], env);
    await untilReady(first.url);
    const [worker] = await workers();
    expect(worker?.["labels"]).toMatchObject({ "smg.ai/pod-name": "engine-1", "smg.ai/pod-uid": "uid-1" });
    const running = clients(4);
    await more(running.answers);
    api.put(pod(2, second));
    await untilReady(first.url, second.url);
    await more(running.answers);
    api.put({ ...pod(1, first), labels: { app: "retired" } });
    await untilReady(second.url);
    const back = await api.down();
    await more(running.answers);
    back();
    api.put({ ...pod(1, first), uid: "uid-1b" });
    await untilReady(first.url, second.url);
    api.remove("uid-2");
    await untilReady(first.url);
    await more(running.answers);
    expect(await running.stop()).toEqual(WHOLE);
    for (const engine of engines) {
      const stats = await engine.stats();
      expect(stats.abortedByCancel + stats.abortedByRpc).toBe(0);
    }
  }, 60_000);

  test("a cluster that refuses is told of, and nothing else suffers", async () => {
    api.refusals.push({ of: "list", status: 403, message: "pods is forbidden", times: 1000 });
    const env = { KUBECONFIG: join(folder, "kubeconfig") };
    await serve(["--service-discovery", "--selector", "app=other", "--worker-urls", engines[0]?.url ?? ""], env);
    await program?.until(/"source":"kubernetes".*pods is forbidden/);
    await untilReady(engines[0]?.url ?? "");
  }, 20_000);

  test("selectors that make no sense stop the start", async () => {
    program = start(["serve", "--port", "0", "--service-discovery"]);
    expect(await program.exited).toBe(2);
    expect(program.output()).toContain("--service-discovery: needs --selector");
  });
});
