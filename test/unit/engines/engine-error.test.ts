import { expect, test } from "bun:test";
import { EngineError } from "../../../src/engines/engine.ts";
import { toEngineError, withoutAddresses } from "../../../src/engines/engine-error.ts";
import { GrpcError, GrpcStatus } from "../../../src/engines/grpc-error.ts";

test.each([
  ["connect ECONNREFUSED 127.0.0.1:50051", "connect ECONNREFUSED [address]"],
  ["peer ipv4:10.0.0.7:8000 gone", "peer ipv4:[address] gone"],
  ["no route to 192.168.1.4", "no route to [address]"],
  ["failed at [2001:db8::1]:50051", "failed at [address]"],
  ["see grpc://worker-3.pool.svc:50051/x now", "see [address] now"],
  ["worker-3.pool.svc.cluster.local:50051 refused", "[address] refused"],
  ["localhost:8000 refused", "[address] refused"],
])("addresses are taken out: %s", (text, expected) => {
  expect(withoutAddresses(text)).toBe(expected);
});

test.each([
  "This model's maximum context length is 4096 tokens, 5000:6000 given",
  "top_p must be in (0, 1], got 1.5",
  "stop token ids [1, 2, 3] out of range",
  "invalid JSON schema at line 3:15: unexpected ':'",
  "prompt[0:5] is empty",
  "regex [a-z:]+ is not supported; version 0.32.0",
])("other texts stay: %s", (text) => {
  expect(withoutAddresses(text)).toBe(text);
});

test("what is thrown becomes an EngineError, once", () => {
  const error = new EngineError("timeout", "late");
  expect(toEngineError(error)).toBe(error);
  expect(toEngineError(new GrpcError(14, "")).message).toBe("the engine cannot be reached");
  expect(toEngineError(new TypeError("x is not a function at /srv/app.ts")).message).not.toContain("/srv");
  expect(toEngineError(new GrpcError(99, "odd")).kind).toBe("failed");
});

test.each([
  [{ "retry-after": "3" }, 3000],
  [{ "retry-after": "0.25" }, 250],
  [{ "grpc-retry-pushback-ms": "1500", "retry-after": "9" }, 1500],
  [{ "grpc-retry-pushback-ms": "-1" }, undefined],
  [{ "retry-after": "soon" }, undefined],
  [{ "retry-after": "Tue, 01 Jan 2008 00:00:00 GMT" }, undefined],
  [{ "retry-after-bin": new Uint8Array(1) }, undefined],
  [{}, undefined],
])("the pause that trailers %j ask for", (metadata, expected) => {
  const error = toEngineError(new GrpcError(GrpcStatus.RESOURCE_EXHAUSTED, "full", metadata));
  expect([error.kind, error.retryAfterMs]).toEqual(["overloaded", expected]);
});

test("the pause as a date", () => {
  const date = new Date(Date.now() + 30_000).toUTCString();
  const { retryAfterMs } = toEngineError(new GrpcError(GrpcStatus.UNAVAILABLE, "", { "retry-after": date }));
  expect(retryAfterMs).toBeGreaterThan(20_000);
  expect(retryAfterMs).toBeLessThanOrEqual(30_000);
});

test("an answer that could not keep to its constraint is told apart from a request that is wrong", () => {
  const trailers = { "smg-constraint-failed": "engine" };
  expect(toEngineError(new GrpcError(GrpcStatus.FAILED_PRECONDITION, "grammar", trailers)).kind).toBe("constraint");
  expect(toEngineError(new GrpcError(GrpcStatus.FAILED_PRECONDITION, "no path")).kind).toBe("invalid");
  expect(toEngineError(new GrpcError(GrpcStatus.INTERNAL, "x", trailers)).kind).toBe("failed");
});
