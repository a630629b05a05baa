import { Type as t } from "@sinclair/typebox";
import type { GatewayError } from "../../errors.ts";

/** Error object of the OpenAI API family. All four keys are always there. */
export interface OpenAiError {
  readonly error: {
    readonly message: string;
    readonly type: string;
    readonly param: string | null;
    readonly code: string | null;
  };
}

/** The same as a schema, for the API document. */
export const errorResponse = t.Object({
  error: t.Object({
    message: t.String(),
    type: t.String(),
    param: t.Union([t.String(), t.Null()]),
    code: t.Union([t.String(), t.Null()]),
  }),
});

function errorType(status: number): string {
  if (status === 401) return "authentication_error";
  if (status === 403) return "permission_error";
  if (status === 429) return "rate_limit_error";
  if (status === 503) return "service_unavailable_error";
  if (status === 504) return "timeout_error";
  return status >= 500 ? "server_error" : "invalid_request_error";
}

/** Draws a failure the way OpenAI's API does. */
export function openAiError(error: GatewayError): OpenAiError {
  return {
    error: { message: error.message, type: errorType(error.status), param: error.param ?? null, code: error.code },
  };
}

/** Headers that go with a failure. `x-should-retry` overrides the OpenAI and Anthropic SDKs' own decision. */
export function errorHeaders(error: GatewayError): Record<string, string> {
  const headers: Record<string, string> = {};
  if (error.retryAfterSecs !== undefined) headers["retry-after"] = String(error.retryAfterSecs);
  if (error.status === 501 || error.status === 500) headers["x-should-retry"] = "false";
  if (error.status === 401) headers["www-authenticate"] = "Bearer";
  return headers;
}

export function openAiErrorResponse(error: GatewayError, headers: Record<string, string> = {}): Response {
  return Response.json(openAiError(error), { status: error.status, headers: { ...errorHeaders(error), ...headers } });
}
