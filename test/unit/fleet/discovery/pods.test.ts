import { describe, expect, test } from "bun:test";
import { modelIdFrom, type PodJson, readPod, workersOf } from "../../../../src/fleet/discovery/kubernetes/pods.ts";
import { roleSelectors } from "../../../../src/fleet/discovery/kubernetes/roles.ts";

const READY = [{ type: "Ready", status: "True" }];
const json = (metadata: PodJson["metadata"] = {}, status: PodJson["status"] = {}): PodJson => ({
  metadata: { uid: "u", name: "n", namespace: "ns", ...metadata },
  status: { phase: "Running", podIP: "10.0.0.1", conditions: READY, ...status },
});

function workers(pod: PodJson, from?: string) {
  const read = readPod(pod, modelIdFrom(from));
  const complaints: string[] = [];
  if (read === undefined) throw new Error("no pod");
  const found = workersOf(read, "regular", { port: 80, scheme: undefined }, (problem) => void complaints.push(problem));
  return { complaints, found, urls: found.map(({ spec }) => spec.url) };
}
const ports = (annotation: string, bootstrap?: string) =>
  workers(
    json({
      annotations: {
        "smg.ai/worker-ports": annotation,
        ...(bootstrap !== undefined && { "sglang.ai/bootstrap-port": bootstrap }),
      },
    }),
  );

describe("a pod", () => {
  test.each([
    ["is ready and runs", json(), ["10.0.0.1:80"]],
    ["has an address of version 6", json({}, { podIP: "fd00::7" }), ["[fd00::7]:80"]],
    ["is not ready", json({}, { conditions: [{ type: "Ready", status: "False" }] }), []],
    ["says nothing of being ready", json({}, { conditions: [{ type: "Initialized", status: "True" }] }), []],
    ["has not begun", json({}, { phase: "Pending" }), []],
    ["ends", json({ deletionTimestamp: "2026-01-01T00:00:00Z" }), []],
    [
      "has no address yet",
      { metadata: json().metadata, status: { phase: "Running", conditions: READY } } as PodJson,
      [],
    ],
  ])("that %s", (_, pod, urls) => {
    expect(workers(pod).urls).toEqual(urls);
  });

  test("has one worker for each of its ports", () => {
    expect(ports("8000").urls).toEqual(["10.0.0.1:8000"]);
    expect(ports(" 8002,8001 , 8002").urls).toEqual(["10.0.0.1:8002", "10.0.0.1:8001"]);
    for (const wrong of ["", "http", "8000,", "0", "65536", "8000;8001", "-1", "8e3"]) {
      const { complaints, urls } = ports(wrong);
      expect(urls).toEqual(["10.0.0.1:80"]);
      expect(complaints).toHaveLength(1);
    }
  });

  test("has one port to bootstrap by for all workers, or one for each", () => {
    const of = (given: string, bootstrap: string) =>
      ports(given, bootstrap).found.map(({ spec }) => spec.bootstrapPort);
    expect(of("1,2", "9000")).toEqual([9000, 9000]);
    expect(of("1,2", "9000,9001")).toEqual([9000, 9001]);
    expect(of("1,2", "9000,9001,9002")).toEqual([undefined, undefined]);
    expect(ports("1,2", "x").complaints).toHaveLength(1);
  });

  test("names its model by its namespace, a label or an annotation", () => {
    const pod = json({ labels: { model: "l" }, annotations: { "a/b": "a" } });
    const models = (from?: string) => workers(pod, from).found[0]?.spec.models;
    expect(models()).toBeUndefined();
    expect(models("namespace")).toEqual(["ns"]);
    expect(models("label:model")).toEqual(["l"]);
    expect(models("annotation:a/b")).toEqual(["a"]);
    expect(models("label:other")).toBeUndefined();
    expect(workers(pod, "label:model").found[0]?.spec.labels?.["served_model_name"]).toBe("l");
  });
});

test("roles are found by their labels, the more special first", () => {
  const none = { selector: [], prefillSelector: [], decodeSelector: [], encodeSelector: [] };
  expect(roleSelectors({ ...none, selector: ["app=e", "tier=x"], prefillSelector: ["role=p"] })).toEqual([
    { role: "prefill", selector: "role=p" },
    { role: "regular", selector: "app=e,tier=x" },
  ]);
});
