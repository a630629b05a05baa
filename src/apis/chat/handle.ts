import type { SamplingParams } from "../../engines/engine.ts";
import { ClientClosedError, InvalidRequestError } from "../../errors.ts";
import { dispatcher } from "../../fleet/dispatch.ts";
import type { Model } from "../../fleet/view.ts";
import type { OutputOptions, ParsingOptions } from "../../generation/choice.ts";
import type { GenerationSink } from "../../generation/events.ts";
import { encodePrompt, type Prompt, type PromptEncoder } from "../../generation/prompt.ts";
import { type Generation, type RunningGeneration, runGeneration } from "../../generation/run.ts";
import type { ToolPlan } from "../../generation/tools/plan.ts";
import { runWithFallback } from "../../generation/tools/refused-constraint.ts";
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

/** Starts the generation that a request asks for. */
type Run = (sink: GenerationSink) => RunningGeneration;

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
    const { plan } = planned;
    const limits = {
      contextLength: model.entry.contextLength,
      vocabSize: model.tokenizer.vocabSize,
      defaults: model.entry.defaultSampling,
    };
    const parsingOf = (by: ToolPlan) =>
      chatParsing(body, conversation, model, { ...planned, plan: by }, (by.constraint ?? own) !== undefined);
    const parsing = parsingOf(plan);
    const answer = chatAnswer(body, scope, context, model, prompt, parsing !== undefined);
    const generationBy = (by: ToolPlan, read: ParsingOptions | undefined) => {
      const sampling = chatSampling(body, prompt.tokenIds.length, limits, by.constraint ?? own);
      return chatGeneration(body, scope, context, model, prompt, sampling, answer, read);
    };
    const generation = generationBy(plan, parsing);
    const other = plan.otherwise && { ...plan, ...plan.otherwise };
    const otherwise = other && generationBy(other, parsingOf(other));
    const run: Run = (sink) =>
      otherwise === undefined
        ? runGeneration(generation, sink, scope.signal)
        : runWithFallback(generation, otherwise, sink, scope.signal, ({ message }) =>
            context.log.info("the engine refused the constraint of a request's tools", { request: scope.id, message }),
          );
    return stream ? await streamed(run, answer, context, scope) : await collected(run, answer, scope);
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
  // The gateway itself ends an answer behind the one call that is wanted, if it sees the tokens as they come; one of several choices
  // goes on in the engine until all are over, as no wire can cancel one alone.
  const endsBehindCall = parsing?.mayCall === true && parsing.single;
  // One choice: the gateway finds the stop string and cancels, which spares the engine the detokenizing. Several: the engine ends
  // each at its own.
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
      stream: body.stream === true || endsBehindCall || (answer.choices === 1 && stop.length > 0),
      ...(dataParallelRank !== undefined && dataParallelRank !== null && { dataParallelRank }),
    },
  };
}

async function collected(run: Run, answer: ChatAnswer, scope: RequestScope): Promise<Response> {
  const collector = new ChatCollector(answer);
  await run(collector).done;
  scope.finish();
  if (collector.error) throw collector.error;
  return Response.json(collector.object(), { headers: { "x-request-id": scope.id } });
}

async function streamed(run: Run, answer: ChatAnswer, context: ServerContext, scope: RequestScope): Promise<Response> {
  let running: RunningGeneration | undefined;
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
  running = run(sink);
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
