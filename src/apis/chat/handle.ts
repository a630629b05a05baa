import { InvalidRequestError } from "../../errors.ts";
import type { Conversation } from "../../generation/conversation.ts";
import type { ServerContext } from "../../server/context.ts";
import { rawBody } from "../../server/raw-body.ts";
import type { RequestScope } from "../../server/request-scope.ts";
import { inTurns } from "../../steps.ts";
import { collectAnswer, streamAnswer } from "../shared/answer.ts";
import { type PreparedCall, prepareCall, type TextAsk } from "../shared/call.ts";
import { dispatchAsk } from "../shared/sampling-fields.ts";
import { type ChatAnswer, REASONING_FIELDS } from "./answer.ts";
import { ChatCollector } from "./collect.ts";
import { chatConstraint } from "./constraint.ts";
import { chatConversationSteps } from "./messages.ts";
import { CHAT_LENGTH, chatAsk } from "./sampling.ts";
import type { ChatRequest } from "./schema.ts";
import { ChatStream } from "./stream.ts";
import { isLegacy } from "./tool-choice.ts";

/** Answers a validated chat request. Throws GatewayErrors; the scope is finished when the answer is complete. */
export async function handleChat(body: ChatRequest, context: ServerContext, scope: RequestScope): Promise<Response> {
  try {
    if (body.stream !== true && body.stream_options) {
      throw new InvalidRequestError("stream_options needs stream to be true", { param: "stream_options" });
    }
    const call = await prepareChat(body, context, scope);
    const answer = chatAnswer(body, scope, context, call);
    const headers = { "x-request-id": scope.id };
    if (body.stream === true) {
      const options = { path: "/v1/chat/completions", headers };
      return await streamAnswer(call, (out, first) => new ChatStream(answer, out, first), options, context, scope);
    }
    const collector = new ChatCollector(answer);
    await collectAnswer(call, collector, scope);
    scope.finish();
    return Response.json(collector.object(), { headers });
  } catch (error) {
    scope.finish();
    throw error;
  }
}

/** Everything up to the engine. Throws GatewayErrors. */
export async function prepareChat(
  body: ChatRequest,
  context: ServerContext,
  scope: RequestScope,
): Promise<PreparedCall> {
  const conversation = await inTurns(chatConversationSteps(body, rawBody(body)));
  return prepareCall(textAsk(body, conversation), context, scope);
}

function textAsk(body: ChatRequest, conversation: Conversation): TextAsk {
  return {
    ...CHAT_LENGTH,
    ...dispatchAsk(body),
    model: body.model,
    conversation,
    sampling: chatAsk(body),
    constraint: chatConstraint(body),
    mergesReasoning: body.separate_reasoning === false,
    stream: body.stream === true,
    tokenIds: body.return_token_ids === true || body.stream_options?.continuous_usage_stats === true,
  };
}

function chatAnswer(
  body: ChatRequest,
  scope: RequestScope,
  context: ServerContext,
  { model, prompt, parsed }: PreparedCall,
): ChatAnswer {
  return {
    id: scope.id.startsWith("chatcmpl-") ? scope.id : `chatcmpl-${scope.id}`,
    created: Math.floor(Date.now() / 1000),
    model: body.model,
    choices: body.n ?? 1,
    promptTokens: prompt.tokenIds.length,
    tokenizer: model.tokenizer,
    logprobs: body.logprobs === true,
    tokensAsIds: body.return_tokens_as_token_ids === true,
    promptTokenIds: body.return_token_ids === true ? prompt.tokenIds : undefined,
    includeUsage: body.stream_options?.include_usage === true,
    continuousUsage: body.stream_options?.continuous_usage_stats === true,
    reasoningFields: body.include_reasoning === false ? [] : REASONING_FIELDS[context.config.reasoningField],
    legacyCalls: isLegacy(body),
    parsed,
  };
}
