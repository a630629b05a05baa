import { type EmbedReply, EngineError } from "../../engines/engine.ts";
import { InvalidRequestError } from "../../errors.ts";
import { dispatcher } from "../../fleet/dispatch/dispatcher.ts";
import type { Model } from "../../fleet/view.ts";
import { engineFailure } from "../../generation/engine-failure.ts";
import type { ServerContext } from "../../server/context.ts";
import type { RequestScope } from "../../server/request-scope.ts";
import { limitTotal } from "../shared/call.ts";
import { refuseLost } from "../shared/sampling-fields.ts";
import { takingTurns } from "../tokens/turns.ts";
import type { PoolingInput } from "./inputs.ts";
import type { PoolingOptions } from "./schema.ts";
import { inputTokens, type TokenRules } from "./tokens.ts";

/** Inputs of one request that are with engines at a time. */
const PARALLEL = 64;

/** Throws InvalidRequestError for a model whose engine generates text: such engines give no vectors. */
export function refuseGenerating({ entry }: Model): void {
  if (entry.pooling === undefined)
    throw new InvalidRequestError(`The model '${entry.id}' generates text: it gives no vectors`, { param: "model" });
}

/** What came back for a request's inputs, in their order. */
export interface Embedded {
  readonly vectors: readonly Float32Array[];
  /** Of all inputs, as the engines counted. */
  readonly promptTokens: number;
}

/**
 * Has every input embedded, several at a time. The first that fails ends the others at their engines, as does a client that leaves.
 * Throws GatewayErrors.
 */
export async function embedAll(
  inputs: readonly PoolingInput[],
  rules: TokenRules,
  body: PoolingOptions,
  model: Model,
  context: ServerContext,
  scope: RequestScope,
): Promise<Embedded> {
  scope.signal.throwIfAborted();
  refuseLost(body);
  const { rid, request_id: requestId } = body;
  limitTotal(model, context, scope);
  const stop = new AbortController();
  const { signal } = stop;
  const onAbort = () => stop.abort(scope.signal.reason);
  scope.signal.addEventListener("abort", onAbort, { once: true });
  const engines = dispatcher(context.fleet, model, scope.meter?.endpoint ?? "other", scope.route);
  const id = `${rid ?? requestId ?? scope.id}-${crypto.randomUUID()}`;
  const turn = takingTurns(signal);
  const vectors: Float32Array[] = new Array(inputs.length);
  let promptTokens = 0;
  let next = 0;

  async function embed(at: number): Promise<void> {
    const due = turn();
    if (due !== undefined) await due;
    const tokenIds = await inputTokens(inputs[at]!, rules, model, context, signal);
    signal.throwIfAborted();
    const reply: EmbedReply = await engines.embed({ requestId: `${id}-${at}`, tokenIds }, signal);
    vectors[at] = reply.embedding;
    promptTokens += Math.max(reply.promptTokens, tokenIds.length);
  }

  async function work(): Promise<void> {
    while (next < inputs.length) await embed(next++);
  }

  try {
    await Promise.all(Array.from({ length: Math.min(PARALLEL, inputs.length) }, work));
    scope.meter?.embedded(model.entry.id, promptTokens);
    return { vectors, promptTokens };
  } catch (error) {
    stop.abort(error);
    scope.signal.throwIfAborted();
    throw error instanceof EngineError ? engineFailure(error) : error;
  } finally {
    scope.signal.removeEventListener("abort", onAbort);
  }
}
