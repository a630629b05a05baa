/** What the user says while a response is on its way: it is said to the model once that response is over. */

import { rawBody, rememberText } from "../../server/raw-body.ts";
import type { Loose, ResponsesRequest } from "../responses/schema.ts";
import { newId } from "../shared/ids.ts";
import { type SteerEvent, steeringItems } from "./client-events.ts";

/** A response that is on its way on a connection. */
export interface ActiveResponse {
  readonly id: string;
  readonly lane: string | undefined;
  readonly request: ResponsesRequest;
}

interface Steer {
  readonly id: string;
  readonly input: unknown;
  readonly items: readonly Loose[];
}

const MOST_PENDING = 16;
/** Responses whose end is remembered, for the word that steering them comes too late. */
const MOST_ENDED = 64;

type Tell = (event: Loose, lane: string | undefined) => void;
type ErrorCode =
  | "response_not_found"
  | "invalid_input"
  | "steering_not_supported"
  | "too_many_pending_steers"
  | "response_already_completed"
  | "successor_creation_failed";

type Refusal = readonly [ErrorCode, message: string];
const NOT_OF_USER: Refusal = ["invalid_input", "input must be a text or a list of messages of the user"];

/** The steering of one connection. Its events are numbered on their own. */
export class Steering {
  private readonly active = new Map<string, ActiveResponse>();
  private readonly pending = new Map<string, Steer[]>();
  private readonly ended = new Set<string>();
  private sequence = 0;

  constructor(private readonly tell: Tell) {}

  begin(response: ActiveResponse): void {
    this.active.set(response.id, response);
  }

  /** Takes what the user says, or tells why not. */
  steer(event: SteerEvent): void {
    const response = this.active.get(event.responseId);
    const refusal = this.refusalOf(event, response);
    const items = steeringItems(event.input);
    if (response === undefined || items === undefined || refusal !== undefined) {
      const [code, message] = refusal ?? NOT_OF_USER;
      const steer = { input: event.input, previous_response_id: event.responseId };
      this.fail(steer, code, message, response?.lane);
      return;
    }
    const { id, lane } = response;
    const steer = { id: newId("steer_"), input: event.input, items };
    this.pending.set(id, [...(this.pending.get(id) ?? []), steer]);
    this.event("response.steer.accepted", { steer: { id: steer.id, previous_response_id: id } }, lane);
  }

  private refusalOf({ responseId }: SteerEvent, response: ActiveResponse | undefined): Refusal | undefined {
    if (response === undefined)
      return this.ended.has(responseId)
        ? ["response_already_completed", "The response is over"]
        : ["response_not_found", "There is no such response on this connection"];
    const { conversation } = response.request;
    if (conversation !== undefined && conversation !== null)
      return ["steering_not_supported", "A response of a conversation is not steered"];
    if ((this.pending.get(responseId)?.length ?? 0) >= MOST_PENDING)
      return ["too_many_pending_steers", "Too much waits for the response's end"];
    return undefined;
  }

  /**
   * A response is over. Gives the request that goes on from it with what was said meanwhile; undefined where nothing was, or where results
   * of its calls are needed first: then what was said goes with the client's next request.
   */
  end({ id, lane, request }: ActiveResponse, object: Loose | undefined): ResponsesRequest | undefined {
    this.active.delete(id);
    this.ended.add(id);
    const [oldest] = this.ended;
    if (this.ended.size > MOST_ENDED && oldest !== undefined) this.ended.delete(oldest);
    const waiting = this.pending.get(id);
    if (waiting === undefined) return undefined;
    const status = object?.["status"];
    if (status !== "completed" && status !== "incomplete") {
      this.failAll(id, lane, "The response that was steered has failed");
      return undefined;
    }
    const required = requiredInput(object?.["output"] as readonly Loose[]);
    if (required.length === 0) return this.successor(id, request);
    for (const steer of waiting)
      this.event(
        "response.steer.pending",
        {
          reason: "waiting_for_required_input",
          required_input: required,
          steer: { id: steer.id, previous_response_id: id },
        },
        lane,
      );
    return undefined;
  }

  /** What was said to a response and waits, for the request that goes on from it. */
  said(id: string): Loose[] {
    return (this.pending.get(id) ?? []).flatMap(({ items }) => items);
  }

  /** The request that says it has begun; `failure`: why it could not. Nothing waits any more. */
  settle(id: string, lane: string | undefined, failure: string | undefined): void {
    if (failure !== undefined) this.failAll(id, lane, failure);
    this.pending.delete(id);
  }

  /** With the settings of the request, and its text, which prompts print tools by. */
  private successor(id: string, request: ResponsesRequest): ResponsesRequest {
    const next = { ...request, previous_response_id: id, input: this.said(id) };
    const text = rawBody(request);
    if (text !== undefined) rememberText(next, text);
    return next;
  }

  private failAll(id: string, lane: string | undefined, message: string): void {
    for (const steer of this.pending.get(id) ?? [])
      this.fail(
        { id: steer.id, input: steer.input, previous_response_id: id },
        "successor_creation_failed",
        message,
        lane,
      );
    this.pending.delete(id);
  }

  private fail(steer: Loose, code: ErrorCode, message: string, lane: string | undefined): void {
    this.event("response.steer.failed", { error: { code, message, type: "invalid_request_error" }, steer }, lane);
  }

  private event(type: string, members: Loose, lane: string | undefined): void {
    this.tell({ type, ...members, sequence_number: this.sequence++ }, lane);
  }
}

/** What the results of a response's calls need to say. */
function requiredInput(output: readonly Loose[]): Loose[] {
  return output.flatMap(({ type, call_id, name }) =>
    type === "function_call"
      ? [{ type: "function_call_output", call_id, name }]
      : type === "custom_tool_call"
        ? [{ type: "custom_tool_call_output", call_id }]
        : [],
  );
}
