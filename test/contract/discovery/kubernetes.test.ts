/** Pods, through the real client of Kubernetes and real connections, against an API that does what APIs do. */
import { afterEach, beforeEach, expect, test } from "bun:test";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { systemClock } from "../../../src/fleet/clock.ts";
import { podClient } from "../../../src/fleet/discovery/kubernetes/client.ts";
import { modelIdFrom } from "../../../src/fleet/discovery/kubernetes/pods.ts";
import { type KubernetesSettings, kubernetesSource } from "../../../src/fleet/discovery/kubernetes/source.ts";
import type { DiscoveredWorker } from "../../../src/fleet/worker-source.ts";
import { createLogger } from "../../../src/telemetry/log.ts";
import { KubeApi, type TestPod } from "../../support/kube-api.ts";

const APP = { app: "engine" };
const engine = (n: number, more: Partial<TestPod> = {}): TestPod => ({
  name: `engine-${n}`,
  uid: `uid-${n}`,
  ip: `10.0.0.${n}`,
  labels: APP,
  ...more,
});

let api: KubeApi;
let folder: string;
let closing: AbortController;
let clock: ReturnType<typeof systemClock>;
let lists: (readonly DiscoveredWorker[])[];
let problems: string[];

beforeEach(() => {
  api = new KubeApi();
  folder = mkdtempSync(join(tmpdir(), "collie-kube-"));
  process.env["KUBECONFIG"] = join(folder, "config");
  api.writeKubeconfig(join(folder, "config"));
  closing = new AbortController();
  clock = systemClock();
  lists = [];
  problems = [];
});

afterEach(async () => {
  closing.abort();
  clock.close();
  await api.stop();
  delete process.env["KUBECONFIG"];
  rmSync(folder, { recursive: true });
});

/** `resyncMs` is long unless the test is about it: what comes, comes by the watch. */
function start({
  resyncMs = 60_000,
  graceMs = 500,
  namespace,
  ...more
}: Partial<KubernetesSettings> & {
  readonly resyncMs?: number;
  readonly graceMs?: number;
  readonly namespace?: string;
} = {}): void {
  const settings: KubernetesSettings = {
    port: 8000,
    scheme: "grpc",
    roles: [{ role: "regular", selector: "app=engine" }],
    modelIdFrom: undefined,
    watch: { resyncMs, firstPauseMs: 10, maxPauseMs: 100 },
    ...more,
  };
  const sink = {
    replace: (workers: readonly DiscoveredWorker[]) => void lists.push(workers),
    problem: (error: Error) => void problems.push(error.message),
  };
  const log = createLogger({ level: "error", json: true });
  kubernetesSource(settings, podClient({ namespace, requestMs: 2000, graceMs }), clock, log).start(
    sink,
    closing.signal,
  );
}

const urls = () => lists.at(-1)?.map(({ spec }) => spec.url);

async function until(holds: () => boolean, ms = 5000): Promise<void> {
  const end = Date.now() + ms;
  while (!holds()) {
    if (Date.now() > end) throw new Error(`not within ${ms} ms: ${JSON.stringify({ last: lists.at(-1), problems })}`);
    await Bun.sleep(10);
  }
}
const untilUrls = (...wanted: string[]) => until(() => Bun.deepEquals(urls(), wanted));

test("pods that come, change and go are told of as they do", async () => {
  api.put(engine(1));
  api.put(engine(9, { labels: { app: "other" } }));
  start();
  await untilUrls("grpc://10.0.0.1:8000");
  expect(lists.at(-1)?.[0]).toEqual({
    key: "uid-1/8000",
    spec: {
      url: "grpc://10.0.0.1:8000",
      workerType: "regular",
      labels: { "smg.ai/pod-name": "engine-1", "smg.ai/pod-uid": "uid-1" },
    },
  });
  api.put(engine(2, { isReady: false }));
  api.put(engine(2));
  await untilUrls("grpc://10.0.0.1:8000", "grpc://10.0.0.2:8000");
  api.put(engine(1, { ends: true }));
  await untilUrls("grpc://10.0.0.2:8000");
  api.remove("uid-1");
  api.put(engine(2, { labels: { app: "other" } })); // relabelled
  await untilUrls();
  // the same name and address, another pod
  api.put({ ...engine(2), uid: "uid-2b" });
  await until(() => lists.at(-1)?.[0]?.key === "uid-2b/8000");
  expect(api.count("list")).toBe(1);
  expect(problems).toEqual([]);
});

test("a list comes in pages", async () => {
  for (let n = 0; n < 1201; n++) api.put(engine(n, { ip: `10.0.${n >> 8}.${n & 255}` }));
  start();
  await until(() => lists.at(-1)?.length === 1201);
  expect(
    api.requests.filter(({ query }) => query["watch"] === undefined).map(({ query }) => query["continue"]),
  ).toEqual([undefined, "500", "1000"]);
});

test("roles, several ports, bootstrap ports and the model's name", async () => {
  const annotations = { "smg.ai/worker-ports": "8001, 8002,8001", "sglang.ai/bootstrap-port": "9001,9002" };
  api.put(engine(1, { labels: { ...APP, role: "prefill", model: "big" }, annotations }));
  api.put(engine(2, { labels: { ...APP, role: "decode" }, annotations: { "smg.ai/worker-ports": "http" } }));
  start({
    roles: [
      { role: "prefill", selector: "app=engine,role=prefill" },
      { role: "decode", selector: "app=engine,role=decode" },
      { role: "regular", selector: "app=engine" },
    ],
    modelIdFrom: modelIdFrom("label:model"),
    namespace: "default",
  });
  await until(() => lists.at(-1)?.length === 3);
  const shown = lists.at(-1)?.map(({ key, spec }) => [key, spec.workerType, spec.bootstrapPort, spec.models]);
  expect(shown).toEqual([
    ["uid-1/8001", "prefill", 9001, ["big"]],
    ["uid-1/8002", "prefill", 9002, ["big"]],
    ["uid-2/8000", "decode", undefined, undefined],
  ]);
  expect(new Set(api.requests.map(({ path }) => path))).toEqual(new Set(["/api/v1/namespaces/default/pods"]));
});

test.each([true, false])("an expired version means a new list (told as an event: %p)", async (asEvent) => {
  api.goneAsEvent = asEvent;
  api.put(engine(1));
  start();
  await untilUrls("grpc://10.0.0.1:8000");
  await until(() => api.openWatches === 1);
  api.isSilent = true;
  api.put(engine(2));
  api.isSilent = false;
  api.compact(); // what happened while nobody told is forgotten
  api.endWatches();
  await untilUrls("grpc://10.0.0.1:8000", "grpc://10.0.0.2:8000");
  expect(api.count("list")).toBe(2);
  expect(problems).toEqual([]);
});

test("bookmarks keep the version fresh", async () => {
  api.put(engine(1));
  start();
  await until(() => api.openWatches === 1);
  api.compact();
  api.bookmark();
  await Bun.sleep(50);
  api.endWatches();
  await until(() => api.count("watch") === 2 && api.openWatches === 1);
  api.put(engine(2));
  await untilUrls("grpc://10.0.0.1:8000", "grpc://10.0.0.2:8000");
  expect(api.count("list")).toBe(1);
});

test("a watch that ends in the middle of a line goes on where it was", async () => {
  api.put(engine(1));
  start();
  await until(() => api.openWatches === 1);
  api.put(engine(2));
  await untilUrls("grpc://10.0.0.1:8000", "grpc://10.0.0.2:8000");
  api.send('{"type":"DELETED","object":{"metadata":{"uid":"uid-2"');
  api.isSilent = true;
  api.put(engine(3)); // while it is away
  api.isSilent = false;
  api.endWatches();
  await untilUrls("grpc://10.0.0.1:8000", "grpc://10.0.0.2:8000", "grpc://10.0.0.3:8000");
  expect(api.count("list")).toBe(1);
  expect(problems).toEqual([]);
});

test("events in pieces, and several at once", async () => {
  start();
  await until(() => api.openWatches === 1);
  const event = (n: number) =>
    JSON.stringify({
      type: "ADDED",
      object: {
        metadata: {
          uid: `uid-${n}`,
          name: "pod-ü",
          resourceVersion: "500",
          annotations: { "smg.ai/worker-ports": `${n}` },
        },
        status: { phase: "Running", podIP: "10.1.1.1", conditions: [{ type: "Ready", status: "True" }] },
      },
    });
  const text = `${event(1)}\n${event(2)}\n${event(3)}\n`;
  for (const part of [text.slice(0, 40), text.slice(40, 41), text.slice(41, -30), text.slice(-30)]) {
    api.send(part);
    await Bun.sleep(20);
  }
  await untilUrls("grpc://10.1.1.1:1", "grpc://10.1.1.1:2", "grpc://10.1.1.1:3");
});

test("the API goes away and comes back: the pods stay meanwhile", async () => {
  api.put(engine(1));
  start({ resyncMs: 300 });
  await untilUrls("grpc://10.0.0.1:8000");
  const back = await api.down();
  await until(() => problems.length > 2);
  expect(urls()).toEqual(["grpc://10.0.0.1:8000"]);
  api.put(engine(2));
  back();
  await untilUrls("grpc://10.0.0.1:8000", "grpc://10.0.0.2:8000");
});

test("a watch that has fallen silent is found out by the next list", async () => {
  api.put(engine(1));
  api.put(engine(2));
  api.endsWatches = false;
  start({ resyncMs: 300, graceMs: 200 });
  await untilUrls("grpc://10.0.0.1:8000", "grpc://10.0.0.2:8000");
  await until(() => api.openWatches === 1);
  api.isSilent = true;
  api.put(engine(3));
  api.remove("uid-2");
  await untilUrls("grpc://10.0.0.1:8000", "grpc://10.0.0.3:8000");
  await until(() => api.count("list") > 3);
  expect(api.openWatches).toBeLessThanOrEqual(2); // those before were cut
  expect(problems).toEqual([]);
});

test("what a watch has missed is put right by the next list", async () => {
  api.put(engine(1));
  api.put(engine(2));
  start({ resyncMs: 1000 });
  await untilUrls("grpc://10.0.0.1:8000", "grpc://10.0.0.2:8000");
  api.removeUnseen("uid-2");
  await untilUrls("grpc://10.0.0.1:8000");
});

test("a right that is missing is told in the API's words, and tried again", async () => {
  const message = 'pods is forbidden: User "system:serviceaccount:default:collie" cannot list resource "pods"';
  api.refusals.push({ of: "list", status: 403, message, times: 3 });
  api.put(engine(1));
  start();
  await untilUrls("grpc://10.0.0.1:8000");
  expect(problems).toEqual([message, message, message]);
  api.refusals.push({ of: "watch", status: 403, message: "pods is forbidden: cannot watch", times: 2 });
  await until(() => api.openWatches === 1);
  api.endWatches();
  await until(() => problems.length === 5);
  expect(problems.at(-1)).toBe("pods is forbidden: cannot watch");
});

test("who is told to wait, waits", async () => {
  api.refusals.push({ of: "list", status: 429, message: "too many requests", times: 1, retryAfterSecs: 1 });
  const since = performance.now();
  start();
  await until(() => problems.length === 1);
  await until(() => api.requests.length > 1);
  expect(performance.now() - since).toBeGreaterThan(950);
  await until(() => lists.length > 0);
});

test("a token that is replaced on disk is used when the old one is refused", async () => {
  const file = join(folder, "token");
  writeFileSync(file, "first-token\n");
  api.writeKubeconfig(join(folder, "config"), { file });
  api.put(engine(1));
  start();
  await untilUrls("grpc://10.0.0.1:8000");
  await until(() => api.openWatches === 1);
  api.token = "second-token";
  writeFileSync(file, "second-token\n");
  api.put(engine(2));
  api.endWatches();
  await untilUrls("grpc://10.0.0.1:8000", "grpc://10.0.0.2:8000");
  await until(() => api.requests.at(-1)?.authorization === "Bearer second-token");
});

test("a cluster with another certificate gets no token", async () => {
  const text = await Bun.file(join(folder, "config")).json();
  delete text.clusters[0].cluster["certificate-authority-data"];
  writeFileSync(join(folder, "config"), JSON.stringify(text));
  start();
  await until(() => problems.length > 0);
  expect(problems.at(-1)).toMatch(/certificate/);
  expect(api.requests).toEqual([]);
});

test("without a cluster to talk to, that is told", async () => {
  writeFileSync(join(folder, "config"), "apiVersion: v1\nkind: Config\ncurrent-context: none\n");
  start();
  await until(() => problems.length > 0);
  expect(problems.at(-1)).toBe("the kubeconfig's current context has no cluster");
});

test("an end closes the watch", async () => {
  start();
  await until(() => api.openWatches === 1);
  closing.abort();
  await until(() => api.openWatches === 0);
});
