import { Elysia } from "elysia";
import { handleChat } from "../apis/chat/handle.ts";
import { chatRequest, chatResponse } from "../apis/chat/schema.ts";
import { errorFamily, idHeaders } from "../apis/errors.ts";
import { errorResponse } from "../apis/openai/errors.ts";
import { InvalidRequestError, ShuttingDownError } from "../errors.ts";
import { keyCheck } from "./auth.ts";
import { completionsRoutes } from "./completions-routes.ts";
import type { ServerContext } from "./context.ts";
import { conversationsRoutes } from "./conversations-routes.ts";
import { corsHeaders, preflight } from "./cors.ts";
import { failureResponse } from "./failure.ts";
import { interactionsRoutes } from "./interactions-routes.ts";
import { messagesRoutes } from "./messages-routes.ts";
import { modelsRoutes } from "./models-routes.ts";
import { parseRoutes } from "./parse-routes.ts";
import { poolingRoutes } from "./pooling-routes.ts";
import { contextOf } from "./rehearsal.ts";
import { clientRequestId, randomId, requestId } from "./request-id.ts";
import type { RequestScope } from "./request-scope.ts";
import { responsesRoutes } from "./responses-routes.ts";
import { checkParams, jsonBody, routeDetail } from "./route-parts.ts";
import { swaggerRoutes } from "./swagger/routes.ts";
import { tokenRoutes } from "./token-routes.ts";

/** The whole HTTP surface of one serving thread. */
export function createApp(context: ServerContext) {
  const { config, scopes } = context;
  const checkKey = keyCheck(config.apiKey);
  const methods = new Map<string, string[]>();
  /** Requests whose body is being read have begun, too: a shutdown waits for them. */
  const begun = new WeakMap<Request, RequestScope>();

  /** The scope of a request: of a new one, unless it has begun. Its id begins with `kind`. */
  function begin(request: Request, kind: string): RequestScope {
    const open = begun.get(request);
    if (open !== undefined) return open;
    const id = clientRequestId(request.headers, config.requestIdHeaders) ?? `${kind}-${randomId()}`;
    const scope = scopes.begin(id, request.signal);
    begun.set(request, scope);
    return scope;
  }

  /** Destructured, since Elysia reads the source of its hooks: one that hands the whole event on has each request's cookies, headers and query parsed. */
  function onRequest({ request, set, path }: RequestEvent): Response | undefined {
    // POST handlers say theirs
    const family = errorFamily(path ?? "", request.headers);
    if (request.method !== "POST") Object.assign(set.headers, idHeaders(family, requestId(request, config)));
    const origin = request.headers.get("origin");
    if (origin !== null) Object.assign(set.headers, corsHeaders(origin, config.corsAllowedOrigins));
    if (request.method === "OPTIONS") return preflight(request, config.corsAllowedOrigins);
    // Without a usable Host the URL is the bare path, and the router would look for a longer one.
    if (request.url.startsWith("/") && request.method === "POST")
      throw new InvalidRequestError("The request needs a Host header with the name of this server");
    if (!needsKey(path)) return undefined;
    checkKey(request.headers, request.url, family);
    if (context.draining()) throw new ShuttingDownError();
    return undefined;
  }

  // Without `standardHostname: false` Elysia looks for the path behind a host name of four letters or more.
  const app = new Elysia({ name: "collie", normalize: false, handler: { standardHostname: false } })
    .onRequest(onRequest)
    .onTransform(({ params }: { readonly params: Readonly<Record<string, string | null>> }) => checkParams(params))
    .onError(({ error, code, request, set }) => {
      begun.get(request)?.finish();
      return failureResponse(error, String(code), request, set.headers, context, methods);
    })
    .use(swaggerRoutes())
    .post(
      "/v1/chat/completions",
      ({ body, request, server }) => {
        server?.timeout(request, 0); // a long prefill is silent; an upload that stalls is not waited for
        return handleChat(body, contextOf(request, context), begin(request, "chatcmpl"));
      },
      {
        parse: jsonBody(begin, "chatcmpl", context, chatRequest),
        body: chatRequest,
        detail: routeDetail("OpenAI", errorResponse)(
          "Chat Completions",
          "OpenAI's Chat Completions with the sampling extensions of vLLM and SGLang. With `stream`, server-sent events.",
          chatResponse,
        ),
      },
    )
    .use(tokenRoutes(context, begin))
    .use(completionsRoutes(context, begin))
    .use(poolingRoutes(context, begin))
    .use(responsesRoutes(context, begin))
    .use(conversationsRoutes(context, begin))
    .use(messagesRoutes(context, begin))
    .use(interactionsRoutes(context, begin))
    .use(parseRoutes(context, begin))
    .use(modelsRoutes(context))
    // Claude Code asks whether anybody is there.
    .head("/", () => new Response(null), { detail: { tags: ["Probes"], summary: "The server answers" } })
    .get("/health", () => "OK", { detail: { tags: ["Probes"], summary: "The process is alive" } })
    .get("/liveness", () => "OK", { detail: { tags: ["Probes"], summary: "The process is alive" } })
    .get("/readiness", () => readiness(context), { detail: { tags: ["Probes"], summary: "Requests can be served" } });

  for (const route of app.routes) {
    if (route.path !== "*") methods.set(route.path, [...(methods.get(route.path) ?? []), route.method]);
  }
  return app;
}

/** How the paths begin that need a key. */
const LOCKED = /^\/(?:v1|tokenize|detokenize|parse|separate_reasoning|generate|rerank)/;

/** What of a request's event is read before it is routed. Elysia's types hide the path that its router goes by. */
interface RequestEvent {
  readonly request: Request;
  readonly set: { readonly headers: Record<string, string | number> };
  readonly path?: string;
}

/**
 * Whether a request asks for more than probes and pages. Judged by the path that the router goes by: any other reading of the URL could
 * let a request past the check of its key.
 */
const needsKey = (path: string | undefined): boolean => path === undefined || LOCKED.test(path);

function readiness(context: ServerContext): Response {
  const { fleet } = context;
  const healthy = fleet.readyWorkers();
  const total = fleet.workerCount;
  const reason = context.draining() ? "draining" : healthy === 0 ? "insufficient healthy workers" : undefined;
  if (reason !== undefined)
    return Response.json(
      { status: "not ready", reason, healthy_workers: healthy, total_workers: total },
      { status: 503 },
    );
  return Response.json({ status: "ready", healthy_workers: healthy, total_workers: total });
}
