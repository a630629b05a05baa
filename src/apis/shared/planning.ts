import type { Constraint } from "../../engines/engine.ts";
import { constraintsOf } from "../../engines/features.ts";
import { ContextLengthError, InvalidRequestError, UnsupportedError } from "../../errors.ts";
import type { Model } from "../../fleet/view.ts";
import type { ParsingOptions } from "../../generation/choice.ts";
import type { Conversation } from "../../generation/conversation.ts";
import { type AnswerShape, type ParserNames, parsingOptions, type Vocabulary } from "../../generation/parsing.ts";
import { isLong, MAX_TEXT, TemplateTextLimitError } from "../../generation/prompt.ts";
import { argumentSchema } from "../../generation/tools/declaration.ts";
import { createForcedCallParser } from "../../generation/tools/forced-call.ts";
import type { PlanOptions } from "../../generation/tools/plan.ts";
import {
  type PlannedPrompt,
  type PromptOptions,
  planPrompt,
  planPromptInTurns,
} from "../../generation/tools/plan-prompt.ts";
import { beginsInReasoning, opensReasoning } from "../../parsers/detect.ts";

/** What an engine can enforce that is not known yet. */
export const ENGINE_CONSTRAINTS: ReadonlySet<Constraint["kind"]> = new Set([
  "json_schema",
  "structural_tag",
  "regex",
  "grammar",
]);

/** Refuses a constraint that no engine of the model can enforce, by the name of the field that asks for it. Throws UnsupportedError. */
export function refuseUnoffered({ kind }: Constraint, { entry, features }: Model, param: string): void {
  if (constraintsOf(features).has(kind)) return;
  throw new UnsupportedError(`The engines of the model '${entry.id}' do not offer ${param}`, { param });
}

/**
 * The prompt of a conversation with a model, and what is to be done about its tools. `constraint`: of the request itself;
 * `param`: the field that the conversation is in, which errors name. Throws GatewayErrors.
 */
export async function planFor(
  conversation: Conversation,
  { entry, template, waitsForReasoning, features }: Model,
  constraint: Constraint | undefined,
  param: string,
): Promise<PlannedPrompt> {
  if (template === undefined)
    throw new InvalidRequestError(`The model '${entry.id}' has no chat template`, { param: "model" });
  const options = {
    constraint,
    engineWaitsForReasoning: waitsForReasoning,
    engineConstraints: constraintsOf(features),
    startsInReasoning: conversation.continueFinalMessage === false ? beginsInReasoning : opensReasoning,
  };
  try {
    if (isLong(conversation))
      return await planPromptInTurns(conversation, template(), promptOptions(entry.parsers, options));
    return plannedPrompt(conversation, entry.parsers, template(), options);
  } catch (error) {
    throw error instanceof InvalidRequestError ? inTermsOf(error, param, entry.contextLength) : error;
  }
}

/** What templates say of their `messages`, in terms of the request and the model's context (in tokens; 0: unknown). */
function inTermsOf(error: InvalidRequestError, param: string, contextLength: number): InvalidRequestError {
  if (error.cause instanceof TemplateTextLimitError && contextLength > 0) {
    const message = `This model's maximum context length is ${contextLength} tokens. However, the prompt has more than ${MAX_TEXT} characters, which is more than this server sends. Please shorten the ${param}.`;
    return new ContextLengthError(message, { param, cause: error });
  }
  if (error.param !== "messages" || param === "messages") return error;
  return new InvalidRequestError(error.message, { param, cause: error });
}

/**
 * The same by the names of the parsers. `startsInReasoning` tells of a prompt and the name of a parser whether the answer begins in
 * reasoning, by default what the prompt says. `now`: the clock of templates. Throws GatewayErrors.
 */
export function plannedPrompt(
  conversation: Conversation,
  parsers: ParserNames,
  template: ReturnType<NonNullable<Model["template"]>>,
  options: PlanningOptions,
): PlannedPrompt {
  return planPrompt(conversation, template, promptOptions(parsers, options));
}

type PlanningOptions = Pick<PlanOptions, "constraint" | "engineWaitsForReasoning"> & {
  /** By default those of an engine that is not known. */
  readonly engineConstraints?: PlanOptions["engineConstraints"];
  readonly startsInReasoning?: typeof opensReasoning;
  readonly now?: Date;
};

function promptOptions(
  { reasoning, tool }: ParserNames,
  { startsInReasoning = opensReasoning, ...options }: PlanningOptions,
): PromptOptions {
  return {
    engineConstraints: ENGINE_CONSTRAINTS,
    ...options,
    toolParser: tool,
    reasoningParser: reasoning,
    opensReasoning: (text) => reasoning !== undefined && startsInReasoning(text, reasoning),
  };
}

/** How the answers to a planned prompt are read. `constrained`: the engine is told a grammar. */
export function parsingFor(
  { toolChoice }: Pick<Conversation, "toolChoice">,
  { tokenizer, entry }: Model,
  planned: PlannedPrompt,
  options: Pick<AnswerShape, "constrained" | "mergesReasoning">,
): ParsingOptions | undefined {
  return plannedParsing(tokenizer, entry.parsers, planned, { ...options, isForced: toolChoice.named !== undefined });
}

/** The same by the names of the parsers. `isForced`: the request names the function. Throws UnknownParserError. */
export function plannedParsing(
  vocabulary: Vocabulary,
  names: ParserNames,
  { plan, startsInReasoning: isOpen }: Pick<PlannedPrompt, "plan" | "startsInReasoning">,
  options: Pick<AnswerShape, "constrained" | "isForced" | "mergesReasoning">,
): ParsingOptions | undefined {
  const { reasoning } = names;
  const startsInReasoning = isOpen && reasoning !== undefined;
  const { output, parse, single, jsonAnswer } = plan;
  const tools = plan.tools.map((tool) => ({ name: tool.name, parameters: argumentSchema(tool) }));
  const customTools = new Set(plan.tools.filter(({ type }) => type === "custom").map(({ name }) => name));
  return parsingOptions(vocabulary, names, {
    tools,
    customTools,
    parseTools: parse,
    startsInReasoning,
    single,
    jsonAnswer,
    spelledMarkers: plan.constraint?.kind !== "structural_tag" ? undefined : plan.mustCall ? "all" : "calls",
    ...options,
    ...(output !== "native" && {
      forced: (filter, singleTokenMarkers) =>
        createForcedCallParser(output, names, {
          tools,
          startsInReasoning,
          singleTokenMarkers,
          parseTools: true,
          keepsMarkers: options.mergesReasoning === true,
          ...(filter !== undefined && { filter }),
        }),
    }),
  });
}
