import { type GatewayError, InternalError } from "../errors.ts";
import type { Logger } from "../telemetry/log.ts";

/**
 * One line for a request that failed by our or an engine's fault, before or after its first byte. Clients that left and requests
 * that were wrong are worth a line to those who look for them only.
 */
export function logFailure(log: Logger, request: string, path: string, failure: GatewayError): void {
  const level =
    failure instanceof InternalError
      ? "error"
      : failure.status >= 500 && failure.code !== "shutting_down"
        ? "warn"
        : "debug";
  log[level]("request failed", {
    request,
    path,
    status: failure.status,
    code: failure.code,
    error: failure.cause ?? failure,
  });
}
