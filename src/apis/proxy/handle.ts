/** Requests for models of HTTP workers: they go on as they came, and so do the answers. */
import { EngineError } from "../../engines/engine.ts";
import type { HttpEndpoint, HttpReply } from "../../engines/http/engine.ts";
import { ClientClosedError, GatewayError, gatewayError } from "../../errors.ts";
import { outcomeOf } from "../../fleet/dispatch/outcome.ts";
import type { HttpLease } from "../../fleet/lease.ts";
import { engineFailure } from "../../generation/engine-failure.ts";
import type { RouteAsk } from "../../routing/ask.ts";
import { BytePump } from "../../server/byte-pump.ts";
import type { ServerContext } from "../../server/context.ts";
import { logFailure } from "../../server/log-failure.ts";
import type { GenerationMeter } from "../../server/request-metrics.ts";
import type { RequestScope } from "../../server/request-scope.ts";
import { openAiError } from "../openai/errors.ts";
import { EventCutter } from "./events.ts";
import { type Forwarded, forward, RefusedError } from "./forward.ts";
import { routeOf, withoutInnerMembers } from "./route.ts";
import { type Usage, UsageScanner, usageOf } from "./usage.ts";

export interface PassedRequest {
  readonly endpoint: HttpEndpoint;
  /** A name of the model, as the client gave it. */
  readonly model: string;
  /** The client's JSON, and what it was read to. */
  readonly text: string;
  readonly body: object;
  readonly isStream: boolean;
  /** The client's. */
  readonly headers: Headers;
  /** By what its worker is chosen, where that is known already. */
  readonly route?: RouteAsk | undefined;
}

/** Of the client's headers those go on that tell who works for whom. Never its key: that is for the gateway. */
const PASSED_ON = ["traceparent", "tracestate", "x-smg-routing-key"];

/**
 * Answers a request by what an HTTP worker answers. Throws GatewayErrors for what is no worker's answer; the scope is finished when the
 * answer is complete.
 */
export async function passOn(request: PassedRequest, context: ServerContext, scope: RequestScope): Promise<Response> {
  try {
    return await (request.isStream ? answerStreamed : answerWhole)(request, context, scope);
  } catch (error) {
    scope.finish();
    if (error instanceof RefusedError && isClientsFault(error)) return refused(error, scope);
    throw failureOf(error, scope);
  }
}

/** An answer that has begun, and who counts it. */
interface Sent extends Forwarded {
  readonly meter: GenerationMeter | undefined;
}

async function send(request: PassedRequest, context: ServerContext, scope: RequestScope): Promise<Sent> {
  const { fleet } = context;
  const { endpoint, model, body, isStream } = request;
  const headers: Record<string, string> = { accept: isStream ? "text/event-stream" : "application/json" };
  for (const name of PASSED_ON) {
    const value = request.headers.get(name);
    if (value !== null) headers[name] = value;
  }
  const meter = scope.meter?.generation(fleet.idOf(model));
  const route = request.route ?? (await routeOf(request, context, scope));
  const text = withoutInnerMembers(request.text, body);
  const { trace } = scope.route ?? {};
  const ask = { endpoint, requestId: scope.id, model, text, headers, route, trace };
  const begun = await forward(ask, fleet, scope.signal);
  meter?.begun();
  return { ...begun, meter };
}

async function answerWhole(request: PassedRequest, context: ServerContext, scope: RequestScope): Promise<Response> {
  return whole(await send(request, context, scope), request, context, scope);
}

/** Nothing is told of an answer before it is there. */
async function whole(
  { lease, reply, first, read, cancel, meter }: Sent,
  request: PassedRequest,
  context: ServerContext,
  scope: RequestScope,
): Promise<Response> {
  const { maxPayloadSize } = context.config;
  const chunks: Uint8Array[] = [];
  try {
    let bytes = 0;
    for (let chunk = first; chunk !== undefined; chunk = await read()) {
      lease.progress();
      chunks.push(chunk);
      bytes += chunk.length;
      if (bytes > maxPayloadSize)
        throw new EngineError("failed", `the engine's answer is larger than ${maxPayloadSize} bytes`);
    }
  } catch (error) {
    cancel();
    lease.done(outcomeOf(error));
    throw error;
  }
  lease.done("ok");
  const body = Buffer.concat(chunks);
  served(request, context, scope, usageOf(body), meter, lease);
  scope.finish();
  const type = reply.headers.get("content-type") ?? "application/json";
  return new Response(body, { status: reply.status, headers: { "content-type": type, "x-request-id": scope.id } });
}

/**
 * Answers by a stream as soon as its first event is there, or a heartbeat is due. An answer that is none (an engine may not stream, and
 * refusals are not streamed) is answered as it is.
 */
async function answerStreamed(request: PassedRequest, context: ServerContext, scope: RequestScope): Promise<Response> {
  const silence = Promise.withResolvers<undefined>();
  const pump = new BytePump({
    heartbeatMs: context.config.sseHeartbeatSecs * 1000,
    onSilent: () => silence.resolve(undefined),
    onClosed: (isLeft) => closed(isLeft),
  });
  let closed = (_isLeft: boolean): void => {};
  const sending = send(request, context, scope);
  let begun: Sent | undefined;
  try {
    begun = await Promise.race([sending, silence.promise]);
  } catch (error) {
    pump.end();
    throw error;
  }
  if (begun !== undefined && !isEvents(begun)) {
    pump.end();
    return whole(begun, request, context, scope);
  }
  closed = (isLeft) => {
    if (isLeft) scope.abort(new ClientClosedError());
    scope.finish();
  };
  void pass(begun ?? sending, pump, request, context, scope);
  return pump.response({ "x-request-id": scope.id });
}

const isEvents = ({ reply }: Forwarded): boolean =>
  reply.headers.get("content-type")?.includes("text/event-stream") === true;

/** Passes the events on as they come and as the client takes them. What fails is told by an event of its own. Never rejects. */
async function pass(
  coming: Sent | Promise<Sent>,
  pump: BytePump,
  request: PassedRequest,
  context: ServerContext,
  scope: RequestScope,
): Promise<void> {
  let begun: Sent | undefined;
  try {
    begun = await coming;
    if (!isEvents(begun)) throw new EngineError("failed", "the engine did not answer by a stream");
    const scanner = new UsageScanner();
    await passEvents(begun, pump, scanner);
    begun.lease.done("ok");
    served(request, context, scope, scanner.usage, begun.meter, begun.lease);
  } catch (error) {
    begun?.cancel();
    begun?.lease.done(scope.signal.aborted ? "neutral" : outcomeOf(error));
    const failure = failureOf(error, scope);
    scope.meter?.failed(failure);
    logFailure(context.log, scope.id, request.endpoint, failure);
    if (failure.status === 499) return pump.cut();
    await pump.write(`data: ${JSON.stringify(openAiError(failure))}\n\n`);
  }
  pump.end();
}

async function passEvents(
  { lease, reply, first, read }: Forwarded,
  pump: BytePump,
  scanner: UsageScanner,
): Promise<void> {
  const cutter = new EventCutter();
  let last: Buffer | undefined;
  for (let chunk = first; chunk !== undefined; chunk = await read()) {
    lease.progress();
    const events = cutter.push(chunk);
    if (events.length === 0) continue;
    scanner.see(events);
    last = events;
    const taken = pump.write(events);
    if (taken === undefined) continue;
    lease.hold(true); // a client that does not read is no fault of the worker's
    await taken;
    lease.hold(false);
  }
  if (isUnframed(reply) && last?.includes("[DONE]") !== true)
    throw new EngineError("unavailable", "the connection was closed in the middle of the stream");
  if (cutter.rest.length > 0) await pump.write(cutter.rest);
}

/** It lasts until the connection is closed: an end says nothing of whether that was all. */
const isUnframed = ({ headers }: HttpReply): boolean =>
  !headers.has("transfer-encoding") && !headers.has("content-length");

function failureOf(error: unknown, { signal }: RequestScope): GatewayError {
  if (signal.aborted) return signal.reason instanceof GatewayError ? signal.reason : new ClientClosedError();
  return error instanceof EngineError ? engineFailure(error) : gatewayError(error);
}

/** What is wrong with a request its client should read as it is. A key that is refused is the gateway's. */
const isClientsFault = ({ kind, status }: RefusedError): boolean =>
  status >= 400 && status < 500 && (kind === "invalid" || kind === "not_found" || kind === "unimplemented");

function refused({ status, contentType, text }: RefusedError, { id }: RequestScope): Response {
  return new Response(text, {
    status,
    headers: { "content-type": contentType ?? "application/json", "x-request-id": id },
  });
}

function served(
  { endpoint, model }: PassedRequest,
  { log }: ServerContext,
  { id, startedAt }: RequestScope,
  usage: Usage | undefined,
  meter: GenerationMeter | undefined,
  lease: HttpLease,
): void {
  if (usage !== undefined) meter?.ended(usage.promptTokens, usage.completionTokens);
  if (usage?.cachedTokens !== undefined) lease.cached(usage.cachedTokens, usage.promptTokens);
  log.debug("request served over HTTP", {
    request: id,
    path: endpoint,
    model,
    ms: Math.round(performance.now() - startedAt),
    ...(usage && { prompt_tokens: usage.promptTokens, completion_tokens: usage.completionTokens }),
  });
}
