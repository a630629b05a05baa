/** What a request's tools and their choice mean for the engine and for the reading of the answer. */
import type { Constraint } from "../../engines/engine.ts";
import { InvalidRequestError, UnsupportedError } from "../../errors.ts";
import { familiesOf, reasoningFamily, toolParserName, unifiedReasoning } from "../../parsers/names.ts";
import { atOnce, type Steps } from "../../steps.ts";
import { type Conversation, offeredTools, type ToolDefinition } from "../conversation.ts";
import { callOrAnswerTag } from "./call-or-answer.ts";
import { listSchema, namedSchema } from "./forced-schema.ts";
import {
  callFormat,
  type Format,
  HARMONY_THOUGHT,
  INKLING_THOUGHT,
  strictFormat,
  type Thought,
  textFormat,
} from "./structural-tag.ts";

/**
 * How calls are written that are not in the model's own format: as a JSON list of `{name, parameters}`; as the bare arguments of one
 * function; as the bare text of one custom tool. For `createForcedCallParser`.
 */
export type ForcedOutput = "json" | { readonly named: string } | { readonly text: string };

/** How calls are made, and how they are written then. */
interface Way {
  readonly output: "native" | ForcedOutput;
  /** What the engine must enforce in the place of the request's own constraint. */
  readonly constraint: Constraint | undefined;
}

export interface ToolPlan extends Way {
  /** The answer is searched for calls. */
  readonly parse: boolean;
  /** The answer is made of calls. */
  readonly mustCall: boolean;
  /** What to do instead where the engine refuses the constraint; undefined: there is nothing else. */
  readonly otherwise?: Way;
  /** The request wants JSON where the model does not call. */
  readonly jsonAnswer: boolean;
  /** Only the first call counts. */
  readonly single: boolean;
  /** The tools that the answer may call. */
  readonly tools: readonly ToolDefinition[];
}

export interface PlanOptions {
  /** Name of the model's tool parser, aliases included; undefined: none. */
  readonly toolParser: string | undefined;
  readonly reasoningParser?: string | undefined;
  /** The prompt ends inside an open reasoning block. */
  readonly startsInReasoning: boolean;
  /** The prompt ends behind a reasoning block, as where thinking is switched off: no other one is to follow. */
  readonly reasoningIsOver?: boolean;
  /** What the engine can enforce. */
  readonly engineConstraints: ReadonlySet<Constraint["kind"]>;
  /** Whether the engine lets reasoning pass by itself before it applies a constraint; undefined: it does not say. */
  readonly engineWaitsForReasoning?: boolean | undefined;
  /** The constraint that the request itself asks for, e.g. a response format. */
  readonly constraint?: Constraint | undefined;
  /** How the model's template writes a call: `CallTraits.sample`. */
  readonly callSample?: string | undefined;
}

/** A JSON constraint would forbid the reasoning that the prompt has opened. */
export class ReasoningInTheWayError extends UnsupportedError {
  constructor() {
    super(
      "This model begins to think, and the engine cannot force a tool call after that: set reasoning_effort to none",
      {
        param: "tool_choice",
      },
    );
  }
}

/**
 * The plan for a conversation's tools. Throws InvalidRequestError: UnsupportedError where the engine can't enforce the choice, of the
 * class ReasoningInTheWayError where it could without open reasoning.
 */
export const planTools = (conversation: PlannedConversation, options: PlanOptions): ToolPlan =>
  atOnce(planToolsSteps(conversation, options));

type PlannedConversation = Pick<Conversation, "tools" | "toolChoice" | "parallelToolCalls">;

/** The same in steps: large schemas take milliseconds each time that they are written. */
export function* planToolsSteps(conversation: PlannedConversation, options: PlanOptions): Steps<ToolPlan> {
  const tools = distinct(offeredTools(conversation));
  const { mode, named } = conversation.toolChoice;
  const single = !conversation.parallelToolCalls;
  const native = {
    output: "native",
    constraint: undefined,
    mustCall: false,
    jsonAnswer: false,
    single,
    tools,
  } as const;
  const isFormat = ["json_schema", "json_object"].includes(options.constraint?.kind ?? "");
  if (tools.length === 0 || mode === "none") return { ...native, parse: false };
  if (mode === "auto") {
    const parse = toolParserName(options.toolParser) !== undefined;
    const ask = options.constraint === undefined ? strictTag : callOrAnswer;
    const tag = parse ? ask(tools, single, options) : undefined;
    const open = { ...native, parse, jsonAnswer: isFormat };
    if (tag === undefined) return open;
    return { ...open, constraint: tag, otherwise: { output: "native", constraint: undefined } };
  }
  // a format says how an answer looks, and there is none where a call must be made
  if (options.constraint !== undefined && !isFormat) {
    throw new InvalidRequestError("A tool call that must be made and a constraint of the text exclude each other", {
      param: "tool_choice",
    });
  }
  const callable = named === undefined ? tools : tools.filter(({ name }) => name === named);
  const [only, ...others] = callable;
  if (only === undefined)
    throw new InvalidRequestError("tool_choice names no tool of the request", { param: "tool_choice" });
  // the one function that is named is called once, as OpenAI does
  const forced = { ...native, parse: true, mustCall: true, single: single || named !== undefined };
  const isWritten = only.grammar !== undefined && (named !== undefined || (others.length === 0 && single));
  if (isWritten) return { ...forced, ...writtenText(only, options) };
  const tag = structuralTag(callable, forced.single, options);
  const byJson = () => jsonWay(callable, named, forced.single, options);
  yield;
  if (tag === undefined) return { ...forced, ...byJson() };
  const otherwise = possible(byJson);
  return { ...forced, output: "native", constraint: tag, ...(otherwise !== undefined && { otherwise }) };
}

const cannot = (what: string): UnsupportedError =>
  new UnsupportedError(`tool_choice: the engine of this model cannot enforce ${what}`, { param: "tool_choice" });

/** Where the prompt has opened reasoning, nothing but a tag can let it pass on an engine that does not do so by itself. */
const isInTheWay = ({ startsInReasoning, engineWaitsForReasoning }: PlanOptions): boolean =>
  startsInReasoning && engineWaitsForReasoning !== true;

/** Calls as JSON. Throws UnsupportedErrors, and InvalidRequestError where the schemas can't be combined. */
function jsonWay(
  tools: readonly ToolDefinition[],
  named: string | undefined,
  single: boolean,
  options: PlanOptions,
): Way {
  if (!options.engineConstraints.has("json_schema")) throw cannot("a tool call");
  if (isInTheWay(options)) throw new ReasoningInTheWayError();
  const schema = named === undefined ? listSchema(tools, single) : namedSchema(tools[0]!);
  return {
    output: named === undefined ? "json" : { named },
    constraint: { kind: "json_schema", schema: JSON.stringify(schema) },
  };
}

function possible(way: () => Way): Way | undefined {
  try {
    return way();
  } catch (error) {
    if (error instanceof InvalidRequestError) return undefined;
    throw error;
  }
}

/** The text of a custom tool, under its own grammar: the whole answer, as in the JSON of a call the text would be another. */
function writtenText({ name, grammar }: ToolDefinition, options: PlanOptions): Way {
  const { syntax, definition } = grammar!;
  const output = { text: name };
  const { unified } = familiesOf(options.reasoningParser, options.toolParser);
  // in a format of channels a bare text belongs to none of them
  if (unified !== undefined) throw cannot(`the grammar of '${name}'`);
  if (syntax === "lark") {
    if (!options.engineConstraints.has("grammar")) throw cannot(`the grammar of '${name}'`);
    if (isInTheWay(options)) throw new ReasoningInTheWayError();
    return { output, constraint: { kind: "grammar", grammar: definition } };
  }
  const thought = thoughtOf(options.toolParser, options);
  if (thought !== undefined && options.engineConstraints.has("structural_tag"))
    return { output, constraint: structural(textFormat(definition, thought)) };
  if (!options.engineConstraints.has("regex")) throw cannot(`the grammar of '${name}'`);
  if (isInTheWay(options)) throw new ReasoningInTheWayError();
  return { output, constraint: { kind: "regex", pattern: definition } };
}

/** Of tools of one name the first. */
function distinct(tools: readonly ToolDefinition[]): ToolDefinition[] {
  const names = new Set<string>();
  return tools.filter(({ name }) => !names.has(name) && names.add(name));
}

const structural = (format: Format): Constraint => ({
  kind: "structural_tag",
  tag: JSON.stringify({ type: "structural_tag", format }),
});

/** Undefined where the family has no tag or the engine takes none. */
function structuralTag(
  tools: readonly ToolDefinition[],
  single: boolean,
  options: PlanOptions,
): Constraint | undefined {
  const parser = toolParserName(options.toolParser);
  if (parser === undefined || !options.engineConstraints.has("structural_tag")) return undefined;
  const thought = thoughtOf(parser, options);
  // reasoning is open, and nothing tells how it ends
  if (isInTheWay(options) && thought === undefined) return undefined;
  const format = callFormat(parser, tools, { single, thought, sample: options.callSample ?? "" });
  return format && structural(format);
}

/** Holds the calls of strict tools to their schemas, if the model makes any. Undefined where nothing asks for that, or nothing can. */
function strictTag(tools: readonly ToolDefinition[], single: boolean, options: PlanOptions): Constraint | undefined {
  const parser = toolParserName(options.toolParser);
  const isWanted = tools.some(({ strict }) => strict);
  if (parser === undefined || !isWanted || !options.engineConstraints.has("structural_tag")) return undefined;
  const thought = thoughtOf(parser, options);
  const format = strictFormat(parser, tools, { single, thought, sample: options.callSample ?? "" });
  return format && structural(format);
}

/**
 * Lets the model either call or answer in the request's own format. Undefined where that cannot be told; the format alone is enforced
 * then, as vLLM does it.
 */
function callOrAnswer(tools: readonly ToolDefinition[], single: boolean, options: PlanOptions): Constraint | undefined {
  const { constraint, callSample: sample = "" } = options;
  const parser = toolParserName(options.toolParser);
  if (constraint === undefined || parser === undefined || !options.engineConstraints.has("structural_tag"))
    return undefined;
  const thought = thoughtOf(parser, options);
  if (isInTheWay(options) && thought === undefined) return undefined;
  const tag = callOrAnswerTag(parser, tools, constraint, { ...options, single, thought, sample });
  return tag === undefined ? undefined : { kind: "structural_tag", tag };
}

/** The reasoning that a constraint has to let pass; undefined: none, or it is not known how it ends. */
function thoughtOf(toolParser: string | undefined, options: PlanOptions): Thought | undefined {
  const { reasoningParser, startsInReasoning: isOpen, engineWaitsForReasoning: waits } = options;
  if (waits === true || options.reasoningIsOver === true) return undefined;
  const state = { isOpen, isSure: waits === false };
  if (toolParser === "harmony") return { ...HARMONY_THOUGHT, ...state };
  if (toolParser === "inkling") return { ...INKLING_THOUGHT, ...state };
  if (reasoningParser === undefined || unifiedReasoning(reasoningParser) !== undefined) return undefined;
  const [open, close] = [reasoningFamily(reasoningParser)?.open[0], reasoningFamily(reasoningParser)?.close[0]];
  return open === undefined || close === undefined ? undefined : { open, close, ...state };
}
