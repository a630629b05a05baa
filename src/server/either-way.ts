/** Routes of what HTTP workers offer, too: requests for their models go on as they came, those for other models are understood here. */
import type { Static, TSchema } from "@sinclair/typebox";
import { withFallback } from "../apis/shared/fallback.ts";
import type { HttpEndpoint } from "../engines/http/engine.ts";
import { EngineFailureError, NoWorkersError, UnsupportedError } from "../errors.ts";
import type { FleetView } from "../fleet/view.ts";
import type { RouteAsk } from "../routing/ask.ts";
import type { ServerContext } from "./context.ts";
import { keepText, rawBody } from "./raw-body.ts";
import { contextOf } from "./rehearsal.ts";
import { endpointName } from "./request-metrics.ts";
import type { RequestScope } from "./request-scope.ts";
import { type Begin, bodyCheck, bodyReader } from "./route-parts.ts";
import { trialScope } from "./trial-scope.ts";

export interface EitherWay<S extends TSchema> {
  /** How the ids of requests begin. */
  readonly kind: string;
  readonly endpoint: HttpEndpoint;
  /** Of bodies that are understood here. What only a worker knows is for the worker to refuse. */
  readonly schema: S;
  handle(body: Static<S>, context: ServerContext, scope: RequestScope): Promise<Response>;
  /** The model may be left out where there is one only. */
  readonly mayLackModel?: boolean;
}

/** The hook that reads bodies, and what answers them: it throws, or rejects with, GatewayErrors. */
export function eitherWay<S extends TSchema>(
  { kind, endpoint, schema, handle, mayLackModel = false }: EitherWay<S>,
  context: ServerContext,
  begin: Begin,
) {
  const check: (body: unknown) => asserts body is Static<S> = bodyCheck(schema);
  const checked = (body: unknown): Static<S> => {
    check(body);
    return body;
  };

  async function passOn(
    model: string,
    body: object,
    request: Request,
    its: ServerContext,
    scope: RequestScope,
    route?: RouteAsk,
  ) {
    // loaded with the first request for such a model
    const proxy = await import("../apis/proxy/handle.ts");
    const isStream = (body as { readonly stream?: unknown }).stream === true;
    const text = textOf(body);
    return proxy.passOn({ endpoint, model, text, body, isStream, headers: request.headers, route }, its, scope);
  }

  /** Takes the way of the worker that the policy chooses of all, and the other one where nobody can do it on that. */
  async function mixed(model: string, body: object, request: Request, its: ServerContext, scope: RequestScope) {
    const { routeOf } = await import("../apis/proxy/route.ts");
    const route = await routeOf({ endpoint, model, body, text: textOf(body) }, its, scope);
    const overHttp = (of: RequestScope) => passOn(model, body, request, its, of, route);
    const asTokens = async (of: RequestScope) => handle(checked(body), its, of);
    const [first, second] = its.fleet.kindOfNext(model, route) === "http" ? [overHttp, asTokens] : [asTokens, overHttp];
    const trial = trialScope(scope);
    let answer: Response;
    try {
      answer = await first(trial);
    } catch (error) {
      const isLacking = first === asTokens && error instanceof UnsupportedError; // those over HTTP may understand it
      if (scope.signal.aborted || !(isLacking || isAway(error))) throw error;
      trial.finish();
      return second(scope);
    }
    trial.keep();
    return answer;
  }

  const modelIn = (body: object, { fleet }: ServerContext): string | undefined => {
    const { model } = body as { readonly model?: unknown };
    if (typeof model === "string" && model !== "") return model;
    return mayLackModel ? onlyModel(fleet) : undefined;
  };

  return {
    parse: bodyReader(begin, kind, context, {
      /** The text of what may go on as it came. */
      onRead(body, text) {
        const model = modelIn(body, context);
        if (model !== undefined && isOverHttp(context.fleet, model)) keepText(body, text);
      },
    }),
    answer(body: unknown, request: Request): Promise<Response> {
      const its = contextOf(request, context);
      const scope = begin(request, kind);
      const model = modelIn(body as object, its);
      if (model === undefined) return handle(checked(body), its, scope);
      return withFallback(
        {
          endpoint: endpointName(endpoint),
          model,
          isStream: (body as { readonly stream?: unknown }).stream === true,
        },
        its,
        scope,
        (by, part) => {
          const way = by.fleet.way(model);
          if (way === undefined || way === "tokens") return handle(checked(body), by, part);
          return (way === "http" ? passOn : mixed)(model, body as object, request, by, part);
        },
      );
    },
  };
}

/** As it came, where that was kept. */
const textOf = (body: object): string => rawBody(body) ?? JSON.stringify(body);

function isOverHttp(fleet: FleetView, model: string): boolean {
  const way = fleet.way(model);
  return way === "http" || way === "both";
}

function onlyModel(fleet: FleetView): string | undefined {
  const [only, another] = fleet.listAll();
  return another === undefined ? only?.id : undefined;
}

const isAway = (error: unknown): boolean =>
  error instanceof NoWorkersError || (error instanceof EngineFailureError && error.code === "engine_unavailable");
