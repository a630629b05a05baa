/** Responses by the events in their log, where nobody has stored their end. */
import { memberText } from "../../history/json-text.ts";
import { closingEvents, finalItem, isDelta, isSummaryEvent } from "../responses/items.ts";
import type { Loose } from "../responses/schema.ts";
import type { LoggedOutput, LostKind } from "../shared/lost-run.ts";

const ADDED = "response.output_item.added";
const DONE = "response.output_item.done";

/** `type` comes first in all events of ours. */
export const typeOf = (json: string): string => json.slice(9, json.indexOf('"', 9));

interface OpenItem {
  readonly first: Loose;
  asSummary: boolean;
  text: string;
  readonly logprobs: unknown[];
}

class LoggedItems implements LoggedOutput {
  private readonly whole: string[] = [];
  private open: OpenItem | undefined;

  add(json: string): void {
    const type = typeOf(json);
    if (type === ADDED) {
      const first = JSON.parse(memberText(json, "item") ?? "{}") as Loose;
      this.open = { first, asSummary: false, text: "", logprobs: [] };
    } else if (type === DONE) {
      this.whole.push(memberText(json, "item") ?? "{}");
      this.open = undefined;
    } else if (this.open !== undefined) {
      if (isSummaryEvent(type)) this.open.asSummary = true;
      if (!isDelta(type)) return;
      const { delta, logprobs } = JSON.parse(json) as {
        readonly delta: string;
        readonly logprobs?: readonly unknown[];
      };
      this.open.text += delta;
      this.open.logprobs.push(...(logprobs ?? []));
    }
  }

  /** An item that did not end is incomplete, as where a run is cancelled. */
  output(): readonly string[] {
    if (this.open === undefined) return this.whole;
    const { first, text, asSummary, logprobs } = this.open;
    return [...this.whole, JSON.stringify(finalItem(first, text, asSummary, logprobs))];
  }
}

export const LOST_RESPONSE: LostKind = {
  kind: "response",
  logged: () => new LoggedItems(),
  draw: (body, { status, message }) => ({
    ...body,
    status,
    error: status === "failed" ? { code: "server_error", message } : null,
  }),
  member: "output",
  hasIds: true,
};

const BEGIN = ["response.created", "response.queued", "response.in_progress"];

/**
 * What a log lacks before the events of the end: the first ones, and those that close the item that is open. `last`: its last event;
 * undefined: it is empty. Types, and members with a comma behind them.
 */
export function missingEvents(body: string, last: string | undefined): (readonly [type: string, members: string])[] {
  const type = last === undefined ? "" : typeOf(last);
  const begun = BEGIN.indexOf(type);
  if (last === undefined || begun >= 0)
    return BEGIN.slice(begun + 1).map((name) => {
      const status = name === "response.in_progress" ? "in_progress" : "queued";
      const object = { ...(JSON.parse(body) as Loose), status, error: null, output: [] };
      return [name, `"response":${JSON.stringify(object)},`];
    });
  if (type === DONE) return [];
  const at = Number(memberText(last, "output_index"));
  const item = (JSON.parse(body) as { readonly output: readonly Loose[] }).output[at];
  return item === undefined ? [] : closingEvents(item, at, type);
}
