/** `/routing/explain`: where a request would go, and why. */
import { featuresOf } from "../../engines/features.ts";
import { InvalidRequestError } from "../../errors.ts";
import type { RouteReport } from "../../fleet/explain.ts";
import type { LeaseAsk } from "../../fleet/lease.ts";
import type { ServerContext } from "../../server/context.ts";
import { rawBody } from "../../server/raw-body.ts";
import type { RequestScope } from "../../server/request-scope.ts";
import { invalidBody, type SchemaProblem } from "../../server/validation.ts";
import { prepareChat } from "../chat/handle.ts";
import { chatRequest } from "../chat/schema.ts";
import { prepareCompletions } from "../completions/handle.ts";
import { completionRequest } from "../completions/schema.ts";
import { routeOf } from "../proxy/route.ts";
import type { PreparedCall } from "../shared/call.ts";
import { compiledSchema } from "../shared/compiled-schema.ts";

type Body = Record<string, unknown>;

const chat = compiledSchema(chatRequest);
const completion = compiledSchema(completionRequest);

/**
 * What would become of the body of a request for chat or completions, or of `token_ids`, if it came now: everything is done for it but the
 * sending. The body is filled in. Throws GatewayErrors.
 */
export async function explainRoute(body: Body, context: ServerContext, scope: RequestScope): Promise<RouteReport> {
  const { fleet } = context;
  const model = modelIn(body, context);
  body["model"] = model;
  if ("token_ids" in body) body["prompt"] = body["token_ids"];
  if ("messages" in body === "prompt" in body)
    throw new InvalidRequestError("Either 'messages', 'prompt' or 'token_ids' is needed", { param: "prompt" });
  if (fleet.way(model) === "http") return fleet.explain(model, await askOverHttp(model, body, context, scope));
  return fleet.explain(model, askOf(await prepared(body, context, scope), scope));
}

function modelIn({ model }: Body, { fleet }: ServerContext): string {
  if (typeof model === "string" && model !== "") return model;
  const [only, another] = fleet.listAll();
  if (only === undefined || another !== undefined)
    throw new InvalidRequestError("Missing required parameter: 'model'", { param: "model" });
  return only.id;
}

/** As the request is for workers that get prompts as token ids; of several prompts, the first. */
async function prepared(body: Body, context: ServerContext, scope: RequestScope): Promise<PreparedCall> {
  if ("messages" in body) {
    if (!chat.Check(body)) throw invalidBody(chat.Errors(body) as unknown as Iterable<SchemaProblem>);
    return prepareChat(body, context, scope);
  }
  if (!completion.Check(body)) throw invalidBody(completion.Errors(body) as unknown as Iterable<SchemaProblem>);
  const { calls } = await prepareCompletions(body, context, scope);
  return calls[0]!; // there is a prompt at least
}

function askOf({ request }: PreparedCall, scope: RequestScope): LeaseAsk {
  const { tokenIds, dataParallelRank: rank } = request;
  return { needs: featuresOf(request), route: { ...scope.route?.hints, tokenIds, tokens: tokenIds.length }, rank };
}

async function askOverHttp(model: string, body: Body, context: ServerContext, scope: RequestScope): Promise<LeaseAsk> {
  const endpoint = "messages" in body ? "/v1/chat/completions" : "/v1/completions";
  const text = rawBody(body) ?? JSON.stringify(body);
  return { route: await routeOf({ endpoint, model, body, text }, context, scope) };
}
