/** What a request's tools and their choice mean for the engine and for the reading of the answer. */
import type { Constraint } from "../../engines/engine.ts";
import { InvalidRequestError, UnsupportedError } from "../../errors.ts";
import { reasoningFamily, toolParserName, unifiedReasoning } from "../../parsers/names.ts";
import { type Conversation, offeredTools, type ToolDefinition } from "../conversation.ts";
import { listSchema, namedSchema } from "./forced-schema.ts";
import { callFormat, HARMONY_THOUGHT, INKLING_THOUGHT, type Thought } from "./structural-tag.ts";

export interface ToolPlan {
  /** The answer is searched for calls. */
  readonly parse: boolean;
  /**
   * How calls are written: in the model's own format; as a JSON list of `{name, parameters}`; as the bare arguments of one function.
   * The last two are for `createForcedCallParser`.
   */
  readonly output: "native" | "json" | { readonly named: string };
  /** What the engine must enforce. */
  readonly constraint: Constraint | undefined;
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
  /** What the engine can enforce. */
  readonly engineConstraints: ReadonlySet<Constraint["kind"]>;
  /** The engine lets reasoning pass by itself before it applies a constraint. */
  readonly engineWaitsForReasoning?: boolean;
  /** The request asks for a constraint of its own, e.g. a response format. */
  readonly isConstrained?: boolean;
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
export function planTools(
  conversation: Pick<Conversation, "tools" | "toolChoice" | "parallelToolCalls">,
  options: PlanOptions,
): ToolPlan {
  const tools = distinct(offeredTools(conversation));
  const { mode, named } = conversation.toolChoice;
  const single = !conversation.parallelToolCalls;
  const native = { output: "native", constraint: undefined, single, tools } as const;
  if (tools.length === 0 || mode === "none") return { ...native, parse: false };
  if (mode === "auto") return { ...native, parse: toolParserName(options.toolParser) !== undefined };
  if (options.isConstrained === true) {
    throw new InvalidRequestError("A tool call that must be made and a format of the answer exclude each other", {
      param: "tool_choice",
    });
  }
  const callable = named === undefined ? tools : tools.filter(({ name }) => name === named);
  const [only] = callable;
  if (only === undefined)
    throw new InvalidRequestError("tool_choice names no tool of the request", { param: "tool_choice" });
  // the one function that is named is called once, as OpenAI does
  const forced = { tools, parse: true, single: single || named !== undefined };
  const tag = structuralTag(callable, forced.single, options);
  if (tag !== undefined) return { ...forced, output: "native", constraint: { kind: "structural_tag", tag } };
  if (!options.engineConstraints.has("json_schema")) {
    throw new UnsupportedError(`tool_choice: the engine of this model cannot enforce a tool call`, {
      param: "tool_choice",
    });
  }
  if (options.startsInReasoning && options.engineWaitsForReasoning !== true) throw new ReasoningInTheWayError();
  const schema = named === undefined ? listSchema(callable, forced.single) : namedSchema(only);
  return {
    ...forced,
    output: named === undefined ? "json" : { named },
    constraint: { kind: "json_schema", schema: JSON.stringify(schema) },
  };
}

/** Of tools of one name the first. */
function distinct(tools: readonly ToolDefinition[]): ToolDefinition[] {
  const names = new Set<string>();
  return tools.filter(({ name }) => !names.has(name) && names.add(name));
}

/** Text of the tag; undefined where the family has none or the engine takes none. */
function structuralTag(tools: readonly ToolDefinition[], single: boolean, options: PlanOptions): string | undefined {
  const parser = toolParserName(options.toolParser);
  if (parser === undefined || !options.engineConstraints.has("structural_tag")) return undefined;
  const thought = options.engineWaitsForReasoning === true ? undefined : thoughtOf(parser, options);
  // reasoning is open, and nothing tells how it ends
  if (options.startsInReasoning && options.engineWaitsForReasoning !== true && thought === undefined) return undefined;
  const format = callFormat(parser, tools, { single, thought, sample: options.callSample ?? "" });
  return format === undefined ? undefined : JSON.stringify({ type: "structural_tag", format });
}

function thoughtOf(toolParser: string, { reasoningParser, startsInReasoning }: PlanOptions): Thought | undefined {
  const isOpen = startsInReasoning;
  if (toolParser === "harmony") return { ...HARMONY_THOUGHT, isOpen };
  if (toolParser === "inkling") return { ...INKLING_THOUGHT, isOpen };
  if (reasoningParser === undefined || unifiedReasoning(reasoningParser) !== undefined) return undefined;
  const [open, close] = [reasoningFamily(reasoningParser)?.open[0], reasoningFamily(reasoningParser)?.close[0]];
  return open === undefined || close === undefined ? undefined : { open, close, isOpen };
}
