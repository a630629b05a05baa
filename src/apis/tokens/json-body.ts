import { ID_BYTES, writeIds } from "../../tokenizer/id-text.ts";

const CHUNK = 1 << 16;
/** Ids or characters between two offers to give way. */
const SLICE = 1 << 14;

/** Builds a JSON answer that may be many megabytes, in pieces between which `turn` is asked whether to give way. */
export class JsonBody {
  private readonly chunks: Uint8Array[] = [];
  private chunk = Buffer.allocUnsafe(CHUNK);
  private used = 0;

  constructor(private readonly turn: () => Promise<void> | undefined) {}

  /** JSON text as it is. */
  raw(json: string): void {
    this.room(json.length * 3);
    this.used += this.chunk.write(json, this.used);
  }

  /** Ids as an array. */
  async ids(ids: Uint32Array): Promise<void> {
    this.raw("[");
    for (let from = 0; from < ids.length; from += SLICE) {
      if (from > 0) this.raw(",");
      const to = Math.min(from + SLICE, ids.length);
      this.room((to - from) * ID_BYTES);
      this.used = writeIds(ids, from, to, this.chunk, this.used);
      const turn = this.turn();
      if (turn !== undefined) await turn;
    }
    this.raw("]");
  }

  /** A part of a string between quotes that are written as raw text. Characters must not be cut in two. */
  part(text: string): void {
    this.raw(JSON.stringify(text).slice(1, -1));
  }

  /** Another body's JSON; that one must not be used any more. */
  append(other: JsonBody): void {
    this.flush();
    other.flush();
    for (const chunk of other.chunks) this.chunks.push(chunk);
  }

  response(headers: Record<string, string>): Response {
    this.flush();
    return new Response(new Blob(this.chunks as BlobPart[]), {
      headers: { ...headers, "content-type": "application/json" },
    });
  }

  private room(bytes: number): void {
    if (this.chunk.length - this.used >= bytes) return;
    this.flush();
    this.chunk = Buffer.allocUnsafe(Math.max(CHUNK, bytes));
  }

  private flush(): void {
    if (this.used > 0) this.chunks.push(this.chunk.subarray(0, this.used));
    this.chunk = this.chunk.subarray(this.used);
    this.used = 0;
  }
}
