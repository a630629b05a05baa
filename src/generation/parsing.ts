import type { ContentFilter } from "../parsers/filter.ts";
import { familiesOf, reasoningFamily, toolParserName } from "../parsers/names.ts";
import { createOutputParser, type OutputParser } from "../parsers/parser.ts";
import type { ToolSchema } from "../parsers/tools.ts";
import type { Tokenizer } from "../tokenizer/tokenizer.ts";
import type { ParsingOptions } from "./choice.ts";

/** Names of a model's parsers; undefined: none. */
export interface ParserNames {
  readonly reasoning: string | undefined;
  readonly tool: string | undefined;
}

/** What an answer may hold, and how it is to be read. */
export interface AnswerShape {
  readonly tools: readonly ToolSchema[];
  /** Those of the tools that take free text, by name. */
  readonly customTools?: ReadonlySet<string>;
  /** False: calls are not looked for. */
  readonly parseTools: boolean;
  /** The prompt ends inside an open reasoning block. */
  readonly startsInReasoning: boolean;
  /** The engine was told a grammar. */
  readonly constrained: boolean;
  /** The answer is an object of JSON, unless it is calls. */
  readonly jsonAnswer?: boolean;
  readonly single: boolean;
  /** Reasoning is told as text, with its markers where they stand around it; in formats of channels without them. */
  readonly mergesReasoning?: boolean;
  readonly isForced: boolean;
  /**
   * Markers that a grammar of the engine has, which may come as tokens of their own or spelled out in others: `all`, or `calls`, those
   * of calls alone. Others count as the tokens that they are, so that text about them stays text.
   */
  readonly spelledMarkers?: "all" | "calls" | undefined;
  /** A parser to use in the place of the model's own, for answers that a grammar forces into another form. */
  readonly forced?: (filter: ContentFilter | undefined, singleTokenMarkers: ReadonlySet<string>) => OutputParser;
}

/** What tells which markers are single tokens. */
export type Vocabulary = Pick<Tokenizer, "tokenId" | "isAdded">;

/** That of plain text: all markers are text. */
export const TEXT_ONLY: Vocabulary = { tokenId: () => undefined, isAdded: () => false };

interface Markers {
  readonly byId: ReadonlyMap<number, string>;
  readonly texts: ReadonlySet<string>;
}

const NO_NAMES: ReadonlySet<string> = new Set();

const known = new WeakMap<Vocabulary, Map<string, Markers>>();

/** Those of a parser's markers that are single tokens of a vocabulary. */
function markersOf(tokenizer: Vocabulary, { reasoning, tool }: ParserNames): Markers {
  let byNames = known.get(tokenizer);
  if (byNames === undefined) {
    byNames = new Map();
    known.set(tokenizer, byNames);
  }
  const key = `${reasoning ?? ""}\n${tool ?? ""}`;
  let found = byNames.get(key);
  if (found === undefined) {
    const probe = createOutputParser(reasoning, tool, {
      tools: [],
      startsInReasoning: false,
      singleTokenMarkers: new Set(),
      parseTools: true,
    });
    const byId = new Map<number, string>();
    for (const marker of probe.markers) {
      const id = tokenizer.tokenId(marker);
      if (id !== undefined && tokenizer.isAdded(id)) byId.set(id, marker);
    }
    found = { byId, texts: new Set(byId.values()) };
    byNames.set(key, found);
  }
  return found;
}

/** What begins the reasoning of an answer that is text before it; undefined where more can be found, or where text must be searched. */
function plainUntil(
  { reasoning }: ParserNames,
  { parseTools, startsInReasoning, constrained, forced }: AnswerShape,
  singleTokens: ReadonlySet<string>,
): ReadonlySet<string> | undefined {
  if (parseTools || startsInReasoning || constrained || forced !== undefined) return undefined;
  const family = reasoningFamily(reasoning);
  const all = [...(family?.open ?? []), ...(family?.close ?? [])];
  return family !== undefined && all.every((marker) => singleTokens.has(marker)) ? new Set(family.open) : undefined;
}

/** The markers that count only as the single tokens that they are. */
function byTokenOnly(
  markers: ReadonlySet<string>,
  { reasoning, tool }: ParserNames,
  spelled: AnswerShape["spelledMarkers"],
): ReadonlySet<string> {
  if (spelled === "all") return NO_NAMES;
  // in a format of channels there is no telling apart
  if (spelled === undefined || familiesOf(reasoning, tool).unified !== undefined) return markers;
  const family = reasoningFamily(reasoning);
  return new Set([...(family?.open ?? []), ...(family?.close ?? [])].filter((marker) => markers.has(marker)));
}

/** A call's id as OpenAI's look: `call_` and 24 characters. */
const newCallId = (): string => `call_${crypto.randomUUID().replaceAll("-", "").slice(0, 24)}`;

const ALPHANUMERICS = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789";

/** Mistral's templates want ids of nine letters and digits. */
function mistralCallId(): string {
  const bytes = crypto.getRandomValues(new Uint8Array(9));
  return Array.from(bytes, (byte) => ALPHANUMERICS[byte % ALPHANUMERICS.length]).join("");
}

/**
 * How the answers of a model are read; undefined where nothing is to be found in them. Throws UnknownParserError for names that do not
 * exist.
 */
export function parsingOptions(
  tokenizer: Vocabulary,
  names: ParserNames,
  shape: AnswerShape,
): ParsingOptions | undefined {
  const tool = shape.parseTools ? names.tool : undefined;
  if (names.reasoning === undefined && tool === undefined && shape.forced === undefined) return undefined;
  const markers = markersOf(tokenizer, names);
  const singleTokens = byTokenOnly(markers.texts, names, shape.spelledMarkers);
  const parser = (filter: ContentFilter | undefined) =>
    shape.forced?.(filter, singleTokens) ??
    createOutputParser(names.reasoning, names.tool, {
      tools: shape.tools,
      startsInReasoning: shape.startsInReasoning,
      singleTokenMarkers: singleTokens,
      parseTools: shape.parseTools,
      constrained: shape.constrained,
      jsonAnswer: shape.jsonAnswer === true,
      keepsMarkers: shape.mergesReasoning === true,
      ...(filter !== undefined && { filter }),
    });
  const openers = plainUntil(names, shape, markers.texts);
  const fresh = toolParserName(names.tool) === "mistral" ? mistralCallId : newCallId;
  return {
    parser,
    markers: markers.byId,
    ...(openers !== undefined && { openers }),
    callId: (written) => written || fresh(),
    single: shape.single,
    customTools: shape.customTools ?? NO_NAMES,
    mayCall: shape.parseTools,
    mergesReasoning: shape.mergesReasoning === true,
    isForced: shape.isForced,
  };
}
