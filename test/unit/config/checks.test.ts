import { describe, expect, test } from "bun:test";
import { emptyCaches, repeatedWorkers, selectorProblems } from "../../../src/config/checks.ts";
import { disaggregationProblems, prefillWorkers } from "../../../src/config/disaggregation.ts";
import { resolveOptions } from "../../../src/config/resolve.ts";
import { serveOptions } from "../../../src/config/serve-options.ts";

const problems = (...args: string[]): string[] =>
  emptyCaches(resolveOptions(serveOptions, { args, env: {} }).values).map((line) => line.split(":")[0]!);

test("a cache that is on needs room", () => {
  const entries = ["--tokenizer-cache-l0-max-entries", "0"];
  const bytes = ["--tokenizer-cache-l1-max-memory", "0"];
  expect(problems()).toEqual([]);
  expect(problems(...entries)).toEqual(["--tokenizer-cache-l0-max-entries"]);
  expect(problems(...bytes)).toEqual(["--tokenizer-cache-l1-max-memory"]);
  expect(problems(...bytes, "--no-tokenizer-cache-enable-l1")).toEqual(["--tokenizer-cache-l1-max-memory"]);
  expect(problems(...entries, ...bytes).length).toBe(2);
  expect(problems(...entries, "--tokenizer-cache-enable-l0=false")).toEqual([]);
  expect(problems(...bytes, "--no-tokenizer-cache-enable-l0", "--no-tokenizer-cache-enable-l1")).toEqual([]);
});

test("selectors that make no sense", () => {
  const found = (...args: string[]) => selectorProblems(resolveOptions(serveOptions, { args, env: {} }).values);
  const on = "--service-discovery";
  expect(found()).toEqual([]);
  expect(found(on, "--selector", "app=engine", "example.com/tier=a.b", "--prefill-selector", "role=prefill")).toEqual(
    [],
  );
  expect(found(on, "--selector", "app=")).toEqual([]);
  expect(found("--selector", "app=engine")).toEqual(["--selector: is for pods, and needs --service-discovery"]);
  expect(found(on)).toHaveLength(1);
  expect(found(on, "--selector", "app=a", "app=b")).toEqual(["--selector: no pod has two values of app"]);
  expect(found(on, "--prefill-selector", "a=1", "b=2", "--decode-selector", "b=2", "a=1")).toEqual([
    "--decode-selector: is the same as --prefill-selector: a pod has one role",
  ]);
  for (const wrong of ["app", "=engine", "app==engine", "app in (a,b)", "app=a,b=c", "-app=a", "app=a b", "app/=a"])
    expect(() => found(on, "--selector", wrong)).toThrow(`--selector: "${wrong}"`);
});

test("workers may be names of DNS", () => {
  const urls = (...args: string[]) =>
    resolveOptions(serveOptions, { args: ["--worker-urls", ...args], env: {} }).values.workerUrls;
  expect(urls("dns://engines:50051", "dns+srv://_grpc._tcp.engines")).toHaveLength(2);
  expect(() => urls("dns://engines")).toThrow("must be dns://name:port or dns+srv://_service._tcp.name");
});

test("at one place there is one worker, however it is spelt", () => {
  const found = (...urls: string[]) =>
    repeatedWorkers(resolveOptions(serveOptions, { args: ["--worker-urls", ...urls], env: {} }).values);
  expect(found("grpc://a:1", "http://a:2", "dns://a:1", "dns://a:1")).toEqual([]);
  expect(found("grpc://A:1", "b:1", "http://a:1/", "a:1")).toEqual(["--worker-urls: a:1 is in the list twice"]);
  expect(found("a:1", "--prefill", "grpc://p:1", "9000", "p:1", "--decode", "grpc://A:1", "d:1")).toEqual([
    "--prefill: p:1 is in the list twice",
    "--decode: a:1 is a worker of --worker-urls already",
  ]);
});

describe("parts of the work", () => {
  const given = (...args: string[]) => resolveOptions(serveOptions, { args, env: {} }).values;
  const found = (...args: string[]) => disaggregationProblems(given(...args));

  test("behind a worker that prefills comes the port of its bootstrap server, or none, or nothing", () => {
    const { prefill } = given("--prefill", "grpc://a:1", "8998", "b:2", "none", "--prefill", "c:3", "--prefill=d:4");
    expect(prefillWorkers(prefill)).toEqual([
      { url: "grpc://a:1", bootstrapPort: 8998 },
      { url: "b:2", bootstrapPort: undefined },
      { url: "c:3", bootstrapPort: undefined },
      { url: "d:4", bootstrapPort: undefined },
    ]);
    for (const wrong of ["0", "65536", "nobody", "dns://a:1"])
      expect(() => given("--prefill", "a:1", wrong)).toThrow(`--prefill: "${wrong}"`);
  });

  test("a port belongs to a worker", () => {
    expect(found("--prefill", "8998", "a:1", "--decode", "b:1")).toEqual([
      "--prefill: 8998 does not follow the address of a worker",
    ]);
    expect(found("--prefill", "a:1", "8998", "none", "--decode", "b:1")).toHaveLength(1);
  });

  test("one part needs the other, unless more workers are told of elsewhere", () => {
    expect(found()).toEqual([]);
    expect(found("--prefill", "a:1", "--decode", "b:1")).toEqual([]);
    expect(found("--prefill", "a:1")).toEqual(["--prefill: needs workers that decode what is prefilled: --decode"]);
    expect(found("--decode", "a:1")).toEqual(["--decode: needs workers that prefill: --prefill"]);
    expect(found("--decode", "a:1", "--worker-file", "workers.yaml")).toEqual([]);
    expect(found("--prefill", "a:1", "--service-discovery")).toEqual([]);
  });
});
