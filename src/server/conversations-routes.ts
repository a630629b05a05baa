import { Elysia } from "elysia";
import type { ServerContext } from "./context.ts";
import type { RequestScope } from "./request-scope.ts";

/**
 * Routes of OpenAI's Conversations. `begin` gives the scope of a request, whose id begins with `kind`, and finishes it
 * if the request fails before it is handled.
 */
export function conversationsRoutes(_context: ServerContext, _begin: (request: Request, kind: string) => RequestScope) {
  return new Elysia({ name: "collie-conversations", normalize: false });
}
