/** Where the events of a response go: server-sent events, frames of a socket, or the log of a run in the background. */
import type { FrameWriter } from "../shared/answer.ts";

export interface EventWriter {
  /** `json`: the whole event, its `type` and `sequence_number` in it. */
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

/** Events as frames `event: …` and `data: …`, with `[DONE]` at the end, which OpenResponses asks for. */
export class ServerSentEvents implements EventWriter {
  constructor(private readonly out: FrameWriter) {}

  event(type: string, json: string): void {
    this.out.write(`event: ${type}\ndata: ${json}\n\n`);
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
    this.out.write("data: [DONE]\n\n");
    this.out.end();
  }

  cut(): void {
    this.out.cut();
  }
}
