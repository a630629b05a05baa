/** `POST /v1beta/interactions`. */
import { UnsupportedError } from "../../errors.ts";
import type { ServerContext } from "../../server/context.ts";
import { rawBody } from "../../server/raw-body.ts";
import type { RequestScope } from "../../server/request-scope.ts";
import { inTurns } from "../../steps.ts";
import { idHeaders } from "../errors.ts";
import { collectAnswer, streamAnswer } from "../shared/answer.ts";
import { type PreparedCall, prepareCall, type TextAsk } from "../shared/call.ts";
import { RunOverError } from "../shared/event-log.ts";
import { type EventWriter, ServerSentEvents } from "../shared/events.ts";
import { loadContext } from "../shared/history.ts";
import { newId } from "../shared/ids.ts";
import { jsonResponse } from "../shared/paging.ts";
import { writerSink, writerStreamSink } from "../shared/turn-writer.ts";
import { checkRequest, interactionAsk, modelName } from "./ask.ts";
import { inputSteps } from "./input.ts";
import { echoOf, type InteractionHead } from "./object.ts";
import type { InteractionsRequest } from "./schema.ts";
import { interactionRow, type KeptInteraction } from "./state.ts";
import { InteractionWriter } from "./writer.ts";

/** An interaction whose call can begin. */
export interface PreparedInteraction {
  readonly head: InteractionHead;
  readonly call: PreparedCall;
  readonly ask: TextAsk;
  readonly previousId: string | undefined;
  /** The request's own steps: JSON texts. */
  readonly input: readonly string[];
  /** It is to be kept. */
  readonly stores: boolean;
  readonly hidesThoughts: boolean;
}

/** Reads a request up to where an engine is asked. Throws GatewayErrors; the scope stays open. */
export async function prepareInteraction(
  body: InteractionsRequest,
  context: ServerContext,
  scope: RequestScope,
): Promise<PreparedInteraction> {
  checkRequest(body);
  const { history, sealer, fleet, log } = context;
  const { tenant } = scope;
  const raw = rawBody(body);
  const input = await inTurns(inputSteps(body.input, raw));
  const summaries = body.generation_config?.thinking_summaries ?? "auto";
  if (summaries !== "auto" && summaries !== "none")
    throw new UnsupportedError("generation_config.thinking_summaries must be auto or none", {
      param: "generation_config.thinking_summaries",
    });
  const model = modelName(body.model, fleet);
  const previousId = body.previous_interaction_id ?? undefined;
  const earlier = await loadContext(history, { previousResponseId: previousId }, tenant, "interaction");
  const { ask, left } = await inTurns(
    interactionAsk(body, {
      model,
      context: earlier,
      open: (signature, visible) => sealer.open(tenant, signature, visible),
      raw,
    }),
  );
  if (left.size > 0)
    log.info("steps of a request for an interaction were left out", { request: scope.id, types: [...left] });
  const call = await prepareCall(ask, context, scope);
  const stores = history !== null && body.store !== false;
  if (body.background === true && !stores)
    throw new UnsupportedError("background: this server keeps nothing", { param: "background" });
  return {
    head: {
      id: stores ? newId("int_") : "",
      createdAt: Date.now(),
      model: body.model,
      serviceTier: body.service_tier ?? "standard",
      echo: echoOf(body),
    },
    call,
    ask,
    previousId,
    input,
    stores,
    hidesThoughts: summaries === "none",
  };
}

/** Keeps a final state. */
export type Save = (kept: KeptInteraction) => Promise<void>;

/** The writer of a prepared interaction. `save`: in the place of a new row in the store. */
export function interactionWriter(
  { head, previousId, input, stores, hidesThoughts }: PreparedInteraction,
  out: EventWriter | undefined,
  { history, sealer, log }: ServerContext,
  { id: request, tenant }: RequestScope,
  save?: Save,
): InteractionWriter {
  const put: Save | undefined =
    stores && history !== null
      ? async (kept) => {
          await history.putResponse(interactionRow(kept, tenant));
        }
      : undefined;
  const keep = save ?? put;
  return new InteractionWriter(
    {
      head,
      hidesThoughts,
      sign: (thought) => (hidesThoughts ? sealer.seal(tenant, thought) : sealer.sign(tenant, thought)),
      save: keep && ((ended) => keep({ ...ended, head, previousId, input })),
      onLost: (error) =>
        error instanceof RunOverError
          ? log.debug("an interaction has ended elsewhere", { request })
          : log.warn("an interaction that failed could not be stored", { request, error: String(error) }),
    },
    out,
  );
}

/** Answers a validated request that is not to run in the background. Throws GatewayErrors; the scope is finished when the answer is complete. */
export async function handleInteractions(
  body: InteractionsRequest,
  path: string,
  context: ServerContext,
  scope: RequestScope,
): Promise<Response> {
  try {
    const prepared = await prepareInteraction(body, context, scope);
    const headers = idHeaders("google", scope.id);
    if (body.stream === true) {
      return await streamAnswer(
        prepared.call,
        (out, first) => {
          const writer = interactionWriter(prepared, new ServerSentEvents(out), context, scope);
          return writerStreamSink(writer, prepared.call, first);
        },
        { path, headers },
        context,
        scope,
      );
    }
    const writer = interactionWriter(prepared, undefined, context, scope);
    await collectAnswer(prepared.call, writerSink(writer, prepared.call), scope);
    await writer.settled;
    if (writer.error !== undefined) throw writer.error;
    scope.finish();
    return jsonResponse(writer.text(), headers);
  } catch (error) {
    scope.finish();
    throw error;
  }
}
