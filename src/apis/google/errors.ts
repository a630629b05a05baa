/** Failures as Google's APIs draw them (google.rpc.Status over HTTP). */
import { Type as t } from "@sinclair/typebox";
import type { GatewayError } from "../../errors.ts";

export interface GoogleError {
  readonly error: { readonly code: number; readonly status: string; readonly message: string };
}

/** The same as a schema, for the API document. */
export const googleErrorResponse = t.Object({
  error: t.Object({
    code: t.Integer({ description: "the HTTP status" }),
    status: t.String({ description: "the name of the gRPC status, as INVALID_ARGUMENT" }),
    message: t.String(),
  }),
});

export const googleStatus = ({ status }: GatewayError): number => (status === 413 || status === 415 ? 400 : status);

const STATUSES: Readonly<Record<number, string>> = {
  401: "UNAUTHENTICATED",
  403: "PERMISSION_DENIED",
  404: "NOT_FOUND",
  405: "UNIMPLEMENTED", // no gRPC status is this
  409: "ABORTED",
  429: "RESOURCE_EXHAUSTED",
  499: "CANCELLED",
  501: "UNIMPLEMENTED",
  503: "UNAVAILABLE",
  504: "DEADLINE_EXCEEDED",
};

/** The name of a failure's gRPC status. */
export const googleStatusName = ({ status }: GatewayError): string =>
  STATUSES[status] ?? (status >= 500 ? "INTERNAL" : "INVALID_ARGUMENT");

export function googleError(error: GatewayError): GoogleError {
  return { error: { code: googleStatus(error), status: googleStatusName(error), message: error.message } };
}
