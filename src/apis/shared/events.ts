/** Where the events of an answer go: server-sent events, frames of a socket, or the log of a run in the background. */
import type { FrameWriter } from "./answer.ts";

export interface EventWriter {
  /** `json`: the whole event, its type and number in it. */
  event(type: string, json: string, sequence: number): void;
  /**
   * For events that come by the thousand and differ in one text: what tells one, of its text as JSON and its number. `head` and `tail`: what
   * of the event comes before the text, and behind it up to the number. Without it each comes by `event`.
   */
  deltas?(type: string, head: string, tail: string): TellDelta;
  /** What came so far belongs together: send it now. */
  flush(): void;
  /** The last event was told. */
  end(): void;
  /** The client has left. */
  cut(): void;
}

/** The end of an event and of its frame. */
const CLOSE = "}\n\n";

export type TellDelta = (text: string, sequence: number) => void;

/** An event, a JSON text, as a frame. */
export const eventFrame = (type: string, json: string): string => `event: ${type}\ndata: ${json}\n\n`;

/** The frame behind the last event, which OpenResponses and Interactions ask for. */
export const DONE_FRAME = "data: [DONE]\n\n";

/** Events as frames, with `DONE_FRAME` at the end. */
export class ServerSentEvents implements EventWriter {
  constructor(private readonly out: FrameWriter) {}

  event(type: string, json: string): void {
    this.out.write(eventFrame(type, json));
  }

  deltas(type: string, head: string, tail: string): TellDelta {
    const { out } = this;
    const begin = `event: ${type}\ndata: ${head}`;
    return (text, sequence) => out.write(begin + text + tail + sequence + CLOSE);
  }

  flush(): void {
    this.out.flush();
  }

  end(): void {
    this.out.write(DONE_FRAME);
    this.out.end();
  }

  cut(): void {
    this.out.cut();
  }
}

/** Hands events, JSON texts, on, and nothing else. */
export const eventTexts = (take: (json: string) => unknown): EventWriter => ({
  event: (_type, json) => take(json),
  flush() {},
  end() {},
  cut() {},
});
