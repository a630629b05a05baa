import { ClientClosedError, type GatewayError, gatewayError, InternalError } from "../../errors.ts";
import { googleStatusName } from "../google/errors.ts";
import type { EventWriter } from "../shared/events.ts";
import type { TurnEnd, TurnItem } from "../shared/turn.ts";
import type { TurnWriter } from "../shared/turn-writer.ts";
import { InteractionCancelledError } from "./errors.ts";
import { InteractionEvents } from "./events.ts";
import {
  type InteractionHead,
  type InteractionState,
  type InteractionStatus,
  interactionText,
  openStep,
  partialInteraction,
  usageOf,
  wholeStep,
} from "./object.ts";

/** An interaction in its final state. */
export interface EndedInteraction {
  readonly status: InteractionStatus;
  /** JSON text of the object. */
  readonly body: string;
  /** JSON texts. */
  readonly steps: readonly string[];
}

export interface WriterOptions {
  readonly head: InteractionHead;
  /** Thoughts come as their signature alone. */
  readonly hidesThoughts: boolean;
  /** The signature of a thought, which proves it, or holds it where it is hidden. */
  readonly sign: (thought: string) => string;
  /** Keeps it; undefined: nothing is kept. Nobody is told that it is complete before this has resolved. */
  readonly save?: ((ended: EndedInteraction) => Promise<void>) | undefined;
  /** An error after which an interaction that had begun could not be kept: nobody else hears of it. */
  readonly onLost?: (error: unknown) => void;
}

/**
 * Tells of an answer in the events of Interactions, and makes the object of the same items. Without `out` only the object is made.
 *
 *     interaction.created, of each step step.start, its step.delta and step.stop, then [error], interaction.completed
 *
 * A call that the answer's length or an error cut off has no step.stop and is not in the object, so that no client takes half a call for a
 * whole one; one that the model itself left unfinished is a step like others, as steps have numbers without gaps. An error before the first
 * event leaves nothing written: then the request has failed, not the interaction.
 */
export class InteractionWriter implements TurnWriter {
  started = false;
  /** The answer is over, though it may still have to be saved. */
  finished = false;
  error: GatewayError | undefined;
  /** Resolves when all is told and saved. */
  readonly settled: Promise<void>;
  private settle!: () => void;
  private readonly events: InteractionEvents | undefined;
  private readonly steps: string[] = [];
  private state: InteractionState;
  private calls = 0;
  /** A call that was begun and has not become whole. */
  private cut: TurnItem | undefined;
  /** There was text, or a complete call. */
  private says = false;
  /** Characters of the open item that were told. */
  private told = 0;

  constructor(
    private readonly options: WriterOptions,
    private readonly out: EventWriter | undefined,
  ) {
    this.events = out && new InteractionEvents(out);
    this.state = { status: "in_progress", updatedAt: options.head.createdAt, steps: [] };
    this.settled = new Promise((resolve) => {
      this.settle = resolve;
    });
  }

  /** JSON text of the interaction as it is now. */
  text(): string {
    return interactionText(this.options.head, this.state);
  }

  /** The first event. Harmless to call again. */
  begun(): void {
    if (this.started) return;
    this.started = true;
    this.events?.created(partialInteraction(this.options.head, this.state));
  }

  opened(item: TurnItem): void {
    this.begun();
    if (this.cut !== undefined) this.closed(this.cut, true);
    this.told = 0;
    this.events?.start(item.at, item.kind, openStep(item));
  }

  delta(item: TurnItem, text: string): void {
    const { events } = this;
    if (events === undefined || text === "" || (item.kind === "reasoning" && this.options.hidesThoughts)) return;
    this.told += text.length;
    events.delta(text, this.told);
  }

  closed(item: TurnItem, complete: boolean): void {
    const { kind, text } = item;
    this.cut = kind === "call" && !complete ? item : undefined;
    if (kind === "call") {
      if (!complete) return;
      this.calls++;
    }
    if (kind !== "reasoning") this.says = true;
    const { hidesThoughts, sign } = this.options;
    const signature = kind === "reasoning" ? sign(text) : "";
    this.steps.push(wholeStep(item, signature, hidesThoughts));
    if (kind === "reasoning") this.events?.signature(signature, this.told);
    this.events?.stop();
  }

  ended(end: TurnEnd): void {
    this.begun();
    const isCut = end.reason === "length";
    if (!isCut && this.cut !== undefined) this.closed(this.cut, true);
    if (!isCut && !this.says) this.emptyOutput();
    this.finish(isCut ? "incomplete" : this.calls > 0 ? "requires_action" : "completed", usageOf(end));
  }

  failed(error: GatewayError): void {
    this.error = error;
    if (!this.started) {
      this.finished = true;
      this.settle();
    } else if (error instanceof InteractionCancelledError) this.finish("cancelled");
    else if (error instanceof ClientClosedError) {
      this.out?.cut();
      this.finish("incomplete");
    } else this.finish("failed");
  }

  flush(): void {
    this.out?.flush();
  }

  /** A client that gets neither text nor a call would look for a step in vain. */
  private emptyOutput(): void {
    const item: TurnItem = { kind: "text", at: this.steps.length, text: "", logprobs: [] };
    this.opened(item);
    this.closed(item, true);
  }

  private finish(status: InteractionStatus, usage?: object): void {
    this.finished = true;
    this.set(status, usage);
    const { save, onLost } = this.options;
    // of a request that has failed as a whole nobody knows the interaction
    if (save === undefined || (this.out === undefined && this.error !== undefined)) {
      this.tellEnd();
      return;
    }
    save({ status, body: this.text(), steps: this.steps })
      .catch((cause: unknown) => {
        if (this.error === undefined) {
          this.error = gatewayError(cause);
          this.set("failed", usage);
        } else onLost?.(cause);
      })
      .then(() => this.tellEnd())
      .catch((cause: unknown) => {
        // nobody else would hear of it, and whoever waits would wait for ever
        this.error ??= new InternalError(cause);
        this.out?.cut();
        this.settle();
        onLost?.(cause);
      });
  }

  private set(status: InteractionStatus, usage: object | undefined): void {
    const error =
      status === "failed" && this.error !== undefined
        ? { code: googleStatusName(this.error), message: this.error.message }
        : undefined;
    this.state = { status, updatedAt: Date.now(), steps: this.steps, usage, error };
  }

  private tellEnd(): void {
    this.events?.end(partialInteraction(this.options.head, this.state));
    this.out?.end();
    this.settle();
  }
}
