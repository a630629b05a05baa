/** `POST /v1/responses/input_tokens`. */
import { InvalidRequestError } from "../../errors.ts";
import type { ServerContext } from "../../server/context.ts";
import type { RequestScope } from "../../server/request-scope.ts";
import { idHeaders } from "../errors.ts";
import { checkPrompt, textAsk } from "../responses/ask.ts";
import { readRequest } from "../responses/read.ts";
import { countPrompt } from "../shared/call.ts";
import type { CountRequest } from "./schema.ts";

/** The tokens of the prompt that a response would be made of. Throws GatewayErrors; finishes the scope. */
export async function handleInputTokens(
  request: CountRequest,
  context: ServerContext,
  scope: RequestScope,
): Promise<Response> {
  try {
    // the same object: the text of the request is known by it
    const named = Object.assign(request, { model: request.model ?? onlyModel(context) });
    checkPrompt(named);
    const { asked } = await readRequest(named, context, scope);
    const tokens = await countPrompt(textAsk(named, asked, false), context, scope);
    return Response.json(
      { object: "response.input_tokens", input_tokens: tokens },
      { headers: idHeaders("openai", scope.id) },
    );
  } finally {
    scope.finish();
  }
}

/** The one model that writes text. Throws InvalidRequestError where there are several, or none. */
function onlyModel({ fleet }: ServerContext): string {
  const [only, another] = fleet.list().filter(({ pooling }) => pooling === undefined);
  if (only === undefined || another !== undefined)
    throw new InvalidRequestError("Missing required parameter: 'model'", { param: "model" });
  return only.id;
}
