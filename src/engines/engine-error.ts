/** From the status of a gRPC call to the gateway's own kinds of failure. */
import { EngineError, type EngineErrorKind } from "./engine.ts";
import { GrpcError, GrpcStatus } from "./grpc-error.ts";

const KIND_OF_STATUS: Readonly<Record<number, EngineErrorKind>> = {
  [GrpcStatus.CANCELLED]: "cancelled",
  [GrpcStatus.INVALID_ARGUMENT]: "invalid",
  [GrpcStatus.FAILED_PRECONDITION]: "invalid",
  [GrpcStatus.OUT_OF_RANGE]: "invalid",
  [GrpcStatus.DEADLINE_EXCEEDED]: "timeout",
  [GrpcStatus.NOT_FOUND]: "not_found",
  [GrpcStatus.RESOURCE_EXHAUSTED]: "overloaded",
  [GrpcStatus.UNIMPLEMENTED]: "unimplemented",
  [GrpcStatus.UNAVAILABLE]: "unavailable",
};

const FALLBACK_TEXT: Readonly<Record<EngineErrorKind, string>> = {
  invalid: "the engine refused the request",
  overloaded: "the engine is full",
  unavailable: "the engine cannot be reached",
  timeout: "the engine did not answer in time",
  not_found: "the engine does not know the model",
  unimplemented: "the engine does not offer this",
  constraint: "the answer could not be made to keep to the constraint",
  cancelled: "cancelled",
  failed: "the engine failed",
};

const ADDRESSES = [
  /\b[a-z][a-z0-9+.-]*:\/\/[^\s"'<>)]+/gi, // any URL
  /\[[0-9a-f]*:[0-9a-f]*:[0-9a-f:.]*(%[a-z0-9]+)?\](:\d+)?/gi, // [IPv6]:port
  /\b\d{1,3}(\.\d{1,3}){3}(:\d+)?\b/g, // IPv4, with or without port
  /\b(localhost|[a-z0-9-]+(\.[a-z0-9-]+)*\.[a-z][a-z0-9-]*):\d{2,5}\b/gi, // host.name:port
];

/** A text of the engine without addresses, so that it may be shown to clients. */
export function withoutAddresses(text: string): string {
  let safe = text;
  for (const pattern of ADDRESSES) safe = safe.replace(pattern, "[address]");
  return safe;
}

/** Trailers by which engines say more than a status does. */
const CONSTRAINT_FAILED = "smg-constraint-failed";
const RETRY_AFTER = "retry-after";
const PUSHBACK = "grpc-retry-pushback-ms";

/** The pause that trailers ask for: milliseconds of gRPC's own, else seconds or a date as in HTTP. Negative or broken ones are none. */
function retryAfterMs(metadata: GrpcError["metadata"], now: number): number | undefined {
  const pushback = metadata[PUSHBACK];
  if (typeof pushback === "string" && /^\d{1,9}$/.test(pushback)) return Number(pushback);
  const after = metadata[RETRY_AFTER];
  return typeof after === "string" ? pauseOf(after, now) : undefined;
}

/** Milliseconds that a Retry-After asks for, by seconds or a date (RFC 9110, 10.2.3); undefined for none that can be read. */
export function pauseOf(after: string, now: number): number | undefined {
  if (/^\d{1,6}(\.\d{1,6})?$/.test(after)) return Math.round(Number(after) * 1000);
  const wait = Date.parse(after) - now;
  return wait >= 0 ? wait : undefined;
}

/** The EngineError of whatever a channel or a decoder threw. CANCELLED counts as ours; a caller that did not cancel must look. */
export function toEngineError(error: unknown): EngineError {
  if (error instanceof EngineError) return error;
  if (!(error instanceof GrpcError))
    return new EngineError("failed", "the engine's answer could not be understood", { cause: error });
  const { code, details, metadata } = error;
  const failedConstraint = code === GrpcStatus.FAILED_PRECONDITION && metadata[CONSTRAINT_FAILED] !== undefined;
  const kind = failedConstraint ? "constraint" : (KIND_OF_STATUS[code] ?? "failed");
  return new EngineError(kind, withoutAddresses(details) || FALLBACK_TEXT[kind], {
    cause: error,
    retryAfterMs: retryAfterMs(metadata, Date.now()),
  });
}
