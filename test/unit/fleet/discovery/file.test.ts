import { afterEach, beforeEach, describe, expect, test } from "bun:test";
import { mkdirSync, mkdtempSync, renameSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileSource, parseWorkerFile, readWorkerFile, WorkerFileError } from "../../../../src/fleet/discovery/file.ts";
import type { DiscoveredWorker } from "../../../../src/fleet/worker-source.ts";
import { FakeClock } from "../../../support/fake-clock.ts";
import { until } from "../../../support/until.ts";

const problemOf = (text: string): string => {
  try {
    return JSON.stringify(parseWorkerFile(text));
  } catch (error) {
    if (!(error instanceof WorkerFileError)) throw error;
    return error.message;
  }
};

describe("a worker file", () => {
  test("is YAML or JSON: addresses, and workers as the workers' API takes them", () => {
    const yaml = `
workers:
  - grpc://10.0.0.5:50051
  - url: http://10.0.0.6:8000
    models: [big]
    worker_type: prefill
    bootstrap_port: 9000
    priority: 70
    labels: {zone: a}
`;
    const expected = [
      { key: "10.0.0.5:50051", spec: { url: "grpc://10.0.0.5:50051" } },
      {
        key: "10.0.0.6:8000",
        spec: {
          url: "http://10.0.0.6:8000",
          models: ["big"],
          workerType: "prefill",
          bootstrapPort: 9000,
          priority: 70,
          labels: { zone: "a" },
        },
      },
    ];
    expect(parseWorkerFile(yaml)).toEqual(expected as DiscoveredWorker[]);
    expect(parseWorkerFile(JSON.stringify(Bun.YAML.parse(yaml), undefined, "\t"))).toEqual(
      expected as DiscoveredWorker[],
    );
    expect(parseWorkerFile("workers: []")).toEqual([]);
  });

  test("that is wrong is refused with the place of the fault, and without its keys", () => {
    expect(problemOf("")).toBe("must hold the list workers");
    expect(problemOf("- grpc://a:1")).toBe("must hold the list workers");
    expect(problemOf("workers:")).toBe("workers must be a list; [] for none");
    expect(problemOf("worker: []")).toBe('"worker" is unknown: only workers is');
    expect(problemOf("workers: [grpc://a:1, {url: b:1, prio: 3}]")).toBe("workers[1]: prio is unknown");
    expect(problemOf("workers: [{url: a:1, runtime_type: vlm}]")).toStartWith(
      "workers[0]: runtime_type must be one of vllm",
    );
    expect(problemOf("workers: [{url: a:1, provider: 1}]")).toBe("workers[0]: provider must be a text");
    expect(problemOf("workers: [{url: a:1, dp_size: 0}]")).toStartWith(
      "workers[0]: dp_size must be a whole number from 1",
    );
    for (const name of ["resilience", "http_pool"])
      expect(problemOf(`workers: [{url: a:1, ${name}: [1]}]`)).toBe(`workers[0]: ${name} must be an object`);
    for (const runtime of ["vllm", "external", "unspecified", "llamacpp", "unknown"])
      expect(
        parseWorkerFile(`workers: [{url: a:1, runtime_type: ${runtime}, resilience: {max_retries: 1}}]`),
      ).toHaveLength(1);
    expect(problemOf("workers: [grpc://a:1, http://A:1]")).toBe("workers[1]: a:1 is in the list twice");
    expect(problemOf("workers: [dns://a:1]")).toStartWith('workers[0]: "dns://a:1" is no address of a worker');
    expect(problemOf("workers: [a: b: c")).toStartWith("is no YAML: ");
    expect(problemOf('{"workers": [{"api_key": "secret"}')).toBe("is no JSON");
  });
});

describe("a worker file that is watched", () => {
  let folder: string;
  let path: string;
  let clock: FakeClock;
  let closing: AbortController;
  let told: string[][];
  let problems: string[];

  beforeEach(() => {
    folder = mkdtempSync(join(tmpdir(), "collie-file-"));
    path = join(folder, "workers.yaml");
    clock = new FakeClock();
    closing = new AbortController();
    told = [];
    problems = [];
  });
  afterEach(() => {
    closing.abort();
    rmSync(folder, { recursive: true });
  });

  const start = async () => {
    const replace = (workers: readonly DiscoveredWorker[]) => void told.push(workers.map(({ key }) => key));
    const problem = (error: Error) => void problems.push(error.message);
    fileSource(path, clock).start({ replace, problem }, closing.signal);
    await looked();
  };
  /** The file system answers in its own time. */
  const looked = async () => {
    await until(() => clock.waits > 0, "a look");
    expect(clock.waits).toBe(1);
  };
  const look = async (times = 2) => {
    for (let i = 0; i < times; i++) {
      await clock.pass(1000);
      await looked();
    }
  };

  test("is told when it changes, and only then", async () => {
    writeFileSync(path, "workers: [a:1]");
    await start();
    await look(3);
    expect(told).toEqual([["a:1"]]);
    writeFileSync(path, "workers: [a:1, b:1]");
    await look();
    expect(told).toEqual([["a:1"], ["a:1", "b:1"]]);
    writeFileSync(path, "workers: []");
    await look();
    expect(told.at(-1)).toEqual([]);
  });

  test("is not read while it is written", async () => {
    writeFileSync(path, "workers: [a:1, b:1]");
    await start();
    writeFileSync(path, "workers: [a:1]"); // the first part of what follows
    await look(1);
    writeFileSync(path, "workers: [a:1, b:1, c:1]");
    await look(2);
    expect(told).toEqual([
      ["a:1", "b:1"],
      ["a:1", "b:1", "c:1"],
    ]);
  });

  test("a bad save changes nothing, and the next good one counts", async () => {
    writeFileSync(path, "workers: [a:1]");
    await start();
    writeFileSync(path, "workers: [a:1, {url: b:1, oops: 1}]");
    await look(4);
    expect(problems).toEqual([`${path}: workers[1]: oops is unknown`]);
    rmSync(path);
    await look(4);
    expect(problems.slice(1)).toEqual([`${path}: no such file`]);
    writeFileSync(path, "workers: [c:1]");
    await look();
    expect(told).toEqual([["a:1"], ["c:1"]]);
  });

  test("a ConfigMap is swapped by a link to a folder", async () => {
    const version = (name: string, text: string) => {
      mkdirSync(join(folder, name));
      writeFileSync(join(folder, name, "workers.yaml"), text);
      symlinkSync(name, join(folder, "..new"));
      renameSync(join(folder, "..new"), join(folder, "..data"));
    };
    version("..1", "workers: [a:1]");
    symlinkSync("..data/workers.yaml", path);
    await start();
    version("..2", "workers: [b:1]"); // of the same size
    await look();
    expect(told).toEqual([["a:1"], ["b:1"]]);
  });

  test("that is not there is told of at the start", async () => {
    expect(readWorkerFile(path)).rejects.toThrow(`${path}: no such file`);
    await start();
    expect(problems).toEqual([`${path}: no such file`]);
    writeFileSync(path, "workers: [a:1]");
    await look();
    expect(told).toEqual([["a:1"]]);
  });
});
