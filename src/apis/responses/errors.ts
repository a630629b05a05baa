/** Failures as a response tells them in its `error` member and in `error` events. */
import { GatewayError } from "../../errors.ts";

/** A response in the background was cancelled: its status says so, and no event does. */
export class ResponseCancelledError extends GatewayError {
  readonly status = 499;
  readonly code = "response_cancelled";
  constructor() {
    super("The response was cancelled");
  }
}

export interface ResponseFailure {
  readonly code: "server_error" | "rate_limit_exceeded" | "invalid_prompt";
  readonly message: string;
}

/** Codex reads how long it is to wait from the words of the message. */
export function responseFailure({ status, message, retryAfterSecs }: GatewayError): ResponseFailure {
  if (status === 429) {
    const wait = retryAfterSecs === undefined ? "" : `. Please try again in ${retryAfterSecs}s.`;
    return { code: "rate_limit_exceeded", message: message + wait };
  }
  return { code: status >= 400 && status < 499 ? "invalid_prompt" : "server_error", message };
}
