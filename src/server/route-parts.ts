/** What the routes of all APIs have in common. */

import { readJson } from "./body.ts";
import type { ServerContext } from "./context.ts";
import type { RequestScope } from "./request-scope.ts";

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

/** Reads the body of a request that begins with it: the hook `parse` of a route. */
export const jsonBody =
  (begin: Begin, kind: string, { config }: Pick<ServerContext, "config">) =>
  ({ request }: { request: Request }) => {
    begin(request, kind);
    return readJson(request, config.maxPayloadSize);
  };

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

/** What Bun's server does for a request. */
export interface Timeouts {
  timeout(request: Request, seconds: number): void;
}

/** The server waits for an answer however long it is silent. */
export const patient = (request: Request, server: Timeouts | null): void => server?.timeout(request, 0);

/** A parameter of a path, without its escapes. `unknown` makes what is thrown where they are broken. */
export function decodedParam(text: string, unknown: (text: string) => Error): string {
  try {
    return decodeURIComponent(text);
  } catch {
    throw unknown(text);
  }
}
