import { ClientClosedError, type GatewayError, gatewayError, InternalError } from "../../errors.ts";
import type { LogprobEntry } from "../../generation/events.ts";
import type { EventWriter, TellDelta } from "../shared/events.ts";
import type { TurnEnd, TurnItem } from "../shared/turn.ts";
import type { TurnWriter } from "../shared/turn-writer.ts";
import { ResponseCancelledError, type ResponseFailure, responseFailure } from "./errors.ts";
import { type ItemOptions, OutputItem } from "./items.ts";
import {
  type ResponseHead,
  type ResponseState,
  type ResponseStatus,
  responseObject,
  responseText,
  usageOf,
} from "./object.ts";
import type { Loose } from "./schema.ts";

export interface WriterOptions extends ItemOptions {
  readonly head: ResponseHead;
  /** It has waited for its turn: `response.queued` is told, too. */
  readonly wasQueued?: boolean;
  /**
   * Keeps a response in its final state; undefined: nothing is kept. Nobody is told that a response is complete before this has resolved.
   */
  readonly save?: ((object: Loose) => Promise<void>) | undefined;
  /** Hears why a response could not be kept. */
  readonly onLost?: (error: unknown) => void;
}

/**
 * Tells of an answer in the events of Responses, and makes its final object of the same items. Without `out` only the object is made.
 *
 *     created, [queued], in_progress, the events of each item, then completed, incomplete, or `error` and failed
 *
 * An error before the first event leaves nothing written: then the request has failed, not the response.
 */
export class ResponseWriter implements TurnWriter {
  /** The first events were told. */
  started = false;
  /** The answer is over, though it may still have to be saved. */
  finished = false;
  error: GatewayError | undefined;
  /** Resolves when all is told and saved. */
  readonly settled: Promise<void>;
  private settle!: () => void;
  private sequence = 0;
  private readonly output: Loose[] = [];
  private open: OutputItem | undefined;
  private tell: TellDelta = () => {};
  /** JSON text of the members that stay the same. */
  private fields: string | undefined;
  private state: ResponseState = { status: "in_progress", output: [] };

  constructor(
    private readonly options: WriterOptions,
    private readonly out: EventWriter | undefined,
  ) {
    this.settled = new Promise((resolve) => {
      this.settle = resolve;
    });
  }

  /** The response as it is now. */
  object(): Loose {
    return responseObject(this.options.head, this.state);
  }

  /** The first events. Harmless to call again. */
  begun(): void {
    if (this.started) return;
    this.started = true;
    if (this.options.wasQueued === true) {
      this.lifecycle("created", "queued");
      this.lifecycle("queued", "queued");
    } else this.lifecycle("created", "in_progress");
    this.lifecycle("in_progress", "in_progress");
  }

  opened(item: TurnItem): void {
    this.begun();
    const open = new OutputItem(item, this.options);
    this.open = open;
    const { out } = this;
    if (out === undefined) return;
    for (const [type, members] of open.opening()) this.event(type, members);
    const { deltaType: type, deltaHead: head, deltaTail: tail } = open;
    this.tell =
      out.deltas?.(type, head, tail) ??
      ((text, sequence) => out.event(type, `${head + text + tail + sequence}}`, sequence));
  }

  delta(item: TurnItem, text: string, logprobs: readonly LogprobEntry[] | undefined): void {
    if (this.out === undefined) return;
    const sequence = this.sequence++;
    if (logprobs === undefined || item.kind !== "text" || this.options.logprobs === undefined)
      this.tell(JSON.stringify(text), sequence);
    else {
      const { deltaType: type } = this.open!;
      this.out.event(type, `${this.open!.deltaWith(text, logprobs) + sequence}}`, sequence);
    }
  }

  closed(_item: TurnItem, complete: boolean): void {
    const { open } = this;
    if (open === undefined) return;
    this.open = undefined;
    const object = open.object(complete ? "completed" : "incomplete");
    this.output.push(object);
    if (this.out === undefined) return;
    for (const [type, members] of open.closing(object)) this.event(type, members);
  }

  ended(end: TurnEnd): void {
    this.begun();
    const isCut = end.reason === "length";
    if (this.saysNothing(isCut)) this.emptyMessage(!isCut);
    this.finished = true;
    const usage = usageOf(end);
    this.finish(
      isCut
        ? { status: "incomplete", output: this.output, usage, incomplete: "max_output_tokens" }
        : { status: "completed", output: this.output, usage, completedAt: now() },
    );
  }

  failed(error: GatewayError): void {
    this.error = error;
    this.finished = true;
    if (!this.started) this.settle();
    else if (error instanceof ResponseCancelledError) this.finish({ status: "cancelled", output: this.output });
    else if (error instanceof ClientClosedError) {
      this.out?.cut();
      this.finish({ status: "incomplete", output: this.output });
    } else this.finish({ status: "failed", output: this.output, error: responseFailure(error) });
  }

  flush(): void {
    this.out?.flush();
  }

  /** A client that gets neither text nor a call would wait for more. */
  private saysNothing(isCut: boolean): boolean {
    return isCut ? this.output.length === 0 : this.output.every(({ type }) => type === "reasoning");
  }

  private emptyMessage(complete: boolean): void {
    const item: TurnItem = { kind: "text", at: this.output.length, text: "", logprobs: [] };
    this.opened(item);
    this.closed(item, complete);
  }

  private finish(state: ResponseState): void {
    this.state = state;
    const { save, onLost } = this.options;
    // of a request that has failed as a whole nobody knows the response
    if (save === undefined || (this.out === undefined && this.error !== undefined)) {
      this.tellEnd();
      return;
    }
    void save(this.object())
      .catch((cause: unknown) => {
        const failure = gatewayError(cause);
        if (this.error === undefined) {
          this.error = failure;
          this.state = { status: "failed", output: this.output, error: responseFailure(failure) };
        }
        onLost?.(cause);
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

  private tellEnd(): void {
    const { status } = this.state;
    if (!(this.error instanceof ClientClosedError)) {
      if (status === "failed") this.tellFailure(this.state.error!);
      if (status !== "cancelled") this.lifecycle(status, status);
      this.out?.end();
    }
    this.settle();
  }

  private tellFailure({ code, message }: ResponseFailure): void {
    this.event("error", `"code":${JSON.stringify(code)},"message":${JSON.stringify(message)},"param":null,`);
  }

  private lifecycle(name: string, status: ResponseStatus): void {
    if (this.out === undefined) return;
    const { head } = this.options;
    this.fields ??= JSON.stringify(head.fields);
    this.event(`response.${name}`, `"response":${responseText(head, this.fields, { ...this.state, status })},`);
  }

  private event(type: string, members: string): void {
    const sequence = this.sequence++;
    this.out?.event(type, `{"type":"${type}",${members}"sequence_number":${sequence}}`, sequence);
  }
}

const now = (): number => Math.floor(Date.now() / 1000);
