import { ValidationError } from "elysia";
import { drawError, errorFamily } from "../apis/errors.ts";
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

/** Methods of the routes that a path belongs to; none where there is no such route. `methods` is keyed by route. */
function methodsOf(path: string, methods: ReadonlyMap<string, readonly string[]>): readonly string[] {
  const found = new Set<string>();
  for (const [route, allowed] of methods) {
    if (route === path || isOf(path, route)) for (const method of allowed) found.add(method);
  }
  return [...found];
}

/** Segments of a route that begin with a colon stand for any one, the last one `*` for any number. */
function isOf(path: string, route: string): boolean {
  if (!route.includes(":") && !route.endsWith("/*")) return false;
  const [given, wanted] = [path.split("/"), route.split("/")];
  return wanted.every((segment, at) => {
    if (at === wanted.length - 1 && segment === "*") return given.length > at && given[at] !== "";
    const isLast = at === wanted.length - 1;
    const fits = segment.startsWith(":") ? (given[at] ?? "") !== "" : segment === given[at];
    return fits && (!isLast || given.length === wanted.length);
  });
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
  const path = pathOf(request.url);
  logFailure(context.log, id, path.slice(0, 200), failure);
  const { status, body, headers: drawn } = drawError(errorFamily(path, request.headers), failure, id);
  const extra: Record<string, string> = drawn;
  for (const [name, value] of Object.entries(headers))
    if (name.startsWith("access-control-") || name === "vary") extra[name] = String(value);
  // A body that nobody wants is not waited for.
  if (failure.code === "shutting_down" || [401, 413, 415].includes(failure.status)) extra["connection"] = "close";
  if (failure instanceof MethodNotAllowedError) extra["allow"] = methodsOf(path, methods).join(", ");
  return Response.json(body, { status, headers: extra });
}
