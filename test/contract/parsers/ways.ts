/** The ways in which one answer can reach a parser, and what came of it. */
import { foldEvents, type ParsedAnswer, type ParserSink } from "../../../src/parsers/events.ts";
import type { ContentFilter } from "../../../src/parsers/filter.ts";
import { createOutputParser } from "../../../src/parsers/parser.ts";
import { type Sample, TOOLS } from "./samples.ts";

const NONE: ReadonlySet<string> = new Set();

/** Reads an answer in these pieces. `isSpecial`: single-token markers, which come by themselves. */
export function parse(
  sample: Sample,
  pieces: readonly string[],
  isSpecial: ReadonlySet<string> = NONE,
  filter?: ContentFilter,
): ParsedAnswer {
  const parser = createOutputParser(sample.reasoning, sample.tool, {
    tools: TOOLS,
    startsInReasoning: sample.startsInReasoning,
    singleTokenMarkers: isSpecial,
    parseTools: true,
    ...(filter === undefined ? {} : { filter }),
  });
  const { sink: fold, answer } = foldEvents();
  const sink = checked(fold, sample.tool === "harmony" || sample.tool === "gpt_oss" || sample.reasoning === "harmony");
  for (const piece of pieces) {
    if (isSpecial.has(piece)) parser.special(piece, sink);
    else parser.push(piece, sink);
  }
  parser.finish(sink);
  return answer();
}

function isJson(text: string): boolean {
  try {
    JSON.parse(text);
    return true;
  } catch {
    return false;
  }
}

/** A sink that refuses what no parser may say: empty deltas, calls out of order, arguments outside a call or that are no JSON. */
function checked(sink: ParserSink, isText: boolean): ParserSink {
  let args = "";
  let calls = 0;
  let open = -1;
  const must = (fine: boolean, what: string): void => {
    if (!fine) throw new Error(`A parser broke the order of events: ${what}`);
  };
  return {
    text(delta) {
      must(delta !== "", "empty text");
      sink.text(delta);
    },
    reasoning(delta) {
      must(delta !== "", "empty reasoning");
      sink.reasoning(delta);
    },
    toolStart(index, name, id) {
      must(index === calls++ && name !== "", "the begin of a call");
      open = index;
      args = "";
      sink.toolStart(index, name, id);
    },
    toolArguments(index, delta) {
      must(index === open && delta !== "", "arguments");
      args += delta;
      sink.toolArguments(index, delta);
    },
    toolEnd(index) {
      must(index === open, "the end of a call");
      // Tools of harmony may take free text.
      must(isText || isJson(args), `arguments that are no JSON: ${args}`);
      open = -1;
      sink.toolEnd(index);
    },
  };
}

/** The markers of a sample's parser. */
export function markersOf(sample: Sample): readonly string[] {
  return createOutputParser(sample.reasoning, sample.tool, {
    tools: [],
    startsInReasoning: false,
    singleTokenMarkers: NONE,
    parseTools: true,
  }).markers;
}

/** Cuts text so that each marker is a piece, and the text between them pieces of about a token. */
export function tokensOf(text: string, markers: readonly string[], size: () => number): string[] {
  const pieces: string[] = [];
  const sorted = [...markers].sort((a, b) => b.length - a.length);
  let at = 0;
  while (at < text.length) {
    const marker = sorted.find((m) => text.startsWith(m, at));
    if (marker !== undefined) {
      pieces.push(marker);
      at += marker.length;
      continue;
    }
    let end = at + size();
    for (let i = at + 1; i < end; i++) if (sorted.some((m) => text.startsWith(m, i))) end = i;
    pieces.push(text.slice(at, end));
    at = end;
  }
  return pieces;
}

/** What must be equal: arguments as values where they are whole. */
export function summary(answer: ParsedAnswer): unknown {
  return {
    content: answer.content,
    reasoning: answer.reasoning,
    calls: answer.toolCalls.map((call) => [
      call.name,
      call.complete ? JSON.parse(call.arguments) : call.arguments,
      call.complete,
    ]),
  };
}
