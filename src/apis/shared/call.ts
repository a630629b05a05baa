/** A request for text, of whatever API, on its way to an engine. */
import type { Constraint, GenerateRequest, SamplingParams } from "../../engines/engine.ts";
import { InvalidRequestError } from "../../errors.ts";
import { dispatcher } from "../../fleet/dispatch/dispatcher.ts";
import type { Model } from "../../fleet/view.ts";
import type { OutputOptions } from "../../generation/choice.ts";
import type { Conversation } from "../../generation/conversation.ts";
import type { GenerationSink } from "../../generation/events.ts";
import type { Prompt } from "../../generation/prompt.ts";
import { type Generation, type RunningGeneration, runGeneration } from "../../generation/run.ts";
import type { ToolPlan } from "../../generation/tools/plan.ts";
import { runWithFallback } from "../../generation/tools/refused-constraint.ts";
import type { ServerContext } from "../../server/context.ts";
import type { RequestScope } from "../../server/request-scope.ts";
import { parsingFor, planFor, refuseUnoffered } from "./planning.ts";
import { keepLast, promptOf } from "./prompt.ts";
import { type LengthRule, type SamplingAsk, samplingParams } from "./sampling.ts";

/** What all requests for text have in common. */
interface Ask extends LengthRule {
  /** As the client named it. */
  readonly model: string;
  readonly sampling: SamplingAsk;
  readonly constraint?: Constraint | undefined;
  /** The field of the API's own that the constraint came from; absent: one that engines have added. */
  readonly constraintParam?: string | undefined;
  /** Keep only the last tokens of the prompt (`truncate_prompt_tokens`). */
  readonly keepLast?: number;
  /** Tokens are wanted as they come. */
  readonly stream: boolean;
  /** Events tell the ids of the tokens. */
  readonly tokenIds?: boolean;
  readonly requestId?: string;
  readonly dataParallelRank?: number;
}

/** `param`: the field that the conversation is in, `messages` or `input`. */
export interface TextAsk extends Ask {
  readonly conversation: Conversation;
  /** Reasoning stays in the text, with its markers. */
  readonly mergesReasoning?: boolean;
}

/** A prompt that is no conversation: a text, or token ids that are in the model's vocabulary. Answers are not read for reasoning or calls. */
export interface RawAsk extends Ask {
  readonly prompt: string | Uint32Array;
  /** The model's special tokens (BOS) are put around a text. */
  readonly addSpecialTokens: boolean;
}

/** Everything up to the engine is done. */
export interface PreparedCall {
  readonly model: Model;
  /** The number of its ids is the exact count of input tokens. */
  readonly prompt: Prompt;
  /** What goes to an engine. */
  readonly request: GenerateRequest;
  /** Starts it; what the engine gives goes to the sink. */
  run(sink: GenerationSink, signal: AbortSignal): RunningGeneration;
  /** The answer is read for reasoning or calls. */
  readonly parsed: boolean;
  /** The answer may be shorter than was asked for, as the context leaves no more. */
  readonly isClamped: boolean;
  /** The answer begins in reasoning that the prompt has opened. */
  readonly startsInReasoning: boolean;
}

/** Model, template, plan for the tools, prompt, sampling, parsing. Throws GatewayErrors; asks nothing of an engine. */
export async function prepareCall(ask: TextAsk, context: ServerContext, scope: RequestScope): Promise<PreparedCall> {
  const model = generating(ask.model, context);
  limitTotal(model, context, scope);
  const { conversation, constraint: own, constraintParam } = ask;
  if (own !== undefined && constraintParam !== undefined) refuseUnoffered(own, model, constraintParam);
  const planned = await planFor(conversation, model, own, ask.param);
  const prompt = await promptOf(planned, model, context, scope, ask);
  const { plan } = planned;
  const generationBy = (by: ToolPlan): Generation => {
    const constraint = by.constraint ?? own;
    const parsing = parsingFor(
      conversation,
      model,
      { ...planned, plan: by },
      { constrained: constraint !== undefined, mergesReasoning: ask.mergesReasoning === true },
    );
    const sampling = sampled(ask, model, prompt, constraint);
    const generation = generationOf(ask, model, prompt, sampling, { parsing }, context, scope);
    if (!planned.startsInReasoning) return generation;
    return { ...generation, request: { ...generation.request, startsInReasoning: true } };
  };
  const generation = generationBy(plan);
  const otherwise = plan.otherwise && generationBy({ ...plan, ...plan.otherwise });
  const onRefused = ({ message }: Error) =>
    context.log.info("the engine refused the constraint of a request's tools", { request: scope.id, message });
  return {
    model,
    prompt,
    request: generation.request,
    run: (sink, signal) =>
      otherwise === undefined
        ? runGeneration(generation, sink, signal)
        : runWithFallback(generation, otherwise, sink, signal, onRefused),
    parsed: generation.output.parsing !== undefined,
    isClamped: isClamped(ask, generation),
    startsInReasoning: planned.startsInReasoning,
  };
}

/** The same call, run in another way. */
export const withRun = (call: PreparedCall, run: PreparedCall["run"]): PreparedCall =>
  Object.create(call, { run: { value: run } }) as PreparedCall;

/** Tokens of a conversation's prompt, with all that tools and constraints add to it. Throws GatewayErrors, but not for prompts that are too long. */
export async function countPrompt(
  ask: Pick<TextAsk, "model" | "conversation" | "constraint" | "param">,
  context: ServerContext,
  scope: RequestScope,
): Promise<number> {
  const model = generating(ask.model, context);
  const planned = await planFor(ask.conversation, model, ask.constraint, ask.param);
  const { tokenIds } = await promptOf(planned, model, context, scope, { param: ask.param, keepLast: 0 });
  return tokenIds.length;
}

/** The same for a prompt that is no conversation. */
export async function prepareRaw(ask: RawAsk, context: ServerContext, scope: RequestScope): Promise<PreparedCall> {
  const model = generating(ask.model, context);
  limitTotal(model, context, scope);
  const { prompt: given, addSpecialTokens, param } = ask;
  const prompt =
    typeof given === "string"
      ? await promptOf({ text: given }, model, context, scope, { ...ask, encode: { addSpecialTokens } })
      : { text: "", tokenIds: keepLast(given, ask.keepLast) };
  if (prompt.tokenIds.length === 0) throw new InvalidRequestError(`The ${param} is empty`, { param });
  const sampling = sampled(ask, model, prompt, ask.constraint);
  const reading = { parsing: undefined, continues: prompt.tokenIds };
  const generation = generationOf(ask, model, prompt, sampling, reading, context, scope);
  return {
    model,
    prompt,
    request: generation.request,
    run: (sink, signal) => runGeneration(generation, sink, signal),
    parsed: false,
    isClamped: isClamped(ask, generation),
    startsInReasoning: false,
  };
}

function generating(name: string, { fleet }: ServerContext): Model {
  const model = fleet.model(name);
  if (model.entry.pooling !== undefined)
    throw new InvalidRequestError(`The model '${model.entry.id}' gives vectors, not text`, { param: "model" });
  return model;
}

/** A model may have a limit of its own for the whole of a request. */
export function limitTotal({ entry }: Model, { fleet, config }: ServerContext, scope: RequestScope): void {
  const seconds = fleet.policy.totalSecsOf(entry.id);
  if (seconds !== config.requestTimeoutSecs) scope.limit(seconds);
}

const sampled = (ask: Ask, model: Model, prompt: Prompt, constraint: Constraint | undefined): SamplingParams =>
  samplingParams(
    ask.sampling,
    prompt.tokenIds.length,
    {
      contextLength: model.entry.contextLength,
      vocabSize: model.tokenizer.vocabSize,
      defaults: model.entry.defaultSampling,
    },
    constraint,
    ask,
  );

const isClamped = ({ sampling }: Ask, { request }: Generation): boolean =>
  request.sampling.maxTokens !== undefined && request.sampling.maxTokens !== sampling.maxTokens;

function generationOf(
  ask: Ask,
  model: Model,
  prompt: Prompt,
  sampling: SamplingParams,
  { parsing, continues }: Pick<OutputOptions, "parsing" | "continues">,
  context: ServerContext,
  scope: RequestScope,
): Generation {
  const stop = sampling.stop ?? [];
  const choices = sampling.n ?? 1;
  const output: OutputOptions = {
    skipSpecialTokens: sampling.skipSpecialTokens ?? true,
    continues,
    stop,
    stopTokenIds: new Set(sampling.stopTokenIds),
    eosTokenIds: sampling.ignoreEos === true ? new Set() : model.eosTokenIds,
    quietEosTokenIds: model.quietEosTokenIds,
    includeStop: sampling.includeStopStrInOutput ?? false,
    minTokens: sampling.minTokens ?? 0,
    maxTokens: sampling.maxTokens ?? Number.POSITIVE_INFINITY,
    logprobs: sampling.logprobs !== undefined,
    tokenIds: ask.tokenIds === true,
    stopInReasoning: context.config.stopInReasoning,
    parsing,
  };
  // The gateway itself ends an answer behind the one call that is wanted, if it sees the tokens as they come; one of several choices
  // goes on in the engine until all are over, as no wire can cancel one alone.
  const endsBehindCall = parsing?.mayCall === true && parsing.single;
  // One choice: the gateway finds the stop string and cancels, which spares the engine the detokenizing. Several: an engine that can
  // ends each at its own; where none does, the gateway cancels once it has found a stop in all of them.
  const engineStops = choices > 1 ? sampling : { ...sampling, stop: [] };
  const { dataParallelRank } = ask;
  return {
    engine: dispatcher(context.fleet, model, scope.meter?.endpoint ?? "other", scope.route),
    meter: () => scope.meter?.generation(model.entry.id),
    tokenizer: model.tokenizer,
    output,
    request: {
      requestId: `${ask.requestId ?? scope.id}-${crypto.randomUUID()}`,
      tokenIds: prompt.tokenIds,
      sampling: engineStops,
      stream: ask.stream || endsBehindCall || stop.length > 0,
      eosTokenIds: model.entry.eosTokenIds,
      ...(dataParallelRank !== undefined && { dataParallelRank }),
    },
  };
}
