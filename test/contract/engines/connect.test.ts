/** From a URL to an engine: which dialect is found, and what is said when there is none. */
import { afterEach, describe, expect, setDefaultTimeout, test } from "bun:test";
import { connectEngine } from "../../../src/engines/connect.ts";
import { createEngine, parseTarget } from "../../../src/engines/create.ts";
import { SUPPORTED_DIALECTS } from "../../../src/engines/dialects.ts";
import { EngineError } from "../../../src/engines/engine.ts";
import { type Script, startVllmServer } from "../../support/vllm-server.ts";

setDefaultTimeout(20_000);

const open: { close(): void }[] = [];
afterEach(() => {
  for (const thing of open.splice(0).reverse()) thing.close();
});
const serve = async (scripts: Record<string, Script>, service?: string): Promise<{ url: string; close(): void }> => {
  const server = await startVllmServer(scripts, service);
  open.push(server);
  return { url: `grpc://127.0.0.1:${server.port}`, close: server.close };
};
const problem = (promise: Promise<unknown>): Promise<EngineError> =>
  promise.then(
    () => {
      throw new Error("connected");
    },
    (error: unknown) => {
      expect(error).toBeInstanceOf(EngineError);
      return error as EngineError;
    },
  );

describe.each(["framing", "grpc-js"] as const)("connecting over %s", (transport) => {
  const options = { transport, keepaliveMs: 0 };

  test("vLLM is found by its HealthCheck, also when it is not healthy", async () => {
    const { url } = await serve({
      HealthCheck(call) {
        call.send({ healthy: false });
        call.end();
      },
    });
    const engine = await connectEngine(url, options);
    open.push(engine);
    expect(engine.dialect).toBe("vllm");
  });

  test("a gRPC server that is no engine", async () => {
    const { url } = await serve({ HealthCheck: (call) => call.end() }, "some.Other");
    const error = await problem(connectEngine(url, options));
    expect(error.kind).toBe("unimplemented");
    expect(error.message).toContain("none of the engine dialects");
  });

  test("nobody there", async () => {
    const { url, close } = await serve({});
    close();
    expect((await problem(connectEngine(url, options))).kind).toBe("unavailable");
  });

  test("a server that does not answer", async () => {
    const { url } = await serve({ HealthCheck: () => {} });
    expect((await problem(connectEngine(url, { ...options, detectDeadlineMs: 150 }))).kind).toBe("timeout");
  });

  test("grpcs:// means TLS, also for an engine that was not asked", async () => {
    const { url } = await serve({
      HealthCheck(call) {
        call.send({ healthy: true });
        call.end();
      },
    });
    const plain = createEngine({ dialect: "vllm", url }, options);
    const secure = createEngine({ dialect: "vllm", url: url.replace("grpc:", "grpcs:") }, options);
    open.push(plain, secure);
    expect((await plain.health(2000)).healthy).toBe(true);
    expect((await problem(secure.health(2000))).kind).toBe("unavailable");
  });

  test("a dialect that is given is taken without asking; one that is not spoken is refused", async () => {
    const engine = await connectEngine("grpc://127.0.0.1:1", { ...options, dialect: "vllm" });
    open.push(engine);
    expect(engine.dialect).toBe("vllm");
    expect((await problem(connectEngine("grpc://127.0.0.1:1", { ...options, dialect: "klingon" }))).kind).toBe(
      "unimplemented",
    );
  });
});

test("engine URLs", () => {
  expect(parseTarget("grpc://h.example:50051")).toEqual({ target: "h.example:50051", secure: false });
  expect(parseTarget("grpcs://[::1]:5/")).toEqual({ target: "[::1]:5", secure: true });
  for (const url of ["http://h:1", "grpc://h", "grpc://u@h:1", "grpc://h:1/path", "h:1", ""])
    expect(() => parseTarget(url)).toThrow(EngineError);
  expect(SUPPORTED_DIALECTS).toEqual(["vllm", "sglang", "tokenspeed", "trtllm", "mlx"]);
});
