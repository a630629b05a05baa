/** One connection of the WebSocket transport of Responses: many responses, one after the other or side by side in lanes. */
import {
  ClientClosedError,
  type GatewayError,
  gatewayError,
  InvalidRequestError,
  OverloadedError,
  ShuttingDownError,
} from "../../errors.ts";
import type { RunningGeneration } from "../../generation/run.ts";
import type { ServerContext } from "../../server/context.ts";
import { logFailure } from "../../server/log-failure.ts";
import type { RequestScope } from "../../server/request-scope.ts";
import { drawError } from "../errors.ts";
import { type OpenAiError, openAiError } from "../openai/errors.ts";
import {
  type AskedResponse,
  askedResponse,
  type PreparedResponse,
  prepareResponse,
  runResponse,
  withOtherModels,
} from "../responses/create.ts";
import { responseObject, usageOf } from "../responses/object.ts";
import type { Loose, ResponsesRequest } from "../responses/schema.ts";
import { responseStore } from "../responses/state.ts";
import { countPrompt, withRun } from "../shared/call.ts";
import type { EventWriter } from "../shared/events.ts";
import { withFallback } from "../shared/fallback.ts";
import { routeHints } from "../shared/route-hints.ts";
import { type CreateEvent, clientEvent, laneOf } from "./client-events.ts";
import { Inbox } from "./inbox.ts";
import { ResponseMemory } from "./memory.ts";
import { Steering } from "./steering.ts";

/** Where a connection's messages go. */
export interface SocketWriter {
  /** Sends messages, in one write if possible. */
  send(messages: readonly string[]): void;
}

export interface SessionIdentity {
  readonly id: string;
  readonly tenant: string;
  /** Of the request that opened the connection. */
  readonly headers: Headers;
}

const PATH = "/v1/responses (WebSocket)";
/** Requests of a connection that wait or run. */
const MOST_REQUESTS = 64;

export class ResponsesSession {
  private readonly closing = new AbortController();
  private readonly inbox = new Inbox(
    this.closing.signal,
    (read) => this.take(read),
    () => this.idle && this.onIdle(),
  );
  private readonly memory = new ResponseMemory();
  private readonly lanes = new Map<string | undefined, Promise<void>>();
  private readonly steering = new Steering((event, lane) => this.tell(event, lane));
  private readonly generations = new Set<RunningGeneration>();
  private requests = 0;
  private paused = false;

  /** `onIdle` is called when the last response is over. */
  constructor(
    private readonly identity: SessionIdentity,
    private readonly out: SocketWriter,
    private readonly context: ServerContext,
    private readonly onIdle: () => void,
  ) {}

  /** Nothing is being worked on. */
  get idle(): boolean {
    return this.requests === 0 && this.inbox.isEmpty;
  }

  /** A message of the client. Failures are told as `error` events. */
  message(text: string): void {
    this.inbox.add(text);
  }

  private take(read: () => Loose): void {
    let lane: string | undefined;
    try {
      const message = read();
      lane = laneOf(message);
      const event = clientEvent(message);
      if (event.type === "response.steer") {
        this.steering.steer(event);
        return;
      }
      if (this.context.draining()) throw new ShuttingDownError();
      if (this.requests >= MOST_REQUESTS) throw new OverloadedError("Too many requests wait on this connection");
      this.queue(event);
    } catch (error) {
      const failure = gatewayError(error);
      logFailure(this.context.log, this.identity.id, PATH, failure);
      this.failed(failure, lane);
    }
  }

  /** The client reads too slowly, or reads again. */
  pause(): void {
    this.paused = true;
    for (const generation of this.generations) generation.pause();
  }
  resume(): void {
    this.paused = false;
    for (const generation of this.generations) generation.resume();
  }

  /** The client has gone: work for it ends. */
  close(): void {
    this.closing.abort();
  }

  private queue(event: CreateEvent): void {
    const { lane } = event;
    this.requests++;
    const work = (this.lanes.get(lane) ?? Promise.resolve())
      .then(() => this.create(event))
      .catch((error: unknown) => this.context.log.error("a request over a WebSocket failed", { error }));
    this.lanes.set(lane, work);
    void work.finally(() => {
      if (this.lanes.get(lane) === work) this.lanes.delete(lane);
      this.requests--;
      if (this.idle) this.onIdle();
    });
  }

  /** Answers a request, and those that steering makes of it. */
  private async create({ lane, generates, request }: CreateEvent): Promise<void> {
    const parent = request.previous_response_id ?? "";
    const said = this.steering.said(parent);
    if (said.length > 0) request.input = [...said, ...itemsOf(request.input)];
    let next = await this.answer(request, lane, generates, (failure) => {
      this.steering.settle(parent, lane, failure?.message);
      if (failure !== undefined) this.failed(failure, lane);
    });
    while (next !== undefined) {
      const steered = next.previous_response_id ?? "";
      next = await this.answer(next, lane, true, (failure) => this.steering.settle(steered, lane, failure?.message));
    }
  }

  /** `made` is told that the response has begun, or why it could not. Gives the request that steering makes of it. */
  private async answer(
    request: ResponsesRequest,
    lane: string | undefined,
    generates: boolean,
    made: (failure?: GatewayError) => void,
  ): Promise<ResponsesRequest | undefined> {
    if (this.closing.signal.aborted) return undefined;
    const { context } = this;
    const id = `${this.identity.id}-${crypto.randomUUID().slice(0, 8)}`;
    const scope = context.scopes.begin(id, this.closing.signal, this.identity.tenant);
    scope.route = { hints: routeHints(this.identity.headers, request) };
    let active: { id: string; lane: string | undefined; request: ResponsesRequest } | undefined;
    let object: Loose | undefined;
    try {
      await context.admission?.enter(scope);
      const before = this.memory.items(request.previous_response_id ?? "");
      const [asked, work] = generates
        ? await this.toRun(request, scope, before)
        : await this.toPrepare(request, scope, before);
      scope.signal.throwIfAborted();
      active = { id: asked.head.id, lane, request };
      made();
      this.steering.begin(active);
      object = await work(this.writer(lane));
      const output = object["output"] as readonly Loose[];
      if (object["status"] !== "failed") this.memory.keep(active.id, [...asked.earlier, ...asked.input, ...output]);
    } catch (error) {
      const failure = gatewayError(error);
      logFailure(context.log, id, PATH, failure);
      if (active === undefined) made(failure);
      else this.failed(failure, lane);
    } finally {
      scope.finish();
    }
    return active && this.steering.end(active, object);
  }

  /** What is asked, and what answers it. */
  private async toRun(request: ResponsesRequest, scope: RequestScope, before?: readonly Loose[]): Promise<Work> {
    const prepared = await withFallback(
      { endpoint: "responses", model: request.model, isStream: true },
      this.context,
      scope,
      (its, part) => prepareResponse(request, its, part, before),
    );
    return [prepared, (out) => this.run(prepared, out, scope)];
  }

  /** The same for a request without an answer. */
  private async toPrepare(request: ResponsesRequest, scope: RequestScope, before?: readonly Loose[]): Promise<Work> {
    const asked = await askedResponse(request, this.context, scope, before);
    const tokens = await promptTokens(asked, this.context, scope);
    return [asked, (out) => this.prepareOnly(asked, tokens, out, scope)];
  }

  private async run(prepared: PreparedResponse, out: EventWriter, scope: RequestScope): Promise<Loose> {
    let running: RunningGeneration | undefined;
    const { call } = withOtherModels(prepared, this.context, scope);
    try {
      const watched: PreparedResponse = {
        ...prepared,
        call: withRun(call, (sink, signal) => {
          running = call.run(sink, signal);
          this.generations.add(running);
          if (this.paused) running.pause();
          return running;
        }),
      };
      return await runResponse(watched, out, this.context, scope);
    } finally {
      if (running !== undefined) this.generations.delete(running);
    }
  }

  /** A response without output, whose prompt the gateway has seen. */
  private async prepareOnly(
    { request, head, input }: AskedResponse,
    promptTokens: number,
    out: EventWriter,
    { tenant }: RequestScope,
  ): Promise<Loose> {
    const counts = { promptTokens, cachedTokens: 0, completionTokens: 0, reasoningTokens: 0 };
    const usage = usageOf({ ...counts, reason: "stop", matchedStop: undefined, isClamped: false });
    const running = responseObject(head, { status: "in_progress", output: [] });
    const object = responseObject(head, { status: "completed", output: [], usage, completedAt: head.createdAt });
    const { history } = this.context;
    if (head.fields["store"] === true && history !== null)
      await responseStore(history).save({ request, object, input }, tenant);
    for (const [sequence, [name, response]] of [
      ["created", running] as const,
      ["in_progress", running] as const,
      ["completed", object] as const,
    ].entries()) {
      const type = `response.${name}`;
      out.event(type, JSON.stringify({ type, response, sequence_number: sequence }), sequence);
    }
    out.end();
    return object;
  }

  private writer(lane: string | undefined): EventWriter {
    let waiting: string[] = [];
    const tail = laneTail(lane);
    const flush = (): void => {
      if (waiting.length === 0) return;
      const messages = waiting;
      waiting = [];
      this.out.send(messages);
    };
    return {
      event: (_type, json) => {
        waiting.push(tail === "" ? json : `${json.slice(0, -1)}${tail}}`);
      },
      flush,
      end: flush,
      cut() {},
    };
  }

  private tell(event: Loose, lane: string | undefined): void {
    this.out.send([`${JSON.stringify(event).slice(0, -1)}${laneTail(lane)}}`]);
  }

  private failed(failure: GatewayError, lane: string | undefined): void {
    if (failure instanceof ClientClosedError) return;
    const { status, headers } = drawError("openai", failure, this.identity.id);
    const { error }: OpenAiError = openAiError(failure);
    this.tell({ type: "error", status, error: { ...error, headers } }, lane);
  }
}

type Work = readonly [asked: AskedResponse, work: (out: EventWriter) => Promise<Loose>];

/** Tokens of the prompt so far: 0 where the template, as Llama's, takes nothing before the user has spoken, and the user has not. */
async function promptTokens({ ask }: AskedResponse, context: ServerContext, scope: RequestScope): Promise<number> {
  try {
    return await countPrompt(ask, context, scope);
  } catch (error) {
    const hasUser = ask.conversation.messages.some(({ role }) => role === "user");
    if (hasUser || !(error instanceof InvalidRequestError)) throw error;
    return 0;
  }
}

const laneTail = (lane: string | undefined): string =>
  lane === undefined ? "" : `,"stream_id":${JSON.stringify(lane)}`;

const itemsOf = (input: ResponsesRequest["input"]): Loose[] =>
  typeof input === "string" ? [{ type: "message", role: "user", content: input }] : [...(input ?? [])];
