/** One answer as a row of items, for the APIs that tell it so: Responses, Messages, Interactions. */
import type { GatewayError } from "../../errors.ts";
import type { CallKind, FinishReason, GenerationEvent, LogprobEntry, OutputPart } from "../../generation/events.ts";
import type { AnswerSink } from "./answer.ts";

/** An item of an answer. `at` counts from 0 without gaps; `text` is the whole text once the item is closed, and empty before. */
export type TurnItem =
  | { readonly kind: "reasoning"; readonly at: number; text: string }
  | { readonly kind: "text"; readonly at: number; text: string; readonly logprobs: LogprobEntry[] }
  /** `text`: the JSON of the arguments, or the free text of a custom tool. */
  | {
      readonly kind: "call";
      readonly at: number;
      readonly callId: string;
      readonly name: string;
      readonly callKind: CallKind;
      text: string;
    };

export interface TurnEnd {
  readonly reason: FinishReason;
  /** The stop string or token of the request that ended it. */
  readonly matchedStop: string | number | undefined;
  /** The answer was allowed less than was asked for, as the context leaves no more. */
  readonly isClamped: boolean;
  readonly promptTokens: number;
  readonly cachedTokens: number;
  readonly completionTokens: number;
  readonly reasoningTokens: number;
}

/** One item is open at a time. Each is opened, gets its deltas and is closed, also when the answer is cut. */
export interface TurnListener {
  begun(counts: { readonly promptTokens: number; readonly cachedTokens: number }): void;
  opened(item: TurnItem): void;
  /** `logprobs`: of items of text only. */
  delta(item: TurnItem, text: string, logprobs: readonly LogprobEntry[] | undefined): void;
  /** `complete` is false for what was cut by the answer's length or by an error. */
  closed(item: TurnItem, complete: boolean): void;
  /** All items are closed. Nothing comes behind it. */
  ended(end: TurnEnd): void;
  /** The open item was closed as incomplete before. Nothing comes behind it. */
  failed(error: GatewayError): void;
  flush(): void;
}

/**
 * The sink of a generation of one choice that tells a listener of its items. A call is complete when it has ended; text and reasoning are,
 * unless they are the last item of an answer that was cut by its length. `dropsReasoning`: the listener never hears of it.
 */
export function turnSink(
  listener: TurnListener,
  shape: { readonly isClamped: boolean; readonly dropsReasoning?: boolean },
): AnswerSink {
  let open: TurnItem | undefined;
  /** Of the text of the open item. A list of them is cheaper than one text that grows by each token. */
  let pieces: string[] = [];
  let next = 0;
  let finish: (GenerationEvent & { readonly type: "finish" }) | undefined;

  function close(complete: boolean): void {
    if (open === undefined) return;
    const item = open;
    open = undefined;
    item.text = pieces.join("");
    listener.closed(item, complete);
  }

  /** Opens an item in the place of the one before it; a call that has not ended by then never will. */
  function start<Item extends TurnItem>(item: Item): Item {
    close(open?.kind !== "call");
    open = item;
    pieces = [];
    listener.opened(item);
    return item;
  }

  function tell(part: OutputPart, logprobs: readonly LogprobEntry[] | undefined): void {
    switch (part.type) {
      case "text": {
        const item = open?.kind === "text" ? open : start({ kind: "text", at: next++, text: "", logprobs: [] });
        pieces.push(part.text);
        if (logprobs !== undefined) item.logprobs.push(...logprobs);
        listener.delta(item, part.text, logprobs);
        return;
      }
      case "reasoning": {
        if (shape.dropsReasoning === true) return;
        const item = open?.kind === "reasoning" ? open : start({ kind: "reasoning", at: next++, text: "" });
        pieces.push(part.text);
        listener.delta(item, part.text, undefined);
        return;
      }
      case "tool_start":
        start({ kind: "call", at: next++, callId: part.id, name: part.name, callKind: part.kind, text: "" });
        return;
      case "tool_arguments":
        if (open?.kind !== "call") return;
        pieces.push(part.text);
        listener.delta(open, part.text, undefined);
        return;
      case "tool_end":
        if (open?.kind === "call") close(true);
    }
  }

  let failure: GatewayError | undefined;

  return {
    get error() {
      return failure;
    },
    begun: (counts) => listener.begun(counts),
    emit(event) {
      if (event.type === "output") {
        // logprobs are of all parts together; they go with the first text
        let { logprobs } = event;
        for (const part of event.parts) {
          tell(part, logprobs);
          if (part.type === "text") logprobs = undefined;
        }
      } else if (event.type === "finish") finish = event;
      else if (event.type === "usage") {
        const { promptTokens, cachedTokens, completionTokens, reasoningTokens } = event;
        const reason = finish?.reason ?? "stop";
        close(open?.kind !== "call" && reason !== "length");
        const matchedStop = finish?.matchedStop;
        const counts = { promptTokens, cachedTokens, completionTokens, reasoningTokens };
        listener.ended({ reason, matchedStop, isClamped: shape.isClamped, ...counts });
      } else {
        failure = event.error;
        close(false);
        listener.failed(failure);
      }
    },
    flush: () => listener.flush(),
  };
}
