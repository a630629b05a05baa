import { Type as t } from "@sinclair/typebox";
import type { GatewayError } from "../../errors.ts";

/** SMG's error object of the workers' API. */
export interface WorkersError {
  readonly error: string;
  readonly code: string;
}

/** The same as a schema, for the API document. */
export const workersErrorSchema = t.Object({ error: t.String(), code: t.String() });

/** SMG's codes; others are ours in its spelling. */
const CODES: Readonly<Record<string, string>> = {
  worker_not_found: "WORKER_NOT_FOUND",
  worker_exists: "WORKER_ALREADY_EXISTS",
  internal_error: "INTERNAL_SERVER_ERROR",
};

/** Draws a failure the way SMG's workers' API does. */
export function workersError({ message, status, code }: GatewayError): WorkersError {
  return { error: message, code: CODES[code] ?? (status === 400 ? "BAD_REQUEST" : code.toUpperCase()) };
}
