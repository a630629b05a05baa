import { type EngineError, WorkerRemovedError } from "../engines/engine.ts";
import {
  ClientClosedError,
  ConstraintFailedError,
  EngineFailureError,
  type GatewayError,
  InvalidRequestError,
} from "../errors.ts";

/** What a client is told of an engine's failure. */
export function engineFailure(error: EngineError): GatewayError {
  const cause = { cause: error };
  switch (error.kind) {
    case "invalid":
      return new InvalidRequestError(error.message, cause);
    case "overloaded":
      return new EngineFailureError(429, "engine_overloaded", error.message, {
        retryAfterSecs: retryAfterSecs(error),
        ...cause,
      });
    case "unavailable":
      return new EngineFailureError(
        503,
        "engine_unavailable",
        error instanceof WorkerRemovedError
          ? "The worker was removed before it had finished the answer"
          : "The engine cannot be reached",
        { retryAfterSecs: retryAfterSecs(error), ...cause },
      );
    case "timeout":
      return new EngineFailureError(504, "engine_timeout", "The engine did not answer in time", cause);
    case "not_found":
      return new EngineFailureError(404, "model_not_found", error.message, cause);
    case "unimplemented":
      return new EngineFailureError(501, "not_supported_by_engine", error.message, cause);
    case "constraint":
      return new ConstraintFailedError(error.message, cause);
    case "cancelled":
      return new ClientClosedError();
    case "failed":
      return new EngineFailureError(500, "engine_failed", error.message, cause);
  }
}

const retryAfterSecs = ({ retryAfterMs = 0 }: EngineError): number => Math.max(1, Math.ceil(retryAfterMs / 1000));
