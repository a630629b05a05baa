/**
 * What the types of @google/genai 3.3 and the schemas of @ai-sdk/google 4.0 say of Interactions: each object and event by its members, and
 * the order of events as a state machine. Every object is closed: a member that is not named here is a mistake.
 */
import { type Static, type TSchema, Type as t } from "@sinclair/typebox";
import { Value } from "@sinclair/typebox/value";

const closed = <P extends Record<string, TSchema>>(properties: P) =>
  t.Object(properties, { additionalProperties: false });
const count = t.Integer({ minimum: 0 });
const time = t.String({ pattern: "^\\d{4}-\\d\\d-\\d\\dT\\d\\d:\\d\\d:\\d\\d\\.\\d{3}Z$" });
const words = (...literals: string[]) => t.Union(literals.map((each) => t.Literal(each)));
const anyObject = t.Object({}, { additionalProperties: true });

const textContent = closed({ type: t.Literal("text"), text: t.String() });
const signature = t.String({ pattern: "^(s1|e1)\\.[\\w-]+$" });
export const modelOutput = closed({
  type: t.Literal("model_output"),
  content: t.Array(textContent, { minItems: 1, maxItems: 1 }),
});
export const thought = closed({
  type: t.Literal("thought"),
  signature,
  summary: t.Array(textContent, { maxItems: 1 }),
});
export const functionCall = closed({
  type: t.Literal("function_call"),
  id: t.String({ minLength: 1 }),
  name: t.String({ minLength: 1 }),
  arguments: anyObject,
});
const step = t.Union([modelOutput, thought, functionCall]);
export type Step = Static<typeof step>;

const byModality = t.Array(closed({ modality: t.Literal("text"), tokens: t.Integer({ minimum: 1 }) }), { maxItems: 1 });
const usage = closed({
  total_input_tokens: t.Integer({ minimum: 1 }),
  input_tokens_by_modality: byModality,
  total_cached_tokens: count,
  cached_tokens_by_modality: byModality,
  total_output_tokens: count,
  output_tokens_by_modality: byModality,
  total_tool_use_tokens: t.Literal(0),
  tool_use_tokens_by_modality: byModality,
  total_thought_tokens: count,
  total_tokens: t.Integer({ minimum: 1 }),
});
const failure = closed({ code: t.String({ pattern: "^[A-Z_]+$" }), message: t.String({ minLength: 1 }) });

const always = {
  id: t.String({ pattern: "^(int_[0-9a-f]{50})?$" }),
  object: t.Literal("interaction"),
  status: words("in_progress", "requires_action", "completed", "failed", "cancelled", "incomplete"),
  model: t.String({ minLength: 1 }),
  created: time,
  updated: time,
  service_tier: t.String({ minLength: 1 }),
  usage: t.Optional(usage),
  errors: t.Optional(t.Array(failure, { minItems: 1, maxItems: 1 })),
};

/** In events. */
const partial = closed(always);

export const interaction = closed({
  ...always,
  steps: t.Array(step),
  // what is repeated of the request
  system_instruction: t.Optional(t.String()),
  tools: t.Optional(t.Array(anyObject)),
  generation_config: t.Optional(anyObject),
  response_format: t.Optional(t.Union([anyObject, t.Array(anyObject)])),
  response_mime_type: t.Optional(t.String()),
  response_modalities: t.Optional(t.Array(t.String())),
  previous_interaction_id: t.Optional(t.String()),
  labels: t.Optional(anyObject),
  // only with include_input
  input: t.Optional(t.Array(t.Object({ type: t.String() }, { additionalProperties: true }), { minItems: 1 })),
});
export type Interaction = Static<typeof interaction>;

export const googleError = closed({
  error: closed({
    code: t.Integer({ minimum: 400, maximum: 599 }),
    status: t.String({ pattern: "^[A-Z_]+$" }),
    message: t.String(),
  }),
});

const index = count;
const event_id = t.String({ pattern: "^\\d+\\.(\\d+|end)\\.\\d+$" });
const event = <P extends Record<string, TSchema>>(type: string, members: P) =>
  closed({ event_type: t.Literal(type), ...members, event_id });

const openStep = t.Union([
  closed({ type: t.Literal("model_output"), content: t.Array(t.Never(), { maxItems: 0 }) }),
  closed({ type: t.Literal("thought"), summary: t.Array(t.Never(), { maxItems: 0 }) }),
  closed({
    type: t.Literal("function_call"),
    id: t.String({ minLength: 1 }),
    name: t.String({ minLength: 1 }),
    arguments: closed({}),
  }),
]);
const someText = t.String({ minLength: 1 });
const delta = t.Union([
  closed({ type: t.Literal("text"), text: someText }),
  closed({ type: t.Literal("thought_summary"), content: closed({ type: t.Literal("text"), text: someText }) }),
  closed({ type: t.Literal("thought_signature"), signature }),
  closed({ type: t.Literal("arguments_delta"), arguments: someText }),
]);

const created = event("interaction.created", { interaction: partial });
const completed = event("interaction.completed", { interaction: partial });
const start = event("step.start", { index, step: openStep });
const change = event("step.delta", { index, delta });
const stop = event("step.stop", { index });
const error = event("error", { error: failure });
const EVENTS: Readonly<Record<string, TSchema>> = {
  "interaction.created": created,
  "interaction.completed": completed,
  "step.start": start,
  "step.delta": change,
  "step.stop": stop,
  error,
};
export type InteractionEvent =
  | (Static<typeof created> & { event_type: "interaction.created" })
  | (Static<typeof completed> & { event_type: "interaction.completed" })
  | (Static<typeof start> & { event_type: "step.start" })
  | (Static<typeof change> & { event_type: "step.delta" })
  | (Static<typeof stop> & { event_type: "step.stop" })
  | (Static<typeof error> & { event_type: "error" });

/** Throws where a value is not of its schema. */
export function check(schema: TSchema, value: unknown, what: string): void {
  const problem = Value.Errors(schema, value).First();
  if (problem !== undefined)
    throw new Error(`${what}: ${problem.message} at ${problem.path || "/"}: ${JSON.stringify(value).slice(0, 2000)}`);
}

/** An interaction, with what its members say of each other. */
export function checkInteraction(value: unknown): Interaction {
  check(interaction, value, "interaction");
  const found = value as Interaction;
  checkPartial(found);
  const calls = found.steps.some(({ type }) => type === "function_call");
  if (found.status === "requires_action" && !calls) throw new Error("requires_action without a call");
  if (found.status === "completed" && calls) throw new Error("completed with a call");
  return found;
}

function checkPartial({ status, usage: used, errors }: Static<typeof partial>): void {
  const isWhole = ["completed", "requires_action", "incomplete"].includes(status);
  if (["completed", "requires_action"].includes(status) && used === undefined)
    throw new Error(`${status} without usage`);
  if (status === "in_progress" && used !== undefined) throw new Error("usage before the end");
  if ((errors !== undefined) !== (status === "failed")) throw new Error(`errors in the status ${status}`);
  if (isWhole && used !== undefined) {
    const sum = used.total_input_tokens + used.total_output_tokens + used.total_thought_tokens;
    if (sum !== used.total_tokens) throw new Error(`${sum} tokens are ${used.total_tokens}`);
  }
}

/** Frames of a stream as text. Throws where an event is not `event: TYPE`, `data: JSON` with the same type, and an empty line. */
export function readEvents(text: string): { readonly events: InteractionEvent[]; readonly done: boolean } {
  const frames = text.split("\n\n");
  if (frames.pop() !== "") throw new Error("the last frame does not end");
  const events: InteractionEvent[] = [];
  let done = false;
  for (const frame of frames) {
    if (frame.startsWith(":")) continue;
    if (done) throw new Error(`a frame after [DONE]: ${frame}`);
    if (frame === "data: [DONE]") {
      done = true;
      continue;
    }
    const found = /^event: (\S+)\ndata: (.+)$/.exec(frame);
    if (found === null) throw new Error(`not an event: ${frame}`);
    const value = JSON.parse(found[2]!) as InteractionEvent;
    if (value.event_type !== found[1]) throw new Error(`event: ${found[1]} is of the type ${value.event_type}`);
    events.push(value);
  }
  return { events, done };
}

interface Open {
  readonly first: Static<typeof openStep>;
  text: string;
  signature?: string;
}

/** What a stream has told. */
export interface Told {
  readonly last: Static<typeof partial>;
  readonly steps: readonly Step[];
}

const DELTA_OF = { model_output: "text", thought: "thought_summary", function_call: "arguments_delta" } as const;

/** Of a call that broke off before the model went on, the object has empty arguments. */
function argumentsOf(text: string): object {
  try {
    return JSON.parse(text || "{}") as object;
  } catch {
    return {};
  }
}

/** Reads the events of an interaction in their order; each `next` throws at the first that may not come there. */
export class InteractionOrder {
  private sequence = 0;
  private state: "start" | "running" | "error" | "over" = "start";
  private id = "";
  private open: Open | undefined;
  private readonly steps: Step[] = [];
  private last: Static<typeof partial> | undefined;

  next(value: InteractionEvent): void {
    const schema = EVENTS[value.event_type];
    if (schema === undefined) this.wrong(value, "unknown type");
    check(schema, value, value.event_type);
    const [sequence, at] = value.event_id.split(".");
    if (Number(sequence) !== this.sequence++) this.wrong(value, `number ${this.sequence - 1} was due`);
    switch (value.event_type) {
      case "interaction.created":
        if (this.state !== "start" || value.interaction.status !== "in_progress") this.wrong(value, "not now");
        checkPartial(value.interaction);
        this.id = value.interaction.id;
        this.state = "running";
        return;
      case "interaction.completed":
        this.completed(value, value.interaction);
        return;
      case "error":
        if (this.state !== "running") this.wrong(value, "not now");
        this.cutOpen(value);
        this.state = "error";
        return;
      case "step.start":
        if (this.state !== "running" || this.open !== undefined || value.index !== this.steps.length)
          this.wrong(value, "not now");
        this.open = { first: value.step, text: "" };
        return;
      default: {
        const { open } = this;
        if (this.state !== "running" || open === undefined || value.index !== this.steps.length)
          this.wrong(value, "no such step is open");
        if (value.event_type === "step.stop") this.stop(value, open);
        else if (Number(at) !== value.index) this.wrong(value, "its id is of another step");
        else this.change(value, open, value.delta);
      }
    }
  }

  /** The stream has ended. */
  end(): Told {
    if (this.state !== "over" || this.last === undefined) throw new Error(`the stream ends in the state ${this.state}`);
    return { last: this.last, steps: this.steps };
  }

  private wrong(value: InteractionEvent, why: string): never {
    throw new Error(`${value.event_type} in ${this.state}: ${why}: ${JSON.stringify(value)}`);
  }

  /** Only a call may be left open, where the answer was cut. */
  private cutOpen(value: InteractionEvent): void {
    if (this.open !== undefined && this.open.first.type !== "function_call") this.wrong(value, "a step is open");
    this.open = undefined;
  }

  private completed(value: InteractionEvent, body: Static<typeof partial>): void {
    if (this.open !== undefined && !["incomplete", "failed", "cancelled"].includes(body.status))
      this.wrong(value, "a step is open");
    this.cutOpen(value);
    if (this.state !== (body.status === "failed" ? "error" : "running")) this.wrong(value, "not now");
    if (body.id !== this.id) this.wrong(value, "the id has changed");
    if (body.status === "in_progress") this.wrong(value, "status");
    checkPartial(body);
    this.last = body;
    this.state = "over";
  }

  private change(value: InteractionEvent, open: Open, { type, ...members }: Static<typeof delta>): void {
    if (open.signature !== undefined) this.wrong(value, "behind the signature");
    if (type === "thought_signature") {
      if (open.first.type !== "thought") this.wrong(value, "not of a thought");
      open.signature = (members as { signature: string }).signature;
      return;
    }
    if (type !== DELTA_OF[open.first.type]) this.wrong(value, "not of such a step");
    const told = members as { text?: string; content?: { text: string }; arguments?: string };
    open.text += told.text ?? told.content?.text ?? told.arguments ?? "";
  }

  private stop(value: InteractionEvent, { first, text, signature: signed }: Open): void {
    if (first.type === "thought") {
      if (signed === undefined) this.wrong(value, "a thought without a signature");
      this.steps.push({ type: "thought", signature: signed, summary: text === "" ? [] : [{ type: "text", text }] });
    } else if (first.type === "model_output") this.steps.push({ ...first, content: [{ type: "text", text }] });
    else this.steps.push({ ...first, arguments: argumentsOf(text) });
    this.open = undefined;
  }
}

/** Checks all events of one interaction. */
export function checkEvents(events: readonly InteractionEvent[]): Told {
  const order = new InteractionOrder();
  for (const each of events) order.next(each);
  return order.end();
}
