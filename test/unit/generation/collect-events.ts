import type { GenerationEvent, GenerationSink } from "../../../src/generation/events.ts";

/** The text of one event, without reasoning and calls. */
export const outputText = ({ parts }: GenerationEvent & { type: "output" }): string =>
  parts.map((part) => (part.type === "text" ? part.text : "")).join("");

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
    const outputs = this.of("output").filter((event) => event.index === index);
    return outputs.map(outputText).join("");
  }
  /** Kinds in order, without repeats of `output`. */
  kinds(): string[] {
    const kinds = this.events.map((event) => ("index" in event ? `${event.type}${event.index}` : event.type));
    return kinds.filter((kind, i) => kind !== kinds[i - 1] || !kind.startsWith("output"));
  }
  of<T extends GenerationEvent["type"]>(type: T): Extract<GenerationEvent, { type: T }>[] {
    return this.events.filter((event): event is Extract<GenerationEvent, { type: T }> => event.type === type);
  }
}
