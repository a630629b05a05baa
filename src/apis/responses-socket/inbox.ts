/** Messages of a connection on their way from text to JSON, in the order in which they came. */
import { OverloadedError } from "../../errors.ts";
import { rememberText } from "../../server/raw-body.ts";
import { parseSliced } from "../../server/sliced-json.ts";
import type { Loose } from "../responses/schema.ts";
import { parseMessage } from "./client-events.ts";

/** UTF-16 units of a message that takes milliseconds to read. */
const LARGE = 1 << 18;
/** Messages that wait to be read. */
const MOST_UNREAD = 64;

export class Inbox {
  private unread = 0;
  private last: Promise<void> = Promise.resolve();

  /** `take` gets a message, which `read` gives, or what is wrong with it, which `read` throws. `onEmpty` is called when none waits any more. */
  constructor(
    private readonly closing: AbortSignal,
    private readonly take: (read: () => Loose) => void,
    private readonly onEmpty: () => void,
  ) {}

  get isEmpty(): boolean {
    return this.unread === 0;
  }

  /** A small message is taken at once; a large one is read in turns with other work of the thread, and those behind it wait for it. */
  add(text: string): void {
    const isLarge = text.length > LARGE;
    if (!isLarge && this.isEmpty) {
      this.take(() => parseMessage(text));
      return;
    }
    if (this.unread >= MOST_UNREAD) {
      this.take(() => {
        throw new OverloadedError("Too many messages wait on this connection");
      });
      return;
    }
    this.unread++;
    this.last = this.last.then(async () => {
      const read = isLarge && !this.closing.aborted ? await parsedLarge(text) : () => parseMessage(text);
      this.unread--;
      if (!this.closing.aborted) this.take(read);
      if (this.isEmpty) this.onEmpty();
    });
  }
}

async function parsedLarge(text: string): Promise<() => Loose> {
  try {
    const message = await parseSliced(text, "The message");
    rememberText(message, text);
    return () => message as Loose;
  } catch (error) {
    return () => {
      throw error;
    };
  }
}
