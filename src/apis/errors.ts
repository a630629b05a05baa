/** Failures in the form of the API that was called. */
import type { GatewayError } from "../errors.ts";
import { anthropicError, anthropicStatus } from "./anthropic/errors.ts";
import { googleError, googleStatus } from "./google/errors.ts";
import { openAiError } from "./openai/errors.ts";
import { workersError } from "./workers/errors.ts";

export type ErrorFamily = "openai" | "anthropic" | "google" | "workers";

/** The workers' API and what else operators ask of the fleet. */
const OF_THE_FLEET =
  /^\/(?:workers|routing|get_loads|engine_metrics|get_model_info|get_server_info|health_generate|flush_cache|start_profile|stop_profile)(?:\/|$)/;

/**
 * Chosen by the path, never by how the client says who it is; the list of models, which all three have at one path, by a header that
 * clients of the API always send: the version of Anthropic's, or what Google's say of themselves.
 */
export function errorFamily(path: string, headers: Headers): ErrorFamily {
  if (/^\/v1\/messages(?:\/|$)/.test(path)) return "anthropic";
  if (/^\/v1\/models(?:\/|$)/.test(path)) {
    if (headers.has("anthropic-version")) return "anthropic";
    return headers.has("x-goog-api-client") ? "google" : "openai";
  }
  if (/^\/(?:v1\/interactions|v1beta|v1alpha)(?:\/|$)/.test(path)) return "google";
  return OF_THE_FLEET.test(path) ? "workers" : "openai";
}

export interface DrawnError {
  readonly status: number;
  readonly body: object;
  readonly headers: Record<string, string>;
}

/**
 * The whole answer that tells of a failure, before anything was sent. The headers say when to try again (`retry-after`), that it is of no
 * use (`x-should-retry`, which overrides what the SDKs of OpenAI and Anthropic would do), and the request's id.
 */
export function drawError(family: ErrorFamily, error: GatewayError, requestId: string): DrawnError {
  const status =
    family === "anthropic" ? anthropicStatus(error) : family === "google" ? googleStatus(error) : error.status;
  return { status, body: errorBody(family, error, requestId), headers: headersOf(family, error, requestId) };
}

/** The object alone, as streams send it. */
export function errorBody(family: ErrorFamily, error: GatewayError, requestId: string): object {
  if (family === "anthropic") return anthropicError(error, requestId);
  if (family === "workers") return workersError(error);
  return family === "google" ? googleError(error) : openAiError(error);
}

/** The headers that carry a request's id: Anthropic's SDK reads another one than OpenAI's. */
export const idHeaders = (family: ErrorFamily, requestId: string): Record<string, string> =>
  family === "anthropic" ? { "x-request-id": requestId, "request-id": requestId } : { "x-request-id": requestId };

function headersOf(family: ErrorFamily, error: GatewayError, requestId: string): Record<string, string> {
  const { status, retryAfterSecs } = error;
  const wait = retryAfterSecs ?? (status === 429 || status === 503 ? 1 : undefined);
  return {
    ...idHeaders(family, requestId),
    ...(wait !== undefined && { "retry-after": String(wait) }),
    ...((status === 500 || status === 501) && { "x-should-retry": "false" }),
    ...(status === 401 && { "www-authenticate": "Bearer" }),
  };
}
