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
