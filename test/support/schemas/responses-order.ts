/** The order of the events of a response (OpenResponses), as a state machine. */
import {
  check,
  checkResponse,
  eventSchemas,
  type ResponseBody,
  type ResponseEvent,
  type ResponseItem,
} from "./responses.ts";

/** Frames of a stream as text. Throws where an event is not `event: TYPE`, `data: JSON` with the same type, and an empty line. */
export function readEvents(text: string): { readonly events: ResponseEvent[]; readonly done: boolean } {
  const frames = text.split("\n\n");
  if (frames.pop() !== "") throw new Error("the last frame does not end");
  const events: ResponseEvent[] = [];
  let done = false;
  for (const frame of frames) {
    if (frame.startsWith(":")) continue;
    if (done) throw new Error(`a frame after [DONE]: ${frame}`);
    if (frame === "data: [DONE]") {
      done = true;
      continue;
    }
    const found = /^event: (\S+)\ndata: ([^\r\n]+)$/.exec(frame);
    if (found === null) throw new Error(`not an event: ${frame}`);
    const value = JSON.parse(found[2]!) as ResponseEvent;
    if (value.type !== found[1]) throw new Error(`event: ${found[1]} is of the type ${value.type}`);
    events.push(value);
  }
  return { events, done };
}

/** How the text of an item comes: its deltas, its end, and the member that has it then. */
interface TextForm {
  readonly name: string;
  readonly member: "text" | "arguments" | "input";
  readonly part?: "content_part" | "reasoning_summary_part";
}
const FORMS: Readonly<Record<string, TextForm>> = {
  message: { name: "output_text", member: "text", part: "content_part" },
  reasoning: { name: "reasoning_text", member: "text", part: "content_part" },
  summary: { name: "reasoning_summary_text", member: "text", part: "reasoning_summary_part" },
  function_call: { name: "function_call_arguments", member: "arguments" },
  custom_tool_call: { name: "custom_tool_call_input", member: "input" },
};

interface OpenItem {
  readonly first: ResponseItem;
  readonly form: TextForm;
  state: "added" | "part" | "text" | "told" | "part_done";
  text: string;
  logprobs: unknown[];
}

/** Reads the events of a response in their order; each `next` throws at the first that may not come there. */
export class ResponseOrder {
  private sequence = 0;
  private state: "start" | "created" | "queued" | "running" | "error" | "over" = "start";
  private id = "";
  private open: OpenItem | undefined;
  private readonly items: ResponseItem[] = [];
  /** The object of the last event. */
  final: ResponseBody | undefined;

  next(value: ResponseEvent): void {
    const schema = eventSchemas[value.type];
    if (schema === undefined) this.wrong(value, "unknown type");
    check(schema, value, value.type);
    if (value.sequence_number !== this.sequence++) this.wrong(value, `number ${this.sequence - 1} was due`);
    if (value.response !== undefined) this.lifecycle(value, value.response);
    else if (value.type === "error") this.error(value);
    else this.itemEvent(value);
  }

  /** The stream has ended. */
  end(): ResponseBody {
    if (this.state !== "over" || this.final === undefined)
      throw new Error(`the stream ends in the state ${this.state}`);
    return this.final;
  }

  private wrong(value: ResponseEvent, why: string): never {
    throw new Error(
      `${value.type} in ${this.state}/${this.open?.state ?? "no item"}: ${why}: ${JSON.stringify(value)}`,
    );
  }

  private lifecycle(value: ResponseEvent, body: ResponseBody): void {
    const name = value.type.slice("response.".length);
    if (this.open !== undefined) this.wrong(value, "an item is open");
    if (this.state !== "start" && body.id !== this.id) this.wrong(value, "the id has changed");
    const from: Record<string, readonly string[]> = {
      created: ["start"],
      queued: ["created"],
      in_progress: ["created", "queued"],
      completed: ["running"],
      incomplete: ["running"],
      failed: ["error"],
    };
    if (from[name]?.includes(this.state) !== true) this.wrong(value, "not now");
    this.id = body.id;
    checkResponse(body);
    if (["created", "queued", "in_progress"].includes(name)) {
      if (name !== "created" && body.status !== name) this.wrong(value, "another status");
      if (body.output.length > 0) this.wrong(value, "output before its items");
      this.state = name === "in_progress" ? "running" : (name as "created" | "queued");
      return;
    }
    if (body.status !== name) this.wrong(value, "another status");
    if (!Bun.deepEquals(body.output, this.items)) this.wrong(value, "the items are not those that were told");
    this.final = body;
    this.state = "over";
  }

  private error(value: ResponseEvent): void {
    if (this.state !== "running" || this.open !== undefined) this.wrong(value, "not now");
    this.state = "error";
  }

  private itemEvent(value: ResponseEvent): void {
    if (this.state !== "running") this.wrong(value, "not now");
    if (value.output_index !== this.items.length) this.wrong(value, `the index of the item is ${this.items.length}`);
    if (value.type === "response.output_item.added") {
      if (this.open !== undefined) this.wrong(value, "another item is open");
      this.open = this.added(value, value.item!);
      return;
    }
    const { open } = this;
    if (open === undefined) this.wrong(value, "no item is open");
    if (value.type === "response.output_item.done") this.done(value, open, value.item!);
    else if (value.item_id !== open.first.id) this.wrong(value, "another item's id");
    else this.step(value, this.formed(open, value));
  }

  /** Reasoning is known to be told as a summary by its first part. */
  private formed(open: OpenItem, value: ResponseEvent): OpenItem {
    const isSummary = open.state === "added" && value.type === "response.reasoning_summary_part.added";
    if (!isSummary || open.first.type !== "reasoning") return open;
    this.open = { ...open, form: FORMS["summary"]! };
    return this.open;
  }

  private added(value: ResponseEvent, item: ResponseItem): OpenItem {
    if (item.status !== "in_progress") this.wrong(value, "status");
    for (const member of ["content", "summary"])
      if (item[member] !== undefined && (item[member] as unknown[]).length > 0) this.wrong(value, `${member} is there`);
    for (const member of ["arguments", "input"])
      if (item[member] !== undefined && item[member] !== "") this.wrong(value, `${member} is there`);
    return { first: item, form: FORMS[item.type]!, state: "added", text: "", logprobs: [] };
  }

  private step(value: ResponseEvent, open: OpenItem): void {
    const { name, part, member } = open.form;
    const hasPart = part !== undefined;
    switch (value.type) {
      case `response.${part}.added`:
        if (!hasPart || open.state !== "added" || value.part!.text !== "") this.wrong(value, "not now");
        open.state = "part";
        return;
      case `response.${name}.delta`:
        if (open.state !== (hasPart ? "part" : "added") && open.state !== "text") this.wrong(value, "not now");
        open.state = "text";
        open.text += value.delta;
        open.logprobs.push(...(value.logprobs ?? []));
        return;
      case `response.${name}.done`:
        if (open.state !== (hasPart ? "part" : "added") && open.state !== "text") this.wrong(value, "not now");
        if (value[member] !== open.text) this.wrong(value, `the deltas were ${JSON.stringify(open.text)}`);
        if (value.logprobs !== undefined && !Bun.deepEquals(value.logprobs, open.logprobs))
          this.wrong(value, "other logprobs");
        open.state = "told";
        return;
      case `response.${part}.done`:
        if (open.state !== "told" || value.part!.text !== open.text) this.wrong(value, "not now, or another text");
        open.state = "part_done";
        return;
      default:
        this.wrong(value, `not of an item of the type ${open.first.type}`);
    }
  }

  private done(value: ResponseEvent, { first, form, state, text, logprobs }: OpenItem, item: ResponseItem): void {
    if (state !== (form.part === undefined ? "told" : "part_done")) this.wrong(value, "not now");
    for (const member of ["id", "type", "call_id", "name", "namespace", "role"])
      if (item[member] !== first[member]) this.wrong(value, `${member} has changed`);
    if (item.status === "in_progress") this.wrong(value, "status");
    const parts = (form.part === "reasoning_summary_part" ? item["summary"] : item["content"]) as { text: string }[];
    const said = form.part === undefined ? item[form.member] : parts.map((each) => each.text).join("");
    if (said !== text) this.wrong(value, `the deltas were ${JSON.stringify(text)}`);
    const told =
      form.part === "content_part" && first.type === "message"
        ? (parts[0] as unknown as { logprobs: unknown[] }).logprobs
        : [];
    if (!Bun.deepEquals(told, logprobs)) this.wrong(value, "other logprobs");
    this.items.push(item);
    this.open = undefined;
  }
}

/** Checks all events of one response and gives its final object. */
export function checkEvents(events: readonly ResponseEvent[]): ResponseBody {
  const order = new ResponseOrder();
  for (const each of events) order.next(each);
  return order.end();
}
