import { afterEach, beforeEach, describe, expect, test } from "bun:test";
import { type DnsName, isDnsUrl, parseDnsName } from "../../../../src/config/dns-name.ts";
import { type DnsSettings, dnsSource, type Lookup, systemLookup } from "../../../../src/fleet/discovery/dns.ts";
import type { DiscoveredWorker } from "../../../../src/fleet/worker-source.ts";
import { FakeClock, settled } from "../../../support/fake-clock.ts";

describe("names of DNS", () => {
  test("are a host with a port, or a service", () => {
    expect(parseDnsName("dns://Engines.default.svc.cluster.local:50051")).toEqual({
      kind: "addresses",
      name: "engines.default.svc.cluster.local",
      port: 50051,
    });
    expect(parseDnsName("dns:///engines:80/")).toEqual({ kind: "addresses", name: "engines", port: 80 });
    expect(parseDnsName("dns+srv://_grpc._tcp.engines.default.svc")).toEqual({
      kind: "services",
      name: "_grpc._tcp.engines.default.svc",
    });
  });

  test.each([
    "dns://engines",
    "dns://engines:0",
    "dns://engines:70000",
    "dns+srv://_grpc._tcp.engines:50051",
    "dns://",
    "dns://a b:1",
    "dns://user@engines:1",
    "dns://engines:1/path",
  ])("%s is none", (url) => {
    expect(isDnsUrl(url)).toBe(true);
    expect(parseDnsName(url)).toBeUndefined();
  });
});

const HOST: DnsName = { kind: "addresses", name: "engines", port: 50051 };
const SERVICE: DnsName = { kind: "services", name: "_grpc._tcp.engines" };

describe("workers behind names", () => {
  let clock: FakeClock;
  let closing: AbortController;
  let told: string[][];
  let problems: string[];
  let addresses: Record<string, readonly string[]>;
  let services: readonly { readonly name: string; readonly port: number }[] | undefined;

  beforeEach(() => {
    clock = new FakeClock();
    closing = new AbortController();
    told = [];
    problems = [];
    addresses = {};
    services = undefined;
  });
  afterEach(() => closing.abort());

  const missing = (name: string) => Promise.reject(Object.assign(new Error(name), { code: "ENOTFOUND" }));
  const lookup: Lookup = {
    addresses: async (name) => addresses[name] ?? missing(name),
    services: async (name) => services ?? missing(name),
  };
  const start = async (names: readonly DnsName[], settings: Partial<DnsSettings> = {}) => {
    const replace = (workers: readonly DiscoveredWorker[]) => void told.push(workers.map(({ spec }) => spec.url));
    const problem = (error: Error) => void problems.push(error.message);
    const all = { refreshMs: 30_000, keepMs: 300_000, scheme: undefined, ...settings };
    dnsSource(names, all, clock, lookup).start({ replace, problem }, closing.signal);
    await settled();
  };

  test("follow its addresses", async () => {
    addresses = { engines: ["10.0.0.2", "10.0.0.1", "fd00::1"] };
    await start([HOST], { scheme: "http" });
    expect(told).toEqual([["http://10.0.0.1:50051", "http://10.0.0.2:50051", "http://[fd00::1]:50051"]]);
    addresses = { engines: ["10.0.0.2"] };
    await clock.pass(29_000);
    expect(told).toHaveLength(1);
    await clock.pass(2000);
    expect(told.at(-1)).toEqual(["http://10.0.0.2:50051"]);
  });

  test("stay while the name cannot be looked up, for so long", async () => {
    addresses = { engines: ["10.0.0.1"] };
    await start([HOST]);
    addresses = {};
    await clock.pass(299_000);
    expect(told.every((urls) => Bun.deepEquals(urls, ["10.0.0.1:50051"]))).toBe(true);
    expect(problems).toEqual(["engines cannot be looked up, its workers stay: ENOTFOUND"]);
    await clock.pass(2000);
    expect(told.at(-1)).toEqual([]);
    expect(problems.slice(1)).toEqual(["engines cannot be looked up, its workers are given up: ENOTFOUND"]);
    addresses = { engines: ["10.0.0.9"] };
    await clock.pass(30_000);
    expect(told.at(-1)).toEqual(["10.0.0.9:50051"]);
  });

  test("are there when the name comes to be", async () => {
    await start([HOST]);
    await clock.pass(40_000);
    expect(told).toEqual([]);
    expect(problems).toEqual(["engines cannot be looked up: ENOTFOUND"]);
    addresses = { engines: ["10.0.0.1"] };
    await clock.pass(30_000);
    expect(told).toEqual([["10.0.0.1:50051"]]);
  });

  test("of a service have its ports, and what its name says they speak", async () => {
    addresses = { one: ["10.0.0.1"], two: ["10.0.0.2"], engines: ["10.0.0.7"] };
    services = [
      { name: "one", port: 5001 },
      { name: "two", port: 5002 },
    ];
    await start([SERVICE, HOST]);
    expect(told).toEqual([
      ["10.0.0.7:50051", "grpc://10.0.0.1:5001", "grpc://10.0.0.2:5002"].toSorted((a, b) =>
        a.replace("grpc://", "") < b.replace("grpc://", "") ? -1 : 1,
      ),
    ]);
    // one host that cannot be looked up does not take the other away
    addresses = { two: ["10.0.0.2"], engines: ["10.0.0.8"] };
    await clock.pass(31_000);
    expect(told.at(-1)).toEqual(["grpc://10.0.0.1:5001", "grpc://10.0.0.2:5002", "10.0.0.8:50051"]);
    expect(problems).toHaveLength(1);
  });
});

test("the system knows its own name, by one kind of address", async () => {
  const found = await systemLookup.addresses("localhost");
  expect(["127.0.0.1", "::1"]).toContain(found[0] ?? "");
  expect(new Set(found.map((ip) => ip.includes(":"))).size).toBe(1);
  expect(systemLookup.addresses("nowhere.invalid")).rejects.toMatchObject({ code: "ENOTFOUND" });
});
