import { type AnyElysia, Elysia } from "elysia";
import { errorFamily, idHeaders } from "../apis/errors.ts";
import { InvalidRequestError, ShuttingDownError } from "../errors.ts";
import { loadPart, PART_NAMES, type PartName, partOf } from "./api-parts.ts";
import { keyCheck } from "./auth.ts";
import { chatRoutes } from "./chat-routes.ts";
import type { ServerContext } from "./context.ts";
import { corsHeaders, preflight } from "./cors.ts";
import { failureResponse, pathOf } from "./failure.ts";
import { modelsRoutes } from "./models-routes.ts";
import { probeRoutes } from "./probe-routes.ts";
import { clientRequestId, randomId, requestId } from "./request-id.ts";
import type { RequestScope } from "./request-scope.ts";
import { checkParams } from "./route-parts.ts";
import { addTrace } from "./routing-headers.ts";

/** The whole HTTP surface of one serving thread. */
export interface App {
  /** Loads the part of the API that the request asks for, if it is not there yet. */
  fetch(request: Request): Response | Promise<Response>;
  /** The server that the requests come from: told once it is there. */
  serveFrom(server: NonNullable<AnyElysia["server"]>): void;
  /** Every route, whose parts are loaded for that. */
  routes(): Promise<readonly { readonly method: string; readonly path: string }[]>;
}

export function createApp(context: ServerContext): App {
  const { config, scopes } = context;
  const checkKey = keyCheck(config.apiKey);
  /** Requests whose body is being read have begun, too: a shutdown waits for them. */
  const begun = new WeakMap<Request, RequestScope>();
  const parts = new Map<PartName | "document", AnyElysia | Promise<AnyElysia>>();
  let bun: AnyElysia["server"] = null;

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

  /** Routes, with what all of them have in common. */
  function appOf(...routes: readonly AnyElysia[]): AnyElysia {
    const methods = new Map<string, string[]>();
    // Without `standardHostname: false` Elysia looks for the path behind a host name of four letters or more.
    const app: AnyElysia = new Elysia({ name: "collie", normalize: false, handler: { standardHostname: false } })
      .onRequest(onRequest)
      .onTransform(({ params }: { readonly params: Readonly<Record<string, string | null>> }) => checkParams(params))
      .onError(({ error, code, request, set }) => {
        begun.get(request)?.finish();
        return failureResponse(error, String(code), request, set.headers, context, methods);
      });
    for (const some of routes) app.use(some);
    for (const { path, method } of app.routes) {
      if (path !== "*") methods.set(path, [...(methods.get(path) ?? []), method]);
    }
    app.compile();
    app.server = bun;
    return app;
  }

  async function load(name: PartName | "document"): Promise<AnyElysia> {
    if (name !== "document") return appOf((await loadPart(name))(context, begin));
    const [{ swaggerRoutes }, ...others] = await Promise.all([
      import("./swagger/routes.ts"),
      ...PART_NAMES.map(loadPart),
    ]);
    const made = others.map((routes) => routes(context, begin));
    return appOf(swaggerRoutes(), chatRoutes(context, begin), ...made, modelsRoutes(context), probeRoutes(context));
  }

  /** A part's app, or the promise of it. What cannot be loaded is tried again. */
  function part(name: PartName | "document"): AnyElysia | Promise<AnyElysia> {
    const known = parts.get(name);
    if (known !== undefined) return known;
    const loading = load(name);
    parts.set(name, loading);
    loading.then(
      (app) => parts.set(name, app),
      () => parts.delete(name),
    );
    return loading;
  }

  const first = appOf(chatRoutes(context, begin), modelsRoutes(context), probeRoutes(context));

  function answer(request: Request): Response | Promise<Response> {
    const name = partOf(pathOf(request.url));
    const app = name === undefined ? first : part(name);
    return app instanceof Promise ? app.then((loaded) => loaded.fetch(request)) : app.fetch(request);
  }

  /** The same, with headers that tell where the request was sent. */
  async function traced(request: Request): Promise<Response> {
    const response = await answer(request);
    const trace = begun.get(request)?.route?.trace;
    if (trace !== undefined) addTrace(response.headers, trace);
    return response;
  }

  return {
    fetch: config.routingHeaders ? traced : answer,
    serveFrom(server) {
      bun = server;
      first.server = server;
    },
    async routes() {
      return (await part("document")).routes.filter(({ path }) => path !== "*");
    },
  };
}

/** How the paths begin that need a key. */
const LOCKED =
  /^\/(?:v1|tokenize|detokenize|parse|separate_reasoning|generate|rerank|workers|routing|get_loads|engine_metrics|get_model_info|get_server_info|health_generate|flush_cache|start_profile|stop_profile)/;

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
