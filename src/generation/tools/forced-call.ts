/** Reads answers that a JSON schema forces to be tool calls: see `ToolPlan.output`. */
import type { ParserSink } from "../../parsers/events.ts";
import { Input } from "../../parsers/input.ts";
import { jsonValue } from "../../parsers/json.ts";
import { unifiedReasoning } from "../../parsers/names.ts";
import { createOutputParser, type OutputParser, type ParserOptions } from "../../parsers/parser.ts";

/**
 * A parser for the bare arguments of one function, or for a list of `{name, parameters}`; reasoning may come before them.
 * `options.parseTools` does not matter. Throws UnknownParserError.
 */
export function createForcedCallParser(
  output: "json" | { readonly named: string },
  reasoningParser: string | undefined,
  options: ParserOptions,
): OutputParser {
  // A format that carries reasoning and calls alike: under the schema there is neither of its markers.
  const isUnified = reasoningParser !== undefined && unifiedReasoning(reasoningParser) !== undefined;
  const reasoning = isUnified ? undefined : reasoningParser;
  const own = { ...options, constrained: true, parseTools: true };
  if (output === "json") return createOutputParser(reasoning, "json", own);
  return new NamedCallParser(output.named, createOutputParser(reasoning, undefined, own));
}

/** All text behind the reasoning is the arguments of one call. */
class NamedCallParser implements OutputParser {
  readonly markers: readonly string[];
  private readonly input = new Input();
  private readonly value: Generator<void, string, void>;
  private state: "before" | "inside" | "behind" | "text" = "before";
  private sink!: ParserSink;

  constructor(
    private readonly name: string,
    private readonly inner: OutputParser,
  ) {
    this.markers = inner.markers;
    this.value = jsonValue(this.input, (raw) => this.sink.toolArguments(0, raw));
  }

  push(text: string, sink: ParserSink): void {
    this.sink = sink;
    this.inner.push(text, this.outward);
  }

  special(text: string, sink: ParserSink): void {
    this.sink = sink;
    this.inner.special(text, this.outward);
  }

  finish(sink: ParserSink): void {
    this.sink = sink;
    this.inner.finish(this.outward);
    if (this.state !== "inside") return;
    this.input.ended = true;
    this.read();
  }

  private readonly outward: ParserSink = {
    text: (delta) => this.argumentText(delta),
    reasoning: (delta) => this.sink.reasoning(delta),
    toolStart: () => {},
    toolArguments: () => {},
    toolEnd: () => {},
  };

  private argumentText(delta: string): void {
    let text = delta;
    if (this.state === "before") {
      text = text.trimStart();
      if (text === "") return;
      if (!text.startsWith("{")) {
        this.state = "text"; // no grammar was enforced after all: it is an answer
        this.sink.text(text);
        return;
      }
      this.state = "inside";
      this.sink.toolStart(0, this.name, undefined);
    }
    if (this.state === "inside") {
      this.input.feed(text);
      this.read();
    } else this.otherText(text);
  }

  /** Text that belongs to no call; white space right behind one belongs to no one. */
  private otherText(delta: string): void {
    const text = this.state === "behind" ? delta.trimStart() : delta;
    if (text === "") return;
    this.state = "text";
    this.sink.text(text);
  }

  private read(): void {
    const step = this.value.next();
    if (step.done !== true) return;
    this.state = "behind";
    // What breaks stays an unfinished call; nothing of the text gets lost.
    if (step.value === "done") this.sink.toolEnd(0);
    const rest = this.input.text.slice(this.input.at);
    this.input.at = this.input.text.length;
    this.otherText(rest);
  }
}
