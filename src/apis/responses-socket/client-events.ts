/** What a client says over the WebSocket of Responses: shapes from OpenAI's published API document. */
import { type Static, Type as t } from "@sinclair/typebox";
import { InvalidRequestError, UnsupportedError } from "../../errors.ts";
import { parseObject, refuseDepth } from "../../server/json-object.ts";
import { rememberText } from "../../server/raw-body.ts";
import { invalidBody, type SchemaProblem } from "../../server/validation.ts";
import { type Loose, type ResponsesRequest, responsesRequest } from "../responses/schema.ts";
import { compiledSchema } from "../shared/compiled-schema.ts";

/** A response is asked for. Those of one lane come one after the other, and their events say which lane it is. */
export interface CreateEvent {
  readonly type: "response.create";
  readonly lane: string | undefined;
  /** False: the model is not asked; the response is only there to be gone on from. */
  readonly generates: boolean;
  readonly request: ResponsesRequest;
}

/** The user says more while a response is on its way. */
export interface SteerEvent {
  readonly type: "response.steer";
  readonly responseId: string;
  /** As it was sent, to be given back. */
  readonly input: unknown;
}

const envelope = t.Object({
  stream_id: t.Optional(t.Union([t.String({ minLength: 1, maxLength: 256 }), t.Null()])),
  generate: t.Optional(t.Union([t.Boolean(), t.Null()])),
});
const isEnvelope = compiledSchema(envelope);
const isRequest = compiledSchema(responsesRequest);

const messages = t.Array(
  t.Object(
    {
      type: t.Optional(t.Literal("message")),
      role: t.Literal("user"),
      content: t.Union([t.String(), t.Array(t.Object({ type: t.String() }), { minItems: 1 })]),
    },
    { additionalProperties: false },
  ),
  { minItems: 1 },
);
const isSteering = compiledSchema(t.Union([t.String({ minLength: 1 }), messages]));

/** The lane that a message names, whatever else is in it: errors are told there. */
export const laneOf = (message: Loose): string | undefined =>
  typeof message["stream_id"] === "string" ? message["stream_id"].slice(0, 256) : undefined;

/** A message as a JSON object. Throws BadJsonError. */
export function parseMessage(text: string): Loose {
  const value = parseObject(text, "The message");
  refuseDepth(value, "The message");
  rememberText(value, text);
  return value as Loose;
}

/** Throws InvalidRequestErrors. */
export function clientEvent(message: Loose): CreateEvent | SteerEvent {
  const { type } = message;
  if (type === "response.create") return createEvent(message);
  if (type === "response.steer")
    return { type, responseId: String(message["previous_response_id"] ?? ""), input: message["input"] };
  throw new InvalidRequestError("type must be response.create or response.steer", { param: "type" });
}

function createEvent(message: Loose): CreateEvent {
  if (!isEnvelope.Check(message)) throw problemOf(isEnvelope.Errors(message));
  const { stream_id, generate } = message as Static<typeof envelope>;
  if (!isRequest.Check(message)) throw problemOf(isRequest.Errors(message));
  const request: ResponsesRequest = message;
  if (request.background === true)
    throw new UnsupportedError("background is not supported over a WebSocket", { param: "background" });
  // the text of the message is known by this very object
  request.stream = true;
  return { type: "response.create", lane: stream_id ?? undefined, generates: generate !== false, request };
}

const problemOf = (problems: Iterable<unknown>): InvalidRequestError =>
  invalidBody(problems as Iterable<SchemaProblem>);

/** What steering says as input items; undefined where it is not of the user alone. */
export function steeringItems(input: unknown): readonly Loose[] | undefined {
  if (!isSteering.Check(input)) return undefined;
  return typeof input === "string" ? [{ type: "message", role: "user", content: input }] : input;
}
