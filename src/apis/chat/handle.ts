import type { SamplingParams } from "../../engines/engine.ts";
import { ClientClosedError, InvalidRequestError } from "../../errors.ts";
import { dispatcher } from "../../fleet/dispatch.ts";
import type { Model } from "../../fleet/view.ts";
import type { OutputOptions, ParsingOptions } from "../../generation/choice.ts";
import { encodePrompt, type Prompt, type PromptEncoder } from "../../generation/prompt.ts";
import { type Generation, runGeneration } from "../../generation/run.ts";
import type { ServerContext } from "../../server/context.ts";
import { EventStream } from "../../server/event-stream.ts";
import { logFailure } from "../../server/log-failure.ts";
import { rawBody } from "../../server/raw-body.ts";
import type { RequestScope } from "../../server/request-scope.ts";
import type { ChatAnswer } from "./answer.ts";
import { ChatCollector } from "./collect.ts";
import { chatConstraint } from "./constraint.ts";
import { chatConversation } from "./messages.ts";
import { chatParsing, chatPlan, REASONING_FIELDS } from "./parsing.ts";
import { chatSampling } from "./sampling.ts";
import type { ChatRequest } from "./schema.ts";
import { ChatStream, type FrameWriter } from "./stream.ts";
import { isLegacy } from "./tool-choice.ts";

/** Answers a validated chat request. Throws GatewayErrors; the scope is finished when the answer is complete. */
export async function handleChat(body: ChatRequest, context: ServerContext, scope: RequestScope): Promise<Response> {
  try {
    const stream = body.stream === true;
    if (!stream && body.stream_options) {
      throw new InvalidRequestError("stream_options needs stream to be true", { param: "stream_options" });
    }
    const model = context.fleet.model(body.model);
    if (model.template === undefined) {
      throw new InvalidRequestError(`The model '${model.entry.id}' has no chat template`, { param: "model" });
    }
    const conversation = chatConversation(body, rawBody(body));
    const own = chatConstraint(body);
    const planned = chatPlan(conversation, model, model.template, own);
    const prompt = await chatPrompt(body, planned.text, model, context, scope);
    const constraint = planned.plan.constraint ?? own;
    const limits = {
      contextLength: model.entry.contextLength,
      vocabSize: model.tokenizer.vocabSize,
      defaults: model.entry.defaultSampling,
    };
    const sampling = chatSampling(body, prompt.tokenIds.length, limits, constraint);
    const parsing = chatParsing(body, conversation, model, planned, constraint !== undefined);
    const answer = chatAnswer(body, scope, context, model, prompt, parsing !== undefined);
    const generation = chatGeneration(body, scope, context, model, prompt, sampling, answer, parsing);
    return stream ? await streamed(generation, answer, context, scope) : await collected(generation, answer, scope);
  } catch (error) {
    scope.finish();
    throw error;
  }
}

async function chatPrompt(
  body: ChatRequest,
  text: string,
  model: Model,
  context: ServerContext,
  scope: RequestScope,
): Promise<Prompt> {
  const keep = body.truncate_prompt_tokens ?? undefined;
  const limit = keep === undefined ? model.entry.contextLength : 0;
  const encoder: PromptEncoder = {
    tokenizer: model.tokenizer,
    async encodeLong(long) {
      const ids = await context.control.encode(model.entry.tokenizer, long, {}, scope.signal);
      model.tokenizer.remember(long, ids);
      return ids;
    },
  };
  const ids = await encodePrompt(text, encoder, limit);
  const tokenIds = keep !== undefined && keep > 0 && keep < ids.length ? ids.slice(-keep) : ids;
  if (tokenIds.length === 0)
    throw new InvalidRequestError("The messages result in an empty prompt", { param: "messages" });
  return { text, tokenIds };
}

function chatAnswer(
  body: ChatRequest,
  scope: RequestScope,
  context: ServerContext,
  model: Model,
  prompt: Prompt,
  parsed: boolean,
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

function chatGeneration(
  body: ChatRequest,
  scope: RequestScope,
  context: ServerContext,
  model: Model,
  prompt: Prompt,
  sampling: SamplingParams,
  answer: ChatAnswer,
  parsing: ParsingOptions | undefined,
): Generation {
  const stop = sampling.stop ?? [];
  const output: OutputOptions = {
    skipSpecialTokens: sampling.skipSpecialTokens ?? true,
    stop,
    stopTokenIds: new Set(sampling.stopTokenIds),
    eosTokenIds: sampling.ignoreEos === true ? new Set() : model.eosTokenIds,
    quietEosTokenIds: model.quietEosTokenIds,
    includeStop: sampling.includeStopStrInOutput ?? false,
    minTokens: sampling.minTokens ?? 0,
    maxTokens: sampling.maxTokens ?? Number.POSITIVE_INFINITY,
    logprobs: answer.logprobs,
    tokenIds: answer.promptTokenIds !== undefined || answer.continuousUsage,
    stopInReasoning: context.config.stopInReasoning,
    parsing,
  };
  // The gateway itself ends an answer at a stop string or behind the one call that is wanted, if it sees the tokens as they come.
  const endsHere = answer.choices === 1 && (stop.length > 0 || (parsing?.mayCall === true && parsing.single));
  // One choice: the gateway finds the stop string and cancels, which spares the engine the detokenizing. Several: only the
  // engine can end one of them.
  const engineStops = answer.choices > 1 ? sampling : { ...sampling, stop: [] };
  const dataParallelRank = body.data_parallel_rank ?? body.routed_dp_rank;
  return {
    engine: dispatcher(context.fleet, model),
    tokenizer: model.tokenizer,
    output,
    request: {
      requestId: `${body.rid ?? body.request_id ?? scope.id}-${crypto.randomUUID()}`,
      tokenIds: prompt.tokenIds,
      sampling: engineStops,
      stream: body.stream === true || endsHere,
      ...(dataParallelRank !== undefined && dataParallelRank !== null && { dataParallelRank }),
    },
  };
}

async function collected(generation: Generation, answer: ChatAnswer, scope: RequestScope): Promise<Response> {
  const collector = new ChatCollector(answer);
  await runGeneration(generation, collector, scope.signal).done;
  scope.finish();
  if (collector.error) throw collector.error;
  return Response.json(collector.object(), { headers: { "x-request-id": scope.id } });
}

async function streamed(
  generation: Generation,
  answer: ChatAnswer,
  context: ServerContext,
  scope: RequestScope,
): Promise<Response> {
  let running: ReturnType<typeof runGeneration> | undefined;
  let first!: () => void;
  const begun = new Promise<void>((resolve) => {
    first = resolve;
  });
  const out = new EventStream({
    heartbeatMs: context.config.sseHeartbeatSecs * 1000,
    // A long prefill must not look like a dead server: then the status goes out before the first token.
    onSilent() {
      sink.commit();
      first();
    },
    onPause: () => running?.pause(),
    onResume: () => running?.resume(),
    onClosed() {
      if (!sink.finished) scope.abort(new ClientClosedError());
      scope.finish();
    },
  });
  const sink = new ChatStream(answer, out satisfies FrameWriter, first);
  running = runGeneration(generation, sink, scope.signal);
  await begun;
  if (sink.error && !sink.started) {
    out.close();
    throw sink.error;
  }
  void running.done.then(() => {
    if (sink.error) logFailure(context.log, scope.id, "/v1/chat/completions", sink.error);
  });
  return out.response({ "x-request-id": scope.id });
}
