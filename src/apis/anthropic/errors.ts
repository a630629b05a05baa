/** Failures as Anthropic's API draws them. */
import { Type as t } from "@sinclair/typebox";
import { ContextLengthError, type GatewayError, InvalidRequestError } from "../../errors.ts";

export interface AnthropicError {
  readonly type: "error";
  readonly error: { readonly type: string; readonly message: string; readonly details?: object };
  readonly request_id: string;
}

/** The same as a schema, for the API document. */
export const anthropicErrorResponse = t.Object({
  type: t.Literal("error"),
  error: t.Object({ type: t.String(), message: t.String() }),
  request_id: t.String(),
});

/**
 * Conversations that the server holds between turns (`thread`). The SDK's tool runner asks for one unless it is told not to, and sends the
 * whole conversation in each turn once it reads this code.
 */
export class ThreadUnsupportedError extends InvalidRequestError {
  override readonly code = "thread_unsupported_request";
  constructor() {
    super("thread is not supported: send the whole conversation", { param: "thread" });
  }
}

/** What 503 is elsewhere: clients try again later. */
const OVERLOADED = 529;

const isOverload = ({ status, code }: GatewayError): boolean =>
  code === "overloaded" || (status === 429 && code === "engine_overloaded");

export const anthropicStatus = (error: GatewayError): number => (isOverload(error) ? OVERLOADED : error.status);

function errorType(status: number): string {
  switch (status) {
    case 401:
      return "authentication_error";
    case 402:
      return "billing_error";
    case 403:
      return "permission_error";
    case 404:
      return "not_found_error";
    case 408:
    case 504:
      return "timeout_error";
    case 413:
      return "request_too_large";
    case 429:
      return "rate_limit_error";
    case OVERLOADED:
      return "overloaded_error";
    default:
      return status >= 500 ? "api_error" : "invalid_request_error";
  }
}

/** Clients look for these words to learn that a conversation has grown too long. */
function messageOf(error: GatewayError): string {
  if (!(error instanceof ContextLengthError)) return error.message;
  const { tokens, limit } = error;
  return tokens === undefined || limit === undefined
    ? `prompt is too long: ${error.message}`
    : `prompt is too long: ${tokens} tokens > ${limit} maximum`;
}

export function anthropicError(error: GatewayError, requestId: string): AnthropicError {
  const details = { error_code: error.code, unsupported: ["thread"] };
  return {
    type: "error",
    error: {
      type: errorType(anthropicStatus(error)),
      message: messageOf(error),
      ...(error instanceof ThreadUnsupportedError && { details }),
    },
    request_id: requestId,
  };
}
