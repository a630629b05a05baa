/** What a parser says, in the order of generation. `index` counts the calls of one answer from 0. Deltas are never empty. */
export interface ParserSink {
  /** Visible text. */
  text(delta: string): void;
  reasoning(delta: string): void;
  /** A marker that was asked for (`keepsMarkers`), as text that no other parser reads; by default `text`. */
  marker?(text: string): void;
  /** A call begins; `id` as the model wrote it, where the family has one. */
  toolStart(index: number, name: string, id: string | undefined): void;
  /** A piece of one JSON text: raw where the model wrote JSON. */
  toolArguments(index: number, delta: string): void;
  /** The call is complete. An unfinished or broken call never gets here. */
  toolEnd(index: number): void;
}

/** One tool call of an answer; `arguments` is the joined text of its deltas, cut off where `complete` is false. */
export interface ParsedCall {
  readonly name: string;
  readonly id: string | undefined;
  readonly arguments: string;
  readonly complete: boolean;
}

/** A whole answer. */
export interface ParsedAnswer {
  readonly content: string;
  readonly reasoning: string;
  readonly toolCalls: readonly ParsedCall[];
}

/** A sink that collects, and what it has collected so far. */
export function foldEvents(): { readonly sink: ParserSink; answer(): ParsedAnswer } {
  let content = "";
  let reasoning = "";
  const calls: { name: string; id: string | undefined; arguments: string; complete: boolean }[] = [];
  return {
    sink: {
      text(delta) {
        content += delta;
      },
      reasoning(delta) {
        reasoning += delta;
      },
      toolStart(index, name, id) {
        calls[index] = { name, id, arguments: "", complete: false };
      },
      toolArguments(index, delta) {
        calls[index]!.arguments += delta;
      },
      toolEnd(index) {
        calls[index]!.complete = true;
      },
    },
    answer: () => ({ content, reasoning, toolCalls: calls.map((call) => ({ ...call })) }),
  };
}
