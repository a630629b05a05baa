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
  readonly part?: { readonly added: string; readonly done: string; readonly index: string };
}

const CONTENT = { added: "response.content_part.added", done: "response.content_part.done", index: "content_index" };
const SUMMARY = {
  added: "response.reasoning_summary_part.added",
  done: "response.reasoning_summary_part.done",
  index: "summary_index",
};

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

function tellingOf(item: TurnItem, { asSummary }: ItemOptions): Told {
  if (item.kind === "text") return MESSAGE;
  if (item.kind === "reasoning") return asSummary ? REASONING_SUMMARY : REASONING;
  return item.callKind === "custom" ? CUSTOM : FUNCTION;
}

/** An event without its number: its type, and its members as JSON text, each with a comma behind it. */
export type ItemEvent = readonly [type: string, members: string];

const json = (value: unknown): string => JSON.stringify(value);

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
    const added: ItemEvent = ["response.output_item.added", this.whole(this.object("in_progress", ""))];
    return part === undefined ? [added] : [added, [part.added, `${this.textPlace}"part":${json(this.partOf(""))},`]];
  }

  /** What tells that it is over; `object` is its final form. */
  closing(object: Loose): ItemEvent[] {
    const { done, member, part } = this.told;
    const { item } = this;
    const name = item.kind === "call" && item.callKind === "function" ? `"name":${json(object["name"])},` : "";
    const logprobs = item.kind === "text" ? `"logprobs":${json(this.drawn())},` : "";
    const text: ItemEvent = [done, `${this.textPlace}"${member}":${json(item.text)},${name}${logprobs}`];
    const over: ItemEvent = ["response.output_item.done", this.whole(object)];
    if (part === undefined) return [text, over];
    return [text, [part.done, `${this.textPlace}"part":${json(this.partOf(item.text))},`], over];
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
