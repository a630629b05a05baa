/** How a call ended: gRPC statuses of trailers, HTTP replies and reset streams. */
import { ErrorCode } from "../http2/frames.ts";
import { GrpcError, GrpcStatus } from "./grpc-error.ts";
import { decodeGrpcMessage, headersToMetadata } from "./grpc-metadata.ts";

/** Status of an HTTP reply without a gRPC status ("HTTP to gRPC Status Code Mapping" of the gRPC documentation). */
const STATUS_OF_HTTP: Readonly<Record<number, number>> = {
  400: GrpcStatus.INTERNAL,
  401: GrpcStatus.UNAUTHENTICATED,
  403: GrpcStatus.PERMISSION_DENIED,
  404: GrpcStatus.UNIMPLEMENTED,
  429: GrpcStatus.UNAVAILABLE,
  502: GrpcStatus.UNAVAILABLE,
  503: GrpcStatus.UNAVAILABLE,
  504: GrpcStatus.UNAVAILABLE,
};

/** Status of a reset stream by HTTP/2 error code; the rest is INTERNAL. ENHANCE_YOUR_CALM is about the connection, not the engine's queue. */
const STATUS_OF_RESET: Readonly<Record<number, number>> = {
  [ErrorCode.REFUSED_STREAM]: GrpcStatus.UNAVAILABLE,
  [ErrorCode.CANCEL]: GrpcStatus.CANCELLED,
  [ErrorCode.ENHANCE_YOUR_CALM]: GrpcStatus.UNAVAILABLE,
  [ErrorCode.INADEQUATE_SECURITY]: GrpcStatus.PERMISSION_DENIED,
};

export function errorOfHttpStatus(status: number): GrpcError {
  return new GrpcError(STATUS_OF_HTTP[status] ?? GrpcStatus.UNKNOWN, `HTTP status ${status} instead of gRPC`);
}

export function errorOfReset(code: number): GrpcError {
  return new GrpcError(STATUS_OF_RESET[code] ?? GrpcStatus.INTERNAL, `stream reset with code ${code}`);
}

/** The error that trailers (or headers in their place) report; undefined for OK. */
export function errorOfTrailers(trailers: ReadonlyMap<string, string>): GrpcError | undefined {
  const text = trailers.get("grpc-status");
  const code = text === undefined || text === "" ? Number.NaN : Number(text);
  if (!Number.isInteger(code)) return new GrpcError(GrpcStatus.INTERNAL, "the stream ended without a status");
  if (code === GrpcStatus.OK) return undefined;
  return new GrpcError(
    code,
    decodeGrpcMessage(trailers.get("grpc-message") ?? ""),
    headersToMetadata(Object.fromEntries(trailers)),
  );
}
