import { InvalidRequestError, NoWorkersError } from "../../errors.ts";
import type { ServerContext } from "../../server/context.ts";
import type { RequestScope } from "../../server/request-scope.ts";
import { checkChoices } from "../completions/ask.ts";
import { batchOf } from "../completions/batch.ts";
import { type PoolingInput, poolingInputs } from "../pooling/inputs.ts";
import { collectAnswer, streamAnswer } from "../shared/answer.ts";
import { type PreparedCall, prepareRaw } from "../shared/call.ts";
import { takingTurns } from "../tokens/turns.ts";
import { type GenerateItem, generateItems, rawAsk } from "./ask.ts";
import { GenerateResults } from "./results.ts";
import type { GenerateRequest } from "./schema.ts";
import { GenerateCollector, GenerateStream } from "./sinks.ts";

/** Answers a validated request in SGLang's native form. Throws GatewayErrors; the scope is finished when the answer is complete. */
export async function handleGenerate(
  body: GenerateRequest,
  context: ServerContext,
  scope: RequestScope,
): Promise<Response> {
  const started = performance.now();
  try {
    const name = modelName(body, context);
    const model = context.fleet.model(name);
    const inputs = promptsOf(body, model.tokenizer.vocabSize);
    const items = generateItems(body, inputs.length);
    const n = items[0]?.sampling.n ?? 1;
    checkChoices(inputs.length, { n }, "sampling_params.n");
    const calls = await prepareAll(inputs, items, body, name, context, scope);
    const results = new GenerateResults({
      id: scope.id,
      started,
      prompts: items.map((item, i) => ({ ...item, tokenIds: calls[i]!.prompt.tokenIds })),
      choices: n,
      tokenizer: model.tokenizer,
      eosTokenIds: model.eosTokenIds,
      showsText: body.return_text_in_logprobs === true,
      showsPromptIds: body.return_prompt_token_ids === true,
    });
    const batch = batchOf(calls, n);
    const headers = { "x-request-id": scope.id };
    if (body.stream === true) {
      const options = { path: "/generate", headers };
      return await streamAnswer(
        batch,
        (out, first) => new GenerateStream(results, out, first),
        options,
        context,
        scope,
      );
    }
    await collectAnswer(batch, new GenerateCollector(results), scope);
    const all = Array.from({ length: results.count }, (_, i) => results.json(i));
    scope.finish();
    const isList = results.count > 1 || Array.isArray(body.text) || Array.isArray(idsOf(body)?.[0]);
    return new Response(isList ? `[${all.join()}]` : all[0]!, {
      headers: { ...headers, "content-type": "application/json;charset=utf-8" },
    });
  } catch (error) {
    scope.finish();
    throw error;
  }
}

/** SGLang serves one model, which its requests do not name. */
function modelName({ model }: GenerateRequest, { fleet }: ServerContext): string {
  if (model) return model;
  const generating = fleet.list().filter(({ pooling }) => pooling === undefined);
  const [only] = generating;
  if (only !== undefined && generating.length === 1) return only.id;
  if (only === undefined) throw new NoWorkersError("(any)");
  throw new InvalidRequestError("Several models are served: name one", { param: "model" });
}

const idsOf = ({ input_ids: ids }: GenerateRequest): readonly unknown[] | undefined =>
  Array.isArray(ids) ? ids : undefined;

function promptsOf(body: GenerateRequest, vocabSize: number): PoolingInput[] {
  const { text, input_ids: ids } = body as { text: unknown; input_ids: unknown };
  const isGiven = (value: unknown) => value !== undefined && value !== null;
  if (isGiven(text) === isGiven(ids))
    throw new InvalidRequestError("Either text or input_ids must be given", { param: "text" });
  const isText = isGiven(text);
  const first: unknown = Array.isArray(text) ? text[0] : text;
  if (isText && typeof first !== "string" && first !== undefined)
    throw new InvalidRequestError("text must be a text or a list of texts", { param: "text" });
  if (!isText && (!Array.isArray(ids) || typeof ids[0] === "string"))
    throw new InvalidRequestError("input_ids must be token ids or lists of token ids", { param: "input_ids" });
  return poolingInputs(isText ? text : ids, isText ? "text" : "input_ids", vocabSize, true);
}

/** Everything up to the engines, for each prompt: a wrong one is refused before any engine is asked. */
async function prepareAll(
  inputs: readonly PoolingInput[],
  items: readonly GenerateItem[],
  body: GenerateRequest,
  model: string,
  context: ServerContext,
  scope: RequestScope,
): Promise<PreparedCall[]> {
  const turn = takingTurns(scope.signal);
  const calls: PreparedCall[] = [];
  for (const [i, { at, text, tokenIds }] of inputs.entries()) {
    const due = turn();
    if (due !== undefined) await due;
    const item = items[i]!;
    const ask = { ...rawAsk(item, body, model), prompt: text ?? tokenIds, param: at };
    const call = await prepareRaw(ask, context, scope);
    if (item.withLogprobs && item.logprobStart >= call.prompt.tokenIds.length)
      throw new InvalidRequestError(
        `logprob_start_len (${item.logprobStart}) is not within the ${call.prompt.tokenIds.length} tokens of ${at}`,
        { param: "logprob_start_len" },
      );
    calls.push(call);
  }
  return calls;
}
