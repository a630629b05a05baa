import type { GenerationEvent, GenerationSink } from "../../../src/generation/events.ts";

/** Records what a generation yields, and where it asked for a flush. */
export class Recorder implements GenerationSink {
  readonly events: GenerationEvent[] = [];
  flushes = 0;

  emit(event: GenerationEvent): void {
    this.events.push(event);
  }
  flush(): void {
    this.flushes++;
  }

  text(index = 0): string {
    return this.events.map((event) => (event.type === "text" && event.index === index ? event.text : "")).join("");
  }
  /** Kinds in order, without repeats of `text`. */
  kinds(): string[] {
    const kinds = this.events.map((event) => ("index" in event ? `${event.type}${event.index}` : event.type));
    return kinds.filter((kind, i) => kind !== kinds[i - 1] || !kind.startsWith("text"));
  }
  of<T extends GenerationEvent["type"]>(type: T): Extract<GenerationEvent, { type: T }>[] {
    return this.events.filter((event): event is Extract<GenerationEvent, { type: T }> => event.type === type);
  }
}
