/** Output items of a response, and the events that tell of each. Order and members: OpenResponses, and OpenAI's published API document. */
import type { LogprobEntry } from "../../generation/events.ts";
import { newId } from "../shared/ids.ts";
import type { TurnItem } from "../shared/turn.ts";
import type { Loose } from "./schema.ts";
import type { ToolOrigin } from "./tools.ts";

export interface ItemOptions {
  /** The client's name of a tool that the model has called. */
  readonly origin: (modelName: string) => ToolOrigin;
  /** Reasoning is told as its own summary, which is what some clients show; else as it is. */
  readonly asSummary: boolean;
  /** Seals reasoning into `encrypted_content`; undefined: nobody asked for it. */
  readonly seal: ((text: string) => string) | undefined;
  /** Draws logprobs; undefined: nobody asked for them. */
  readonly logprobs: ((entries: readonly LogprobEntry[]) => readonly unknown[]) | undefined;
}

export type ItemStatus = "in_progress" | "completed" | "incomplete";

/** How the text of an item is told: the events of its deltas and of its end, and the member that has the whole text then. */
interface Told {
  readonly prefix: "msg_" | "rs_" | "fc_" | "ctc_";
  readonly delta: string;
  readonly done: string;
  readonly member: string;
  /** The events of the part that the text is in, where the item has parts. */
  readonly part?: {
    readonly added: string;
    readonly done: string;
    readonly index: string;
    /** Member of the item that has the part. */
    readonly list: "content" | "summary";
  };
}

const CONTENT = {
  added: "response.content_part.added",
  done: "response.content_part.done",
  index: "content_index",
  list: "content",
} as const;
const SUMMARY = {
  added: "response.reasoning_summary_part.added",
  done: "response.reasoning_summary_part.done",
  index: "summary_index",
  list: "summary",
} as const;

const told = (prefix: Told["prefix"], event: string, member: string, part?: Told["part"]): Told => ({
  prefix,
  delta: `response.${event}.delta`,
  done: `response.${event}.done`,
  member,
  ...(part && { part }),
});

const MESSAGE = told("msg_", "output_text", "text", CONTENT);
const REASONING = told("rs_", "reasoning_text", "text", CONTENT);
const REASONING_SUMMARY = told("rs_", "reasoning_summary_text", "text", SUMMARY);
const FUNCTION = told("fc_", "function_call_arguments", "arguments");
const CUSTOM = told("ctc_", "custom_tool_call_input", "input");
const TOLD = [MESSAGE, REASONING, REASONING_SUMMARY, FUNCTION, CUSTOM];

function tellingOf(item: TurnItem, { asSummary }: ItemOptions): Told {
  if (item.kind === "text") return MESSAGE;
  if (item.kind === "reasoning") return asSummary ? REASONING_SUMMARY : REASONING;
  return item.callKind === "custom" ? CUSTOM : FUNCTION;
}

/** An event without its number: its type, and its members as JSON text, each with a comma behind it. */
export type ItemEvent = readonly [type: string, members: string];

const json = (value: unknown): string => JSON.stringify(value);

/** The same of an item in its final form. */
function tellingOfFinal({ type, summary }: Loose): Told {
  if (type === "message") return MESSAGE;
  if (type === "reasoning") return (summary as readonly unknown[]).length > 0 ? REASONING_SUMMARY : REASONING;
  return type === "custom_tool_call" ? CUSTOM : FUNCTION;
}

const ADDED = "response.output_item.added";

/**
 * What tells that an item is over. `object` is its final form, `at` its index; `last` is the type of the last event that was told of it, if
 * that is not one of its deltas.
 */
export function closingEvents(object: Loose, at: number, last?: string): ItemEvent[] {
  const { delta, done, member, part } = tellingOfFinal(object);
  const place = `"item_id":${json(object["id"])},"output_index":${at},`;
  const whole: ItemEvent = ["response.output_item.done", `"output_index":${at},"item":${json(object)},`];
  const name = object["type"] === "function_call" ? `"name":${json(object["name"])},` : "";
  let events: ItemEvent[];
  if (part === undefined)
    events = [[ADDED, ""], [delta, ""], [done, `${place}"${member}":${json(object[member])},${name}`], whole];
  else {
    const textPlace = `${place}"${part.index}":0,`;
    const [said = {}] = object[part.list] as readonly Loose[];
    const { logprobs } = said;
    const empty = { ...said, text: "", ...(logprobs !== undefined && { logprobs: [] }) };
    const drawn = logprobs === undefined ? "" : `"logprobs":${json(logprobs)},`;
    events = [
      [ADDED, ""],
      [part.added, `${textPlace}"part":${json(empty)},`],
      [delta, ""],
      [done, `${textPlace}"${member}":${json(said["text"])},${drawn}`],
      [part.done, `${textPlace}"part":${json(said)},`],
      whole,
    ];
  }
  const from = events.findIndex(([type]) => type === (last ?? delta)) + 1;
  return events.slice(from).filter(([type]) => type !== delta);
}

/** Whether an event of this type brings text of an item, or tells reasoning as a summary. */
export const isDelta = (type: string): boolean => TOLD.some(({ delta }) => delta === type);
export const isSummaryEvent = (type: string): boolean =>
  type === SUMMARY.added || type === REASONING_SUMMARY.delta || type === REASONING_SUMMARY.done;

/** The final form of an item that was not ended: `first` as it was told when it began, with the text that came. */
export function finalItem(first: Loose, text: string, asSummary: boolean, logprobs: readonly unknown[]): Loose {
  const item = { ...first, status: "incomplete" satisfies ItemStatus };
  if (first["type"] === "message")
    return {
      ...item,
      content: [{ type: "output_text", text, annotations: [], logprobs: text === "" ? [] : logprobs }],
    };
  if (first["type"] === "reasoning")
    return asSummary
      ? { ...item, summary: [{ type: "summary_text", text }] }
      : { ...item, summary: [], content: [{ type: "reasoning_text", text }] };
  return { ...item, [tellingOfFinal(first).member]: text };
}

/** One item on its way: its id stays the same in all events and in the final object. */
export class OutputItem {
  readonly id: string;
  /** Type of the events of its text, and what of such an event comes before and behind the JSON of the text, but for its number. */
  readonly deltaType: string;
  readonly deltaHead: string;
  readonly deltaTail: string;
  private readonly told: Told;
  /** Members that all its events have. */
  private readonly place: string;
  private readonly textPlace: string;

  constructor(
    private readonly item: TurnItem,
    private readonly options: ItemOptions,
  ) {
    this.told = tellingOf(item, options);
    this.id = newId(this.told.prefix);
    const { part, delta } = this.told;
    this.place = `"item_id":${json(this.id)},"output_index":${item.at},`;
    this.textPlace = part === undefined ? this.place : `${this.place}"${part.index}":0,`;
    this.deltaType = delta;
    this.deltaHead = `{"type":"${delta}",${this.textPlace}"delta":`;
    this.deltaTail = item.kind === "text" ? ',"logprobs":[],"sequence_number":' : ',"sequence_number":';
  }

  /** The event of a piece of text that has logprobs, up to its number. */
  deltaWith(text: string, logprobs: readonly LogprobEntry[]): string {
    const drawn = this.options.logprobs?.(logprobs) ?? [];
    return `${this.deltaHead}${json(text)},"logprobs":${json(drawn)},"sequence_number":`;
  }

  /** What tells that the item is there. */
  opening(): ItemEvent[] {
    const { part } = this.told;
    const added: ItemEvent = [ADDED, this.whole(this.object("in_progress", ""))];
    return part === undefined ? [added] : [added, [part.added, `${this.textPlace}"part":${json(this.partOf(""))},`]];
  }

  /** What tells that it is over; `object` is its final form. */
  closing(object: Loose): ItemEvent[] {
    return closingEvents(object, this.item.at);
  }

  /** The item with the text that it has by now. */
  object(status: ItemStatus, text = this.item.text): Loose {
    const { id, item, options } = this;
    if (item.kind === "text")
      return {
        id,
        type: "message",
        status,
        role: "assistant",
        content: status === "in_progress" ? [] : [this.partOf(text)],
      };
    if (item.kind === "reasoning") return this.reasoning(status, text);
    const { name, namespace } = options.origin(item.name);
    const call = { status, call_id: item.callId, name, ...(namespace !== undefined && { namespace }) };
    return item.callKind === "custom"
      ? { id, type: "custom_tool_call", ...call, input: text }
      : { id, type: "function_call", ...call, arguments: text };
  }

  private reasoning(status: ItemStatus, text: string): Loose {
    const { seal, asSummary } = this.options;
    const item = { id: this.id, type: "reasoning", status };
    if (status === "in_progress") return { ...item, summary: [] };
    const parts = [this.partOf(text)];
    return {
      ...item,
      ...(asSummary ? { summary: parts } : { summary: [], content: parts }),
      ...(seal !== undefined && { encrypted_content: seal(text) }),
    };
  }

  private partOf(text: string): Loose {
    const { item, options } = this;
    if (item.kind !== "text") return { type: options.asSummary ? "summary_text" : "reasoning_text", text };
    return { type: "output_text", text, annotations: [], logprobs: text === "" ? [] : this.drawn() };
  }

  private drawn(): readonly unknown[] {
    const { item, options } = this;
    return item.kind === "text" && item.logprobs.length > 0 ? (options.logprobs?.(item.logprobs) ?? []) : [];
  }

  private whole(object: Loose): string {
    return `"output_index":${this.item.at},"item":${json(object)},`;
  }
}
