import type { Model } from "../../fleet/view.ts";
import type { ServerContext } from "../../server/context.ts";
import type { RequestScope } from "../../server/request-scope.ts";
import { type PoolingInput, poolingInputs } from "../pooling/inputs.ts";
import { collectAnswer, streamAnswer } from "../shared/answer.ts";
import { type PreparedCall, prepareRaw } from "../shared/call.ts";
import { promptOf } from "../shared/prompt.ts";
import { takingTurns } from "../tokens/turns.ts";
import type { AnsweredPrompt, CompletionAnswer } from "./answer.ts";
import { asksForPromptOnly, checkChoices, checkCompletion, completionAsk, cutTo } from "./ask.ts";
import { batchOf } from "./batch.ts";
import { CompletionCollector } from "./collect.ts";
import { echoOf } from "./echo.ts";
import { fillInOf, fillInPrompt } from "./fim.ts";
import type { CompletionRequest } from "./schema.ts";
import { CompletionStream } from "./stream.ts";

/** Answers a validated request for completions. Throws GatewayErrors; the scope is finished when the answer is complete. */
export async function handleCompletions(
  body: CompletionRequest,
  context: ServerContext,
  scope: RequestScope,
): Promise<Response> {
  try {
    const { model, prompts, calls } = await prepareCompletions(body, context, scope);
    const answer = completionAnswer(body, prompts, calls, model, scope);
    const batch = batchOf(calls, answer.choices);
    const headers = { "x-request-id": scope.id };
    if (body.stream === true) {
      const options = { path: "/v1/completions", headers };
      return await streamAnswer(
        batch,
        (out, first) => new CompletionStream(answer, out, first),
        options,
        context,
        scope,
      );
    }
    const collector = new CompletionCollector(answer);
    await collectAnswer(batch, collector, scope);
    const object = collector.object();
    scope.finish();
    return Response.json(object, { headers });
  } catch (error) {
    scope.finish();
    throw error;
  }
}

interface PreparedCompletions {
  readonly model: Model;
  readonly prompts: readonly PoolingInput[];
  /** One for each of them. */
  readonly calls: readonly PreparedCall[];
}

/** Everything up to the engines. Throws GatewayErrors. */
export async function prepareCompletions(
  body: CompletionRequest,
  context: ServerContext,
  scope: RequestScope,
): Promise<PreparedCompletions> {
  checkCompletion(body);
  const model = context.fleet.model(body.model);
  const prompts = poolingInputs(body.prompt, "prompt", model.tokenizer.vocabSize, true);
  checkChoices(prompts.length, body);
  return { model, prompts, calls: await prepareAll(prompts, body, model, context, scope) };
}

/** For each prompt: a wrong one is refused before any engine is asked. */
async function prepareAll(
  prompts: readonly PoolingInput[],
  body: CompletionRequest,
  model: Model,
  context: ServerContext,
  scope: RequestScope,
): Promise<PreparedCall[]> {
  const suffix = body.suffix ?? "";
  const fillIn = suffix === "" ? undefined : fillInOf(model.tokenizer, body.model);
  const ask = completionAsk(body, model, fillIn?.end);
  const turn = takingTurns(scope.signal);
  const calls: PreparedCall[] = [];
  for (const { at, text, tokenIds } of prompts) {
    const due = turn();
    if (due !== undefined) await due;
    const given = text ?? tokenIds;
    const encoding = { encode: encoderOf(at, model, context, scope), addSpecialTokens: ask.addSpecialTokens };
    const prompt = fillIn === undefined ? given : await fillInPrompt(fillIn, given, suffix, model.tokenizer, encoding);
    calls.push(await prepareRaw({ ...ask, prompt, param: at }, context, scope));
  }
  return calls;
}

/** Ids of the parts of a prompt. `param`: where it stands in the request. */
function encoderOf(param: string, model: Model, context: ServerContext, scope: RequestScope) {
  const rule = { param, encode: { specialAsText: true } };
  return async (text: string) => (await promptOf({ text }, model, context, scope, rule)).tokenIds;
}

function completionAnswer(
  body: CompletionRequest,
  inputs: readonly PoolingInput[],
  calls: readonly PreparedCall[],
  model: Model,
  scope: RequestScope,
): CompletionAnswer {
  const { tokenizer } = model;
  const rule = { added: body.add_special_tokens !== false, cutTo: cutTo(body, model) };
  const prompts = calls.map(({ prompt: { tokenIds } }, i): AnsweredPrompt => {
    const echo = body.echo === true ? echoOf(inputs[i]!.text, tokenIds, tokenizer, rule) : undefined;
    return { tokenIds, echo };
  });
  return {
    id: scope.id.startsWith("cmpl-") ? scope.id : `cmpl-${scope.id}`,
    created: Math.floor(Date.now() / 1000),
    model: body.model,
    prompts,
    choices: body.n ?? 1,
    tokenizer,
    logprobs: body.logprobs !== undefined && body.logprobs !== null,
    tokensAsIds: body.return_tokens_as_token_ids === true,
    skipSpecialTokens: body.skip_special_tokens !== false,
    showsIds: body.return_token_ids === true,
    includeUsage: body.stream_options?.include_usage === true,
    continuousUsage: body.stream_options?.continuous_usage_stats === true,
    onlyPrompt: asksForPromptOnly(body),
  };
}
