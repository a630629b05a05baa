/** What the routes of all APIs have in common. */

import type { Static, TSchema } from "@sinclair/typebox";
import { compiledSchema } from "../apis/shared/compiled-schema.ts";
import { routeHints } from "../apis/shared/route-hints.ts";
import { NotFoundError } from "../errors.ts";
import { LIMITED_PATHS } from "./admission.ts";
import { type JsonRule, readJson } from "./body.ts";
import type { ServerContext } from "./context.ts";
import { pathOf } from "./failure.ts";
import type { RequestScope } from "./request-scope.ts";
import { invalidBody, type SchemaProblem } from "./validation.ts";

/** Gives the scope of a request, whose id begins with `kind`, and finishes it if the request fails before it is handled. */
export type Begin = (request: Request, kind: string) => RequestScope;

const json = (description: string, schema: object) => ({ description, content: { "application/json": { schema } } });

/** Makes what the API document says of a route of one tag. `failure`: schema of the errors that its API draws. */
export const routeDetail =
  (tag: string, failure: object) =>
  (summary: string, description: string, answer: object, status = 200) => ({
    tags: [tag],
    summary,
    description,
    responses: {
      [status]: json("The answer", answer),
      "4XX": json("The request is wrong", failure),
      "5XX": json("It could not be served", failure),
    },
  });

/** Reads the body of a request that begins with it: the hook `parse` of a route with this schema. `mayLack`: none is an empty object. */
export function jsonBody(
  begin: Begin,
  kind: string,
  context: Pick<ServerContext, "config" | "admission">,
  schema: TSchema,
  mayLack = false,
) {
  return bodyReader(begin, kind, context, { mayLack, checkLarge: bodyCheck(schema) });
}

/** Throws an InvalidRequestError for a body of another form, which names the first field that is wrong. */
export function bodyCheck<S extends TSchema>(schema: S): (body: unknown) => asserts body is Static<S> {
  const form = compiledSchema(schema);
  return (body) => {
    if (!form.Check(body)) throw invalidBody(form.Errors(body) as unknown as Iterable<SchemaProblem>);
  };
}

/** The same for a route that checks its bodies itself. */
export function bodyReader(
  begin: Begin,
  kind: string,
  { config, admission }: Pick<ServerContext, "config" | "admission">,
  more: Omit<JsonRule, "limit">,
) {
  const rule = { limit: config.maxPayloadSize, ...more };
  return ({ request }: { request: Request }) => {
    const scope = begin(request, kind);
    // the body is read meanwhile: while it is not, nobody would notice that the client leaves
    const turn = admission !== undefined && isLimited(request) ? admission.enter(scope) : undefined;
    const body = readJson(request, rule).then((value) => {
      const hints = routeHints(request.headers, value);
      if (config.routingHeaders) scope.route = { hints, trace: {} };
      else if (hints !== undefined) scope.route = { hints };
      return value;
    });
    return turn === undefined ? body : Promise.all([body, turn]).then(([value]) => value);
  };
}

function isLimited({ url }: Request): boolean {
  const path = pathOf(url);
  return LIMITED_PATHS.has(path.endsWith("/") ? path.slice(0, -1) : path);
}

/** Works within the scope of a request, and finishes it. */
export const withinScope =
  (begin: Begin, kind: string) =>
  async <T>(request: Request, work: (scope: RequestScope) => Promise<T>): Promise<T> => {
    const scope = begin(request, kind);
    try {
      return await work(scope);
    } finally {
      scope.finish();
    }
  };

/** What the API document says of the bodies of a route that checks them itself. */
export const bodyDetail = (schema: TSchema) => ({
  requestBody: { required: true, content: { "application/json": { schema } } },
});

/** What Bun's server does for a request. */
export interface Timeouts {
  timeout(request: Request, seconds: number): void;
}

/** The server waits for an answer however long it is silent. */
export const patient = (request: Request, server: Timeouts | null): void => server?.timeout(request, 0);

/** Throws NotFoundError where a segment of a path has broken escapes: Elysia gives null for it. */
export function checkParams(params: Readonly<Record<string, string | null>> | undefined): void {
  for (const name in params) if (params[name] === null) throw new NotFoundError("The path has a broken escape (%)");
}

/** A parameter of a path, without its escapes. `unknown` makes what is thrown where they are broken. */
export function decodedParam(text: string, unknown: (text: string) => Error): string {
  try {
    return decodeURIComponent(text);
  } catch {
    throw unknown(text);
  }
}
