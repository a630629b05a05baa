/** `POST /v1/responses/input_tokens`. */
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
    checkPrompt(request);
    const { asked } = await readRequest(request, context, scope);
    const tokens = await countPrompt(textAsk(request, asked, false), context, scope);
    return Response.json(
      { object: "response.input_tokens", input_tokens: tokens },
      { headers: idHeaders("openai", scope.id) },
    );
  } finally {
    scope.finish();
  }
}
