import { type ParserNames, parsingOptions, TEXT_ONLY } from "../../generation/parsing.ts";
import { argumentSchema } from "../../generation/tools/declaration.ts";
import { defaultStart } from "../../parsers/names.ts";
import type { RequestScope } from "../../server/request-scope.ts";
import { chatTools } from "../chat/tool-choice.ts";
import { takingTurns } from "../tokens/turns.ts";
import { foldAnswer, textSteps } from "./answer.ts";
import type { FunctionCallRequest, ReasoningRequest } from "./schema.ts";

type Answer = ReturnType<typeof foldAnswer>;

/** UTF-16 units between two offers to give way. */
const SLICE = 1 << 14;

/** Draws what was found as a client knows it. */
export type Draw = (answer: Answer) => object;

/** Finds the tool calls of a text. Throws UnknownParserError and what the signal says. */
export function handleFunctionCall(body: FunctionCallRequest, scope: RequestScope, draw: Draw): Promise<Response> {
  return responded(scope, async () => {
    const { tools } = chatTools({ tools: body.tools ?? null }, undefined);
    const schemas = tools.map((tool) => ({ name: tool.name, parameters: argumentSchema(tool) }));
    const names = { reasoning: undefined, tool: body.tool_call_parser };
    return draw(await takenApart(body.text, names, schemas, false, scope.signal));
  });
}

/** Tells the reasoning of a text from the rest. Throws UnknownParserError and what the signal says. */
export function handleReasoning(body: ReasoningRequest, scope: RequestScope, draw: Draw): Promise<Response> {
  return responded(scope, async () => {
    const { reasoning_parser: reasoning, text } = body;
    const starts = defaultStart(reasoning) === "reasoning";
    return draw(await takenApart(text, { reasoning, tool: undefined }, [], starts, scope.signal));
  });
}

/** SMG's form. */
export const smgCalls: Draw = ({ content, reasoning, calls }) => ({
  remaining_text: content,
  ...(reasoning !== "" && { reasoning_text: reasoning }),
  tool_calls: calls.map(({ name, arguments: args }) => ({ function: { name, arguments: args } })),
  success: calls.every(({ isComplete }) => isComplete),
});
export const smgReasoning: Draw = ({ content, reasoning }) => ({
  normal_text: content,
  reasoning_text: reasoning,
  success: true,
});

/** SGLang's form. */
export const sglangCalls: Draw = ({ content, calls }) => ({
  normal_text: content,
  calls: calls.map(({ name, arguments: parameters }, i) => ({ tool_index: i, name, parameters })),
});
export const sglangReasoning: Draw = ({ content, reasoning }) => ({ reasoning_text: reasoning, text: content });

async function responded(scope: RequestScope, work: () => Promise<object>): Promise<Response> {
  try {
    return Response.json(await work(), { headers: { "x-request-id": scope.id } });
  } finally {
    scope.finish();
  }
}

async function takenApart(
  text: string,
  names: ParserNames,
  tools: readonly { readonly name: string; readonly parameters: unknown }[],
  startsInReasoning: boolean,
  signal: AbortSignal,
): Promise<Answer> {
  const parsing = parsingOptions(TEXT_ONLY, names, {
    tools,
    parseTools: names.tool !== undefined,
    startsInReasoning,
    constrained: false,
    single: false,
    isForced: false,
  });
  const turn = takingTurns(signal);
  const steps = textSteps(slices(text), parsing, "stop");
  for (;;) {
    const step = steps.next();
    if (step.done === true) return foldAnswer(step.value.events);
    const due = turn();
    if (due !== undefined) await due;
  }
}

function* slices(text: string): Generator<string> {
  for (let at = 0; at < text.length; at += SLICE) yield text.slice(at, at + SLICE);
}
