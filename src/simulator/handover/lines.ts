/** The simulated engines' own protocol for handing KV over: a JSON object a line. */
import { OutBuffer } from "../../http2/out-buffer.ts";

/** Asks for the KV of a prompt. */
export interface Ask {
  readonly ask: string;
  readonly prompt: string;
  readonly engineId?: string;
  readonly blockIds?: readonly number[];
  readonly waits: boolean;
}

/** To the side that gives. `got`: everything has come. `drop`: blocks by that key are not needed. */
export type ToGiver = Ask | { readonly got: true } | { readonly drop: string };

/** To the side that takes. `sending`: the transfer has begun. `cachedTokens`: everything is there, and so many were cached. */
export type ToTaker = { readonly sending: true } | { readonly cachedTokens: number } | { readonly error: string };

/** Puts lines together from what a socket delivers. */
export class LineReader<T> {
  private rest = "";

  push(chunk: Uint8Array): T[] {
    const lines = (this.rest + Buffer.from(chunk).toString("utf8")).split("\n");
    this.rest = lines.pop() ?? "";
    return lines.map((line) => JSON.parse(line) as T);
  }
}

/** Lines on their way out. */
export class LineWriter<T> {
  private readonly out = new OutBuffer();

  constructor(private readonly write: (bytes: Uint8Array) => number) {}

  send(line: T): void {
    this.out.append(Buffer.from(`${JSON.stringify(line)}\n`));
    this.flush();
  }

  flush(): void {
    if (this.out.length === 0) return;
    const written = this.write(this.out.bytes.subarray(this.out.start, this.out.end));
    if (written > 0) this.out.drop(written);
  }
}
