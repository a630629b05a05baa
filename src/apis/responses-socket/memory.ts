import type { Loose } from "../responses/schema.ts";

/** Responses of a connection that can be gone on from, though they may not be stored. */
const MOST_RESPONSES = 16;

/** The last responses of a connection, each with all that came before it. */
export class ResponseMemory {
  private readonly kept = new Map<string, readonly Loose[]>();

  /** `items`: what it went on from, its input and its output. The oldest one goes where there are too many. */
  keep(id: string, items: readonly Loose[]): void {
    this.kept.set(id, items);
    const [oldest] = this.kept.keys();
    if (this.kept.size > MOST_RESPONSES && oldest !== undefined) this.kept.delete(oldest);
  }

  items(id: string): readonly Loose[] | undefined {
    return this.kept.get(id);
  }
}
