/** Status codes of gRPC, by their names in the gRPC specification. */
export const GrpcStatus = {
  OK: 0,
  CANCELLED: 1,
  UNKNOWN: 2,
  INVALID_ARGUMENT: 3,
  DEADLINE_EXCEEDED: 4,
  NOT_FOUND: 5,
  ALREADY_EXISTS: 6,
  PERMISSION_DENIED: 7,
  RESOURCE_EXHAUSTED: 8,
  FAILED_PRECONDITION: 9,
  ABORTED: 10,
  OUT_OF_RANGE: 11,
  UNIMPLEMENTED: 12,
  INTERNAL: 13,
  UNAVAILABLE: 14,
  DATA_LOSS: 15,
  UNAUTHENTICATED: 16,
} as const;

const NAMES = new Map<number, string>(Object.entries(GrpcStatus).map(([name, code]) => [code, name]));

/** Name of a status code, `CODE_n` for one the specification does not know. */
export function grpcStatusName(code: number): string {
  return NAMES.get(code) ?? `CODE_${code}`;
}

/** A call that did not end with OK. `details` is the peer's text (or ours for a local failure), without addresses of ours. */
export class GrpcError extends Error {
  override readonly name = "GrpcError";
  constructor(
    readonly code: number,
    readonly details: string,
    /** Trailing metadata of the call; values of `-bin` keys are bytes. */
    readonly metadata: Readonly<Record<string, string | Uint8Array>> = {},
  ) {
    super(`${grpcStatusName(code)}: ${details}`);
  }
}
