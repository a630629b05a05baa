/** Messages, and the count of their tokens. */
import type { ServerContext } from "../../server/context.ts";
import { rawBody } from "../../server/raw-body.ts";
import type { RequestScope } from "../../server/request-scope.ts";
import { inTurns } from "../../steps.ts";
import { idHeaders } from "../errors.ts";
import { collectAnswer, streamAnswer } from "../shared/answer.ts";
import { countPrompt, type PreparedCall, prepareCall } from "../shared/call.ts";
import { constraintExtensions, onlyOne } from "../shared/constraint.ts";
import { newId } from "../shared/ids.ts";
import { dispatchAsk, extensionAsk, refuseUnsupported } from "../shared/sampling-fields.ts";
import type { MessageAnswer } from "./answer.ts";
import { messageCollector } from "./collect.ts";
import { messageConversation } from "./conversation.ts";
import type { OpenThinking } from "./history.ts";
import type { CountTokensRequest, MessagesRequest } from "./schema.ts";
import { messageStream, PING } from "./stream.ts";

/** Clients expect to hear something every ten to fifteen seconds. */
const PING_MS = 10_000;
const PARAM = "messages";

interface Prepared {
  readonly call: PreparedCall;
  readonly answer: MessageAnswer;
  readonly options: { readonly isClamped: boolean; readonly hidesThinking: boolean; readonly requestId: string };
}

/** Answers a validated request. Throws GatewayErrors; the scope is finished when the answer is complete. */
export async function handleMessages(
  body: MessagesRequest,
  context: ServerContext,
  scope: RequestScope,
): Promise<Response> {
  try {
    const headers = idHeaders("anthropic", scope.id);
    if (body.stream !== true) {
      const text = await createMessage(body, rawBody(body), context, scope);
      scope.finish();
      return new Response(text, { headers: { ...headers, "content-type": "application/json;charset=utf-8" } });
    }
    const { call, answer, options } = await prepared(body, rawBody(body), context, scope);
    const keepAliveMs = Math.min(PING_MS, context.config.sseHeartbeatSecs * 1000);
    return await streamAnswer(
      call,
      (out, first) => messageStream(answer, out, first, options),
      { path: "/v1/messages", headers, keepAlive: PING, keepAliveMs },
      context,
      scope,
    );
  } catch (error) {
    scope.finish();
    throw error;
  }
}

/**
 * JSON text of the message that answers a request, whatever its `stream` says. `raw`: the text of the request. The scope stays open.
 * Rejects with GatewayErrors.
 */
export async function createMessage(
  body: MessagesRequest,
  raw: string | undefined,
  context: ServerContext,
  scope: RequestScope,
): Promise<string> {
  const { call, answer, options } = await prepared({ ...body, stream: false }, raw, context, scope);
  const collector = messageCollector(answer, options);
  await collectAnswer(call, collector, scope);
  return collector.text();
}

async function prepared(
  body: MessagesRequest,
  raw: string | undefined,
  context: ServerContext,
  scope: RequestScope,
): Promise<Prepared> {
  refuseUnsupported(body);
  const { conversation, thinking, format } = await inTurns(
    messageConversation(body, opener(context, scope), raw, body.max_tokens),
  );
  const found = [...(format === undefined ? [] : [format]), ...constraintExtensions(body)];
  const call = await prepareCall(
    {
      ...dispatchAsk(body),
      model: body.model,
      conversation,
      sampling: {
        ...extensionAsk(body),
        temperature: body.temperature,
        topP: body.top_p,
        maxTokens: body.max_tokens,
        stop: body.stop_sequences,
      },
      constraint: onlyOne(found, "output_config.format"),
      constraintParam: format === undefined ? undefined : "output_config.format",
      tooLong: "clamp",
      stream: body.stream === true,
      param: PARAM,
    },
    context,
    scope,
  );
  const { sealer } = context;
  const { tenant } = scope;
  const answer: MessageAnswer = {
    id: newId("msg_"),
    model: body.model,
    promptTokens: call.prompt.tokenIds.length,
    omitsThinking: thinking.isOmitted,
    sign: (thoughts) => (thinking.isOmitted ? sealer.seal(tenant, thoughts) : sealer.sign(tenant, thoughts)),
    tellsEdits: body.context_management !== undefined && body.context_management !== null,
  };
  return { call, answer, options: { isClamped: call.isClamped, hidesThinking: !thinking.isOn, requestId: scope.id } };
}

/** Answers a validated request for the number of tokens of its prompt, which is the one that Messages would send. */
export async function handleCountTokens(
  body: CountTokensRequest,
  context: ServerContext,
  scope: RequestScope,
): Promise<Response> {
  try {
    const { conversation, format } = await inTurns(
      messageConversation(body, opener(context, scope), rawBody(body), undefined),
    );
    const ask = { model: body.model, conversation, constraint: format, param: PARAM };
    const tokens = await countPrompt(ask, context, scope);
    const edits = body.context_management ? { context_management: { original_input_tokens: tokens } } : {};
    return Response.json({ input_tokens: tokens, ...edits }, { headers: idHeaders("anthropic", scope.id) });
  } finally {
    scope.finish();
  }
}

const opener =
  ({ sealer }: Pick<ServerContext, "sealer">, { tenant }: Pick<RequestScope, "tenant">): OpenThinking =>
  (signature, visible) =>
    sealer.open(tenant, signature, visible);
