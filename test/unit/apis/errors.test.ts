import { describe, expect, test } from "bun:test";
import { drawError, type ErrorFamily, errorFamily, idHeaders } from "../../../src/apis/errors.ts";
import {
  AuthenticationError,
  ClientClosedError,
  ConflictError,
  ContextLengthError,
  EngineFailureError,
  type GatewayError,
  InternalError,
  InvalidRequestError,
  MethodNotAllowedError,
  NotFoundError,
  NoWorkersError,
  OverloadedError,
  PayloadTooLargeError,
  RequestTimeoutError,
  UnsupportedMediaTypeError,
} from "../../../src/errors.ts";

test("the path chooses the family, never the way to say who calls", () => {
  const of = (path: string, headers: Record<string, string> = {}) => errorFamily(path, new Headers(headers));
  for (const path of ["/v1/messages", "/v1/messages/batches/x", "/v1/messages/count_tokens"])
    expect(of(path, { authorization: "Bearer k" })).toBe("anthropic");
  for (const path of ["/v1/interactions", "/v1beta/interactions/x", "/v1alpha/interactions", "/v1beta/models"])
    expect(of(path, { "anthropic-version": "2023-06-01" })).toBe("google");
  for (const path of ["/v1/responses", "/v1/messagesx", "/v1/interactionsx", "/", "/v1betax", "/v1/modelsx"])
    expect(of(path, { "x-api-key": "k", "x-goog-api-key": "k", "anthropic-version": "x" })).toBe("openai");
  for (const path of ["/workers", "/workers/x", "/flush_cache", "/start_profile", "/stop_profile", "/get_loads"])
    expect(of(path)).toBe("workers");
  for (const path of ["/workersx", "/flush_caches", "/v1/workers"]) expect(of(path)).toBe("openai");
  for (const path of ["/v1/models", "/v1/models/org/name"]) {
    expect(of(path, { "x-api-key": "k" })).toBe("openai");
    expect(of(path, { "anthropic-version": "2023-06-01" })).toBe("anthropic");
    expect(of(path, { "x-goog-api-client": "google-genai-sdk/1.0" })).toBe("google");
    expect(of(path, { "x-goog-api-key": "k" })).toBe("openai");
  }
});

const engine = (status: number, code: string, retryAfterSecs?: number) =>
  new EngineFailureError(status, code, "m", retryAfterSecs === undefined ? {} : { retryAfterSecs });
type Drawn = readonly [status: number, type: string];

/** Statuses and types of the three families, from the references of their APIs. */
const TABLE: readonly (readonly [name: string, GatewayError, openai: Drawn, anthropic: Drawn, google: Drawn])[] = [
  [
    ...(["bad", new InvalidRequestError("m", { param: "p" })] as const),
    ...([
      [400, "invalid_request_error"],
      [400, "invalid_request_error"],
      [400, "INVALID_ARGUMENT"],
    ] as const),
  ],
  [
    ...(["key", new AuthenticationError("m")] as const),
    ...([
      [401, "authentication_error"],
      [401, "authentication_error"],
      [401, "UNAUTHENTICATED"],
    ] as const),
  ],
  [
    ...(["forbidden", engine(403, "forbidden")] as const),
    ...([
      [403, "permission_error"],
      [403, "permission_error"],
      [403, "PERMISSION_DENIED"],
    ] as const),
  ],
  [
    ...(["unknown", new NotFoundError("m")] as const),
    ...([
      [404, "invalid_request_error"],
      [404, "not_found_error"],
      [404, "NOT_FOUND"],
    ] as const),
  ],
  [
    ...(["method", new MethodNotAllowedError("m")] as const),
    ...([
      [405, "invalid_request_error"],
      [405, "invalid_request_error"],
      [405, "UNIMPLEMENTED"],
    ] as const),
  ],
  [
    ...(["conflict", new ConflictError("m")] as const),
    ...([
      [409, "invalid_request_error"],
      [409, "invalid_request_error"],
      [409, "ABORTED"],
    ] as const),
  ],
  [
    ...(["large", new PayloadTooLargeError("m")] as const),
    ...([
      [413, "invalid_request_error"],
      [413, "request_too_large"],
      [400, "INVALID_ARGUMENT"],
    ] as const),
  ],
  [
    ...(["encoding", new UnsupportedMediaTypeError("m")] as const),
    ...([
      [415, "invalid_request_error"],
      [415, "invalid_request_error"],
      [400, "INVALID_ARGUMENT"],
    ] as const),
  ],
  [
    ...(["engine full", engine(429, "engine_overloaded", 1)] as const),
    ...([
      [429, "rate_limit_error"],
      [529, "overloaded_error"],
      [429, "RESOURCE_EXHAUSTED"],
    ] as const),
  ],
  [
    ...(["limit", engine(429, "rate_limited")] as const),
    ...([
      [429, "rate_limit_error"],
      [429, "rate_limit_error"],
      [429, "RESOURCE_EXHAUSTED"],
    ] as const),
  ],
  [
    ...(["gone", new ClientClosedError()] as const),
    ...([
      [499, "invalid_request_error"],
      [499, "invalid_request_error"],
      [499, "CANCELLED"],
    ] as const),
  ],
  [
    ...(["defect", new InternalError("secret")] as const),
    ...([
      [500, "server_error"],
      [500, "api_error"],
      [500, "INTERNAL"],
    ] as const),
  ],
  [
    ...(["cannot", engine(501, "not_supported_by_engine")] as const),
    ...([
      [501, "server_error"],
      [501, "api_error"],
      [501, "UNIMPLEMENTED"],
    ] as const),
  ],
  [
    ...(["protocol", engine(502, "engine_protocol_error")] as const),
    ...([
      [502, "server_error"],
      [502, "api_error"],
      [502, "INTERNAL"],
    ] as const),
  ],
  [
    ...(["full", new OverloadedError()] as const),
    ...([
      [503, "service_unavailable_error"],
      [529, "overloaded_error"],
      [503, "UNAVAILABLE"],
    ] as const),
  ],
  [
    ...(["nobody", new NoWorkersError("m")] as const),
    ...([
      [503, "service_unavailable_error"],
      [503, "api_error"],
      [503, "UNAVAILABLE"],
    ] as const),
  ],
  [
    ...(["late", new RequestTimeoutError(1)] as const),
    ...([
      [504, "timeout_error"],
      [504, "timeout_error"],
      [504, "DEADLINE_EXCEEDED"],
    ] as const),
  ],
];

describe.each(TABLE)("%s", (_name, error, ...drawn) => {
  test.each<[ErrorFamily, Drawn]>([
    ["openai", drawn[0]],
    ["anthropic", drawn[1]],
    ["google", drawn[2]],
  ])("as %s", (family, [status, type]) => {
    const found = drawError(family, error, "req-1");
    expect(found.status).toBe(status);
    const { message, param = null, code } = error;
    expect(found.body).toEqual(
      family === "openai"
        ? { error: { message, type, param, code } }
        : family === "anthropic"
          ? { type: "error", error: { type, message }, request_id: "req-1" }
          : { error: { code: status, status: type, message } },
    );
    expect(JSON.stringify(found)).not.toContain("secret");
  });
});

test("a conversation that is too long, in the words that clients look for", () => {
  const error = new ContextLengthError("words", { tokens: 120, limit: 100, param: "messages" });
  const { body } = drawError("anthropic", error, "r");
  expect(body).toMatchObject({ error: { message: "prompt is too long: 120 tokens > 100 maximum" } });
  const unknown = drawError("anthropic", new ContextLengthError("words"), "r").body;
  expect(unknown).toMatchObject({ error: { message: "prompt is too long: words" } });
  expect(drawError("openai", error, "r").body).toMatchObject({ error: { code: "context_length_exceeded" } });
});

test("headers say when to try again, and that it is of no use", () => {
  const headers = (error: GatewayError, family: ErrorFamily = "openai") => drawError(family, error, "r").headers;
  expect(headers(new InvalidRequestError("m"))).toEqual({ "x-request-id": "r" });
  expect(headers(new InvalidRequestError("m"), "anthropic")).toEqual(idHeaders("anthropic", "r"));
  expect(idHeaders("anthropic", "r")).toEqual({ "x-request-id": "r", "request-id": "r" });
  for (const error of [engine(429, "rate_limited"), engine(503, "engine_unavailable"), new OverloadedError()])
    for (const family of ["openai", "anthropic", "google"] as const)
      expect(headers(error, family)).toMatchObject({ "retry-after": "1" });
  expect(headers(engine(429, "rate_limited", 7))).toMatchObject({ "retry-after": "7" });
  for (const status of [500, 501])
    expect(headers(engine(status, "x"), "anthropic")).toMatchObject({ "x-should-retry": "false" });
  expect(headers(engine(502, "x"))).toEqual({ "x-request-id": "r" });
  expect(headers(new AuthenticationError("m"))).toMatchObject({ "www-authenticate": "Bearer" });
});
