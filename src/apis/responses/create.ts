/** `POST /v1/responses`. */
import { ContextLengthError } from "../../errors.ts";
import { MAX_TEXT } from "../../generation/prompt.ts";
import type { ServerContext } from "../../server/context.ts";
import type { RequestScope } from "../../server/request-scope.ts";
import { inTurns } from "../../steps.ts";
import { idHeaders } from "../errors.ts";
import { chatLogprobs } from "../openai/logprobs.ts";
import { collectAnswer, streamAnswer } from "../shared/answer.ts";
import { type PreparedCall, prepareCall, type TextAsk } from "../shared/call.ts";
import { RunOverError } from "../shared/event-log.ts";
import { type EventWriter, ServerSentEvents } from "../shared/events.ts";
import { callWithFallback } from "../shared/fallback.ts";
import { newId } from "../shared/ids.ts";
import { writerSink, writerStreamSink } from "../shared/turn-writer.ts";
import { type AskedConversation, checkRequest, textAsk, wantsLogprobs } from "./ask.ts";
import { type ResponseHead, requestFields } from "./object.ts";
import { readRequest } from "./read.ts";
import type { Loose, ResponsesRequest } from "./schema.ts";
import { inputItemsSteps, type KeptResponse, responseStore } from "./state.ts";
import { withinCharacters, withoutOldest } from "./truncation.ts";
import { ResponseWriter, type WriterOptions } from "./writer.ts";

const PATH = "/v1/responses";

/** A response whose request is understood. */
export interface AskedResponse {
  readonly request: ResponsesRequest;
  readonly head: ResponseHead;
  readonly ask: TextAsk;
  /** What it goes on from, oldest first. */
  readonly earlier: readonly Loose[];
  /** The request's own input, each item with an id of ours. */
  readonly input: readonly Loose[];
  readonly tools: AskedConversation["tools"];
}

/** A response whose call can begin. */
export interface PreparedResponse extends AskedResponse {
  readonly call: PreparedCall;
}

/** Reads a request up to where an engine is asked. Throws GatewayErrors; the scope stays open. See `readRequest` for `before`. */
export async function prepareResponse(
  request: ResponsesRequest,
  context: ServerContext,
  scope: RequestScope,
  before?: readonly Loose[],
): Promise<PreparedResponse> {
  const asked = await askedResponse(request, context, scope, before);
  return { ...asked, call: await fittingCall(asked.ask, request, context, scope) };
}

/** The same up to where the prompt is made. */
export async function askedResponse(
  request: ResponsesRequest,
  context: ServerContext,
  scope: RequestScope,
  before?: readonly Loose[],
): Promise<AskedResponse> {
  checkRequest(request);
  const model = context.fleet.model(request.model);
  const { asked, earlier, items, kept } = await readRequest(request, context, scope, before);
  if (asked.left.size > 0)
    context.log.debug("parts of a request for a response were left out", { request: scope.id, types: [...asked.left] });
  const stores = context.history !== null && request.store !== false;
  const fields = requestFields(request, { sampling: model.entry.defaultSampling });
  return {
    request,
    head: { id: newId("resp_"), createdAt: now(), fields: { ...fields, store: stores } },
    ask: textAsk(request, asked, isFollowed(request)),
    earlier,
    input: await inTurns(inputItemsSteps(typeof items === "string" ? items : [...items], kept)),
    tools: asked.tools,
  };
}

/** Events are told as they come, now or to whoever asks for them later. */
const isFollowed = ({ stream, background }: ResponsesRequest): boolean => stream === true || background === true;

const now = (): number => Math.floor(Date.now() / 1000);

/** Characters of a token: of no text are they so many on the whole. */
const MOST_PER_TOKEN = 16;

/** With `truncation: "auto"` the oldest messages go until the prompt fits. */
async function fittingCall(
  ask: TextAsk,
  { truncation, max_output_tokens: answer }: ResponsesRequest,
  context: ServerContext,
  scope: RequestScope,
): Promise<PreparedCall> {
  let { conversation } = ask;
  if (truncation === "auto") {
    // what can't fit by far is not rendered first
    const { contextLength } = context.fleet.model(ask.model).entry;
    const most = contextLength > 0 ? Math.min(contextLength * MOST_PER_TOKEN, MAX_TEXT) : MAX_TEXT;
    conversation = { ...conversation, messages: withinCharacters(conversation.messages, most) };
  }
  for (;;) {
    try {
      return await prepareCall({ ...ask, conversation }, context, scope);
    } catch (error) {
      if (truncation !== "auto" || !(error instanceof ContextLengthError)) throw error;
      const messages = withoutOldest(conversation.messages, shareToDrop(error, answer ?? undefined));
      if (messages === undefined) throw error;
      conversation = { ...conversation, messages };
    }
  }
}

/** Which part of the prompt is too much, if the answer is to have room: what was asked for, within reason, else an eighth of the context. */
function shareToDrop({ tokens, limit }: ContextLengthError, answer: number | undefined): number {
  if (tokens === undefined || limit === undefined || tokens <= 0) return 0.25;
  const room = Math.min(answer ?? limit / 8, limit / 4);
  return Math.min(Math.max(1 - (limit - room) / tokens, 0.02), 0.9);
}

/**
 * The same, but that its call becomes one of another model where the first has no worker that can (see `fallbacks` of model cards). For
 * responses that clients have been told of when their calls begin.
 */
export function withOtherModels(
  prepared: PreparedResponse,
  context: ServerContext,
  scope: RequestScope,
): PreparedResponse {
  const { request, ask, call } = prepared;
  const prepare = (its: ServerContext) => fittingCall(ask, request, its, scope);
  return { ...prepared, call: callWithFallback(call, request.model, context, prepare) };
}

export interface RunOptions {
  /** It has waited for its turn in the background. */
  readonly wasQueued?: boolean;
  /** Keeps the final state, in the place of a new row in the store. */
  readonly save?: (kept: KeptResponse) => Promise<void>;
}

/** The writer of a prepared response. */
export function responseWriter(
  { request, head, call, input, tools }: PreparedResponse,
  out: EventWriter | undefined,
  context: ServerContext,
  scope: RequestScope,
  { wasQueued, save }: RunOptions = {},
): ResponseWriter {
  const { tenant } = scope;
  const { sealer, log, history } = context;
  const store = history !== null && head.fields["store"] === true ? responseStore(history) : undefined;
  const keep = save ?? (store && ((kept: KeptResponse) => store.save(kept, tenant)));
  const seals = request.include?.includes("reasoning.encrypted_content") === true;
  const asIds = request.return_tokens_as_token_ids === true;
  const options: WriterOptions = {
    head,
    origin: tools.origin,
    asSummary: summaryOf(request),
    seal: seals ? (text) => sealer.seal(tenant, text) : undefined,
    logprobs: wantsLogprobs(request) ? (entries) => chatLogprobs(entries, call.model.tokenizer, asIds) : undefined,
    save: keep && ((object) => keep({ request, object, input })),
    onLost: (error) =>
      error instanceof RunOverError
        ? log.debug("a response has ended elsewhere", { request: scope.id })
        : log.error("a response could not be stored", { request: scope.id, error }),
    ...(wasQueued !== undefined && { wasQueued }),
  };
  return new ResponseWriter(options, out);
}

const summaryOf = ({ reasoning }: ResponsesRequest): boolean =>
  Boolean(reasoning?.summary ?? reasoning?.generate_summary);

/**
 * Runs a prepared response to its stored end and gives its final object; events go to `out`, if there is one. Rejects only with the
 * error of a call that failed before its first event: later ones are told in the events and the object. The scope stays open.
 */
export async function runResponse(
  prepared: PreparedResponse,
  out: EventWriter | undefined,
  context: ServerContext,
  scope: RequestScope,
  options: RunOptions = {},
): Promise<Loose> {
  const writer = responseWriter(prepared, out, context, scope, options);
  if (out !== undefined && options.wasQueued === true) writer.begun();
  await prepared.call.run(writerSink(writer, prepared.call), scope.signal).done;
  await writer.settled;
  if (writer.error !== undefined && !writer.started) throw writer.error;
  return writer.object();
}

/** Answers a request by events, and gives the final object. See `prepareResponse` and `runResponse`. */
export async function createResponse(
  request: ResponsesRequest,
  out: EventWriter | undefined,
  context: ServerContext,
  scope: RequestScope,
): Promise<Loose> {
  return runResponse(await prepareResponse(request, context, scope), out, context, scope);
}

/** Answers a validated request that is not to run in the background. Throws GatewayErrors; the scope is finished when the answer is complete. */
export async function handleResponses(
  request: ResponsesRequest,
  context: ServerContext,
  scope: RequestScope,
): Promise<Response> {
  try {
    const prepared = await prepareResponse(request, context, scope);
    const headers = idHeaders("openai", scope.id);
    if (request.stream === true) {
      return await streamAnswer(
        prepared.call,
        (out, first) => {
          const writer = responseWriter(prepared, new ServerSentEvents(out), context, scope);
          return writerStreamSink(writer, prepared.call, first);
        },
        { path: PATH, headers },
        context,
        scope,
      );
    }
    const writer = responseWriter(prepared, undefined, context, scope);
    await collectAnswer(prepared.call, writerSink(writer, prepared.call), scope);
    await writer.settled;
    if (writer.error !== undefined) throw writer.error;
    scope.finish();
    return Response.json(writer.object(), { headers });
  } catch (error) {
    scope.finish();
    throw error;
  }
}
