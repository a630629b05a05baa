import { GatewayError, InvalidRequestError } from "../errors.ts";

/**
 * The store cannot be reached, is full, or did not answer in time. Whether a write that ended so was made is not known. The cause
 * says more, for the log; neither holds the store's URL or a password.
 */
export class HistoryUnavailableError extends GatewayError {
  readonly status = 503;
  readonly code = "history_unavailable";
  constructor(cause?: unknown) {
    super("The store of responses and conversations is unavailable", { retryAfterSecs: 1, cause });
  }
}

/** Something of this id is there already, or a log does not end where the events to append begin. */
export class HistoryConflictError extends GatewayError {
  readonly status = 409;
  readonly code = "history_conflict";
  constructor(what: string) {
    super(`Conflict with what is stored: ${what}`);
  }
}

/** `after` or `before` names nothing in the list. */
export class UnknownCursorError extends InvalidRequestError {
  override readonly code = "invalid_cursor";
  constructor(param: "after" | "before") {
    super(`'${param}' names nothing in this list`, { param });
  }
}

/** The store cannot be used as it was set up: its URL, its schema setting, or what lies there. Ends the start. */
export class HistorySetupError extends Error {
  override readonly name = "HistorySetupError";
}
