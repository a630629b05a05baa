import { ValidationError } from "elysia";
import { openAiErrorResponse } from "../apis/openai/errors.ts";
import { BadJsonError, GatewayError, InternalError, MethodNotAllowedError, RouteNotFoundError } from "../errors.ts";
import type { ServerContext } from "./context.ts";
import { logFailure } from "./log-failure.ts";
import { requestId } from "./request-id.ts";
import { invalidBody, type SchemaProblem } from "./validation.ts";

/** Path of an absolute URL, without the query. */
export function pathOf(url: string): string {
  const start = Math.max(0, url.indexOf("/", 7)); // a request without a host has no more than the path
  const end = url.indexOf("?", start);
  return url.slice(start, end < 0 ? undefined : end);
}

/** Methods of the route that a path belongs to; none where there is no such route. `methods` is keyed by route. */
function methodsOf(path: string, methods: ReadonlyMap<string, readonly string[]>): readonly string[] {
  const exact = methods.get(path);
  if (exact !== undefined) return exact;
  for (const [route, allowed] of methods) {
    if (route.endsWith("/*") && path.startsWith(route.slice(0, -1))) return allowed;
  }
  return [];
}

/** Whatever was thrown, as a failure that a client may see. */
function toGatewayError(
  error: unknown,
  code: string,
  request: Request,
  methods: ReadonlyMap<string, readonly string[]>,
): GatewayError {
  if (error instanceof GatewayError) return error;
  if (error instanceof ValidationError) return invalidBody(error.all as unknown as Iterable<SchemaProblem>);
  if (code === "NOT_FOUND") {
    const path = pathOf(request.url);
    const allowed = methodsOf(path, methods);
    if (allowed.length === 0)
      return new RouteNotFoundError(`Unknown request URL: ${request.method} ${path.slice(0, 200)}`);
    return new MethodNotAllowedError(`${request.method} is not allowed here, only ${allowed.join(", ")}`);
  }
  if (code === "PARSE") {
    const { cause } = error as { cause?: unknown };
    return cause instanceof GatewayError ? cause : new BadJsonError("The body cannot be read");
  }
  return new InternalError(error);
}

/** The response to a request that failed before anything was sent. Defects of ours are logged. */
export function failureResponse(
  error: unknown,
  code: string,
  request: Request,
  headers: Readonly<Record<string, unknown>>,
  context: ServerContext,
  methods: ReadonlyMap<string, readonly string[]>,
): Response {
  const failure = toGatewayError(error, code, request, methods);
  const id = requestId(request, context.config);
  logFailure(context.log, id, pathOf(request.url).slice(0, 200), failure);
  const extra: Record<string, string> = { "x-request-id": id };
  for (const [name, value] of Object.entries(headers))
    if (name.startsWith("access-control-") || name === "vary") extra[name] = String(value);
  // A body that nobody wants is not waited for.
  if (failure.code === "shutting_down" || [401, 413, 415].includes(failure.status)) extra["connection"] = "close";
  if (failure instanceof MethodNotAllowedError) extra["allow"] = methodsOf(pathOf(request.url), methods).join(", ");
  return openAiErrorResponse(failure, extra);
}
