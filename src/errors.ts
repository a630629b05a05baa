/**
 * What can go wrong with a request, in the gateway's own terms: one class per failure, each with an HTTP status and a stable
 * code. Every client API draws them in its own shape (`apis/<api>/errors.ts`). Messages are safe to show to clients.
 */
export abstract class GatewayError extends Error {
  abstract readonly status: number;
  /** Stable, machine-readable. */
  abstract readonly code: string;
  /** Field of the request that is at fault, e.g. `messages[0].role`. */
  readonly param: string | undefined;
  /** Seconds after which a retry makes sense; undefined where it does not. */
  readonly retryAfterSecs: number | undefined;

  constructor(message: string, details: { param?: string; retryAfterSecs?: number; cause?: unknown } = {}) {
    super(message, details.cause === undefined ? undefined : { cause: details.cause });
    this.name = new.target.name;
    this.param = details.param;
    this.retryAfterSecs = details.retryAfterSecs;
  }
}

/** The body or a field of it is wrong. */
export class InvalidRequestError extends GatewayError {
  readonly status = 400;
  readonly code: string = "invalid_request";
}

/** The body is not JSON, or not UTF-8. */
export class BadJsonError extends InvalidRequestError {
  override readonly code = "json_parse_error";
}

/** Something that is understood but that this model, engine or gateway cannot do. */
export class UnsupportedError extends InvalidRequestError {
  override readonly code = "unsupported_parameter";
}

/** Prompt and answer do not fit the model's context. */
export class ContextLengthError extends InvalidRequestError {
  override readonly code = "context_length_exceeded";
  /** Tokens that were sent, and those that there may be, where they are known. */
  readonly tokens: number | undefined;
  readonly limit: number | undefined;

  constructor(message: string, details: { param?: string; cause?: unknown; tokens?: number; limit?: number } = {}) {
    super(message, details);
    this.tokens = details.tokens;
    this.limit = details.limit;
  }
}

/** What a request goes on from is there, but cannot be gone on from. */
export class PreconditionError extends InvalidRequestError {
  override readonly code = "failed_precondition";
}

export class PayloadTooLargeError extends GatewayError {
  readonly status = 413;
  readonly code = "payload_too_large";
}

export class UnsupportedMediaTypeError extends GatewayError {
  readonly status = 415;
  readonly code = "unsupported_media_type";
}

export class AuthenticationError extends GatewayError {
  readonly status = 401;
  readonly code = "invalid_api_key";
}

/** No such path. */
export class RouteNotFoundError extends GatewayError {
  readonly status = 404;
  readonly code = "not_found";
}

/** The path exists, the method does not. */
export class MethodNotAllowedError extends GatewayError {
  readonly status = 405;
  readonly code = "method_not_allowed";
}

/** A page of an origin that is not among the allowed ones wants a WebSocket: browsers don't refuse that by themselves. */
export class OriginNotAllowedError extends GatewayError {
  readonly status = 403;
  readonly code = "origin_not_allowed";
  constructor() {
    super("Pages of this origin may not connect");
  }
}

/** The path wants a WebSocket. */
export class UpgradeRequiredError extends GatewayError {
  readonly status = 426;
  readonly code = "upgrade_required";
  constructor() {
    super("This path speaks WebSocket: upgrade the connection, or use POST");
  }
}

/** No stored object of this id, or one of another tenant: the words are the same. */
export class NotFoundError extends GatewayError {
  readonly status = 404;
  readonly code: string = "not_found";
}

/** The response or interaction that a request is to go on from is not there. */
export class PreviousNotFoundError extends NotFoundError {
  override readonly code = "previous_response_not_found";
}

/** It cannot be done in the state that the object is in. */
export class ConflictError extends GatewayError {
  readonly status = 409;
  readonly code = "conflict";
}

export class ModelNotFoundError extends GatewayError {
  readonly status = 404;
  readonly code = "model_not_found";
  constructor(model: string) {
    super(`The model '${model.slice(0, 200)}' does not exist`, { param: "model" });
  }
}

/** The model is known, but nobody serves it at the moment. */
export class NoWorkersError extends GatewayError {
  readonly status = 503;
  readonly code = "no_available_workers";
  /** `model`: undefined where any would do. `why`: what is missing, where that is known. */
  constructor(model: string | undefined, retryAfterSecs = 1, why?: string) {
    const which = model === undefined ? "" : ` for the model '${model}'`;
    super(`No worker is available${which}${why === undefined ? "" : `: ${why}`}`, { retryAfterSecs });
  }
}

/** The worker that a client names is not there, or can take no request now. */
export class TargetWorkerError extends GatewayError {
  readonly status = 503;
  readonly code = "target_worker_unavailable";
  constructor(target: string) {
    super(`The worker '${target.slice(0, 200)}' that the request names cannot take it`, { retryAfterSecs: 1 });
  }
}

/** No worker of this id. */
export class WorkerNotFoundError extends NotFoundError {
  override readonly code = "worker_not_found";
}

/** A worker of this address is there already. */
export class WorkerExistsError extends GatewayError {
  readonly status = 409;
  readonly code = "worker_exists";
}

/** The API is not to be had on the engines that serve the model. */
export class NotOfferedError extends GatewayError {
  readonly status = 501;
  readonly code = "not_supported_by_engine";
}

/** The engine could not keep to the request's constraint. */
export class ConstraintFailedError extends GatewayError {
  readonly status = 422;
  readonly code = "constraint_failed";
}

/** As many requests wait for their turn as may. */
export class QueueFullError extends GatewayError {
  readonly status = 429;
  readonly code = "queue_full";
}

/** Its turn did not come in time. */
export class QueueTimeoutError extends GatewayError {
  readonly status = 408;
  readonly code = "queue_timeout";
}

/** The gateway has more to do than it may keep. */
export class OverloadedError extends GatewayError {
  readonly status = 503;
  readonly code = "overloaded";
  constructor(message = "The server is overloaded") {
    super(message, { retryAfterSecs: 1 });
  }
}

/** A tokenizer of this name is there already. */
export class TokenizerExistsError extends GatewayError {
  readonly status = 409;
  readonly code = "tokenizer_exists";
}

/** No tokenizer of this id or name. */
export class TokenizerNotFoundError extends GatewayError {
  readonly status = 404;
  readonly code = "tokenizer_not_found";
  constructor(name: string) {
    super(`The tokenizer '${name.slice(0, 200)}' does not exist`);
  }
}

/** The gateway is shutting down. */
export class ShuttingDownError extends GatewayError {
  readonly status = 503;
  readonly code = "shutting_down";
  constructor() {
    super("The server is shutting down", { retryAfterSecs: 1 });
  }
}

/** The request's time limit passed. */
export class RequestTimeoutError extends GatewayError {
  readonly status = 504;
  readonly code = "request_timeout";
  constructor(seconds: number) {
    super(`The request took longer than ${seconds} s`);
  }
}

/** The client went away; nobody reads this, but logs and counts do. */
export class ClientClosedError extends GatewayError {
  readonly status = 499;
  readonly code = "client_closed_request";
  constructor() {
    super("The client closed the connection");
  }
}

/** The engine failed, refused or could not be reached. */
export class EngineFailureError extends GatewayError {
  constructor(
    readonly status: number,
    readonly code: string,
    message: string,
    details: { retryAfterSecs?: number; cause?: unknown } = {},
  ) {
    super(message, details);
  }
}

/** A defect of ours. The message says nothing about it; the log does. */
export class InternalError extends GatewayError {
  readonly status = 500;
  readonly code = "internal_error";
  constructor(cause: unknown) {
    super("Internal error", { cause });
  }
}

/** What was thrown, as a client may be told of it: what is no GatewayError is a defect of ours. */
export const gatewayError = (cause: unknown): GatewayError =>
  cause instanceof GatewayError ? cause : new InternalError(cause);
