/** Reads one chat or text completion, streamed or not, and says what it was. */

/** What can be wrong with a reply. `status`: not 200; `connection`: cut off or refused; `count`: not the tokens it should have. */
export type ReplyProblem =
  | "status"
  | "connection"
  | "malformed"
  | "error_event"
  | "no_finish"
  | "no_done"
  | "count"
  | "timeout";

interface Piece {
  readonly content?: string | null;
  readonly reasoning_content?: string | null;
  readonly tool_calls?: readonly unknown[] | null;
}

interface Frame {
  readonly choices?: readonly {
    readonly delta?: Piece;
    readonly message?: Piece;
    readonly text?: string;
    readonly finish_reason?: string | null;
  }[];
  readonly usage?: { readonly prompt_tokens?: number; readonly completion_tokens?: number } | null;
  readonly error?: unknown;
}

const LINE_FEED = 10;
const CARRIAGE_RETURN = 13;
const SPACE = 32;
const DATA = Buffer.from("data:");
const MAX_SHOWN = 200;

export class Reply {
  /** Moment of each event that carried text, in the clock of the caller. */
  readonly stamps: number[] = [];
  /** Bytes of generated text and reasoning. */
  textBytes = 0;
  promptTokens = 0;
  completionTokens: number | undefined;
  problem: ReplyProblem | undefined;
  detail = "";
  private finished = false;
  private doneMark = false;
  private pending: Buffer | undefined;

  constructor(private readonly streaming: boolean) {}

  /** Takes a piece of the body that was read at `now`. */
  feed(status: number, piece: Buffer, from: number, to: number, now: number): void {
    if (!this.streaming || status !== 200) {
      const part = piece.subarray(from, to);
      this.pending = this.pending === undefined ? Buffer.from(part) : Buffer.concat([this.pending, part]);
      return;
    }
    let bytes = piece;
    let at = from;
    let end = to;
    if (this.pending !== undefined) {
      bytes = Buffer.concat([this.pending, piece.subarray(from, to)]);
      at = 0;
      end = bytes.length;
      this.pending = undefined;
    }
    while (at < end) {
      const feedAt = bytes.indexOf(LINE_FEED, at);
      if (feedAt < 0 || feedAt >= end) {
        this.pending = Buffer.from(bytes.subarray(at, end));
        return;
      }
      this.line(bytes, at, feedAt, now);
      at = feedAt + 1;
    }
  }

  /** The response ended. `expect`: completion tokens that its usage must say. */
  end(status: number, now: number, expect: number | undefined, connectionProblem?: string): void {
    if (connectionProblem !== undefined) this.fail("connection", connectionProblem);
    else if (status !== 200) this.fail("status", `${status}: ${this.pending?.toString("utf8", 0, MAX_SHOWN) ?? ""}`);
    else this.check(now, expect);
  }

  private check(now: number, expect: number | undefined): void {
    if (!this.streaming) this.frame(this.pending?.toString("latin1") ?? "", now);
    else if (this.pending !== undefined) this.fail("malformed", "the body ends inside a line");
    if (!this.finished) this.fail("no_finish", "no finish_reason");
    if (this.streaming && !this.doneMark) this.fail("no_done", "no [DONE]");
    const tokens = this.completionTokens;
    if (expect !== undefined && tokens !== expect)
      this.fail("count", `${tokens} tokens in the usage instead of ${expect}`);
    else if (tokens !== undefined && this.streaming && this.stamps.length > tokens)
      this.fail("count", `${this.stamps.length} events with text for ${tokens} tokens`);
  }

  fail(problem: ReplyProblem, detail: string): void {
    if (this.problem !== undefined) return;
    this.problem = problem;
    this.detail = detail;
  }

  private line(bytes: Buffer, from: number, lineEnd: number, now: number): void {
    let to = lineEnd;
    if (to > from && bytes[to - 1] === CARRIAGE_RETURN) to--;
    // Empty lines end an event; other fields and comments carry nothing here.
    if (to - from < DATA.length || bytes.compare(DATA, 0, DATA.length, from, from + DATA.length) !== 0) return;
    let at = from + DATA.length;
    if (bytes[at] === SPACE) at++;
    // Bytes above 127 stand inside JSON strings only, so the structure is the same in Latin-1, which is cheaper to make.
    const text = bytes.toString("latin1", at, to);
    if (text === "[DONE]") this.doneMark = true;
    else if (this.doneMark) this.fail("malformed", "an event after [DONE]");
    else this.frame(text, now);
  }

  private frame(text: string, now: number): void {
    let frame: Frame;
    try {
      frame = JSON.parse(text) as Frame;
    } catch {
      this.fail("malformed", `not JSON: ${text.slice(0, MAX_SHOWN)}`);
      return;
    }
    if (frame.error) this.fail("error_event", text.slice(0, MAX_SHOWN));
    if (frame.usage) {
      this.promptTokens = frame.usage.prompt_tokens ?? 0;
      this.completionTokens = frame.usage.completion_tokens;
    }
    if (frame.choices === undefined) return;
    for (const choice of frame.choices) {
      const piece = choice.delta ?? choice.message;
      // Strings are Latin-1 readings of UTF-8, so their lengths are bytes.
      const bytes =
        (piece?.content?.length ?? 0) + (piece?.reasoning_content?.length ?? 0) + (choice.text?.length ?? 0);
      this.textBytes += bytes;
      if (bytes > 0 || (piece?.tool_calls?.length ?? 0) > 0) this.stamps.push(now);
      if (choice.finish_reason) this.finished = true;
    }
  }
}
