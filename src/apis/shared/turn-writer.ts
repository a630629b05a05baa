/** Writers of items that keep what they have told of: what a generation tells them, and what an answer asks of them. */
import type { GatewayError } from "../../errors.ts";
import type { AnswerSink, StreamSink } from "./answer.ts";
import type { PreparedCall } from "./call.ts";
import { type TurnListener, turnSink } from "./turn.ts";

/** Listens to an answer, tells of it, and then stores it. */
export interface TurnWriter extends TurnListener {
  /** What the generation failed with, or the store. */
  readonly error: GatewayError | undefined;
  /** Something was told: failures are told the same way from then on. */
  readonly started: boolean;
  /** The answer is over, though it may still have to be stored. */
  readonly finished: boolean;
  /** Resolves when all is told and stored. */
  readonly settled: Promise<void>;
  /** Tells what comes before all items. Harmless to call again. */
  begun(): void;
}

/** The sink of a writer. */
export function writerSink(writer: TurnWriter, call: Pick<PreparedCall, "isClamped">): AnswerSink {
  const turn = turnSink(writer, call);
  return {
    begun: (counts) => turn.begun?.(counts),
    emit: (event) => turn.emit(event),
    flush: () => turn.flush(),
    get error() {
      return writer.error;
    },
  };
}

/** The same for a stream, whose first event of any kind is waited for: see `streamAnswer`. */
export function writerStreamSink(
  writer: TurnWriter,
  call: Pick<PreparedCall, "isClamped">,
  first: () => void,
): StreamSink {
  const sink = writerSink(writer, call);
  let told = false;
  const tell = () => {
    if (told) return;
    told = true;
    first();
  };
  return {
    begun(counts) {
      sink.begun?.(counts);
      tell();
    },
    emit(event) {
      sink.emit(event);
      if (!told) tell();
    },
    flush: sink.flush,
    commit: () => writer.begun(),
    pending: () => (writer.started ? writer.settled : undefined),
    get error() {
      return writer.error;
    },
    get started() {
      return writer.started;
    },
    get finished() {
      return writer.finished;
    },
  };
}
