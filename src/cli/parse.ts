import { type Static, Type as t } from "@sinclair/typebox";
import { promptFields } from "../apis/chat/schema.ts";
import { chatTools } from "../apis/chat/tool-choice.ts";
import { foldAnswer, readIds, readText, type TakenApart } from "../apis/parse/answer.ts";
import { ENGINE_CONSTRAINTS, plannedParsing } from "../apis/shared/planning.ts";
import { maybe } from "../apis/shared/sampling-fields.ts";
import { ConfigError } from "../config/config-error.ts";
import type { Environment } from "../config/given.ts";
import { resolveOptions } from "../config/resolve.ts";
import { InvalidRequestError } from "../errors.ts";
import { chosenParsers, modelKind, modelTemplate } from "../fleet/model-kind.ts";
import type { ParsingOptions } from "../generation/choice.ts";
import { type ParserNames, TEXT_ONLY, type Vocabulary } from "../generation/parsing.ts";
import { planTools, type ToolPlan } from "../generation/tools/plan.ts";
import { defaultStart, unifiedReasoning } from "../parsers/names.ts";
import { endOfSequenceIds } from "../tokenizer/model-files.ts";
import type { Tokenizer } from "../tokenizer/tokenizer.ts";
import { BlockWriter } from "./byte-streams.ts";
import { checkedLine } from "./checked-line.ts";
import { answerLines } from "./json-lines.ts";
import { modelFiles, modelTokenizer } from "./model.ts";
import { parseOptions } from "./parse-options.ts";
import { checkParsers } from "./parser-problem.ts";
import { toldFailures } from "./told-failures.ts";

const STDIN = 0;
const STDOUT = 1;

const { tools, tool_choice, parallel_tool_calls, functions, function_call } = promptFields;
const parseLine = t.Object(
  {
    chunks: maybe(t.Array(t.String())),
    ids: maybe(t.Array(t.Array(t.Integer({ minimum: 0, maximum: 2 ** 32 - 1 })))),
    ...{ tools, tool_choice, parallel_tool_calls, functions, function_call },
    starts_in_reasoning: maybe(t.Boolean()),
    finish_reason: maybe(t.String()),
  },
  { additionalProperties: true },
);
type ParseLine = Static<typeof parseLine>;

/** A model as far as ids need it. */
interface IdReader {
  readonly tokenizer: Tokenizer;
  readonly eosTokenIds: ReadonlySet<number>;
}

/** `collie parse`: what models wrote, taken apart as Chat Completions take it apart. */
export async function run(args: readonly string[], env: Environment): Promise<number> {
  const { values } = resolveOptions(parseOptions, { args, env });
  const { modelPath, toolCallParser, reasoningParser } = values;
  if (modelPath === undefined && toolCallParser === undefined && reasoningParser === undefined)
    throw new ConfigError(["--tool-call-parser, --reasoning-parser or --model-path is needed"]);
  checkParsers(reasoningParser, toolCallParser);
  return toldFailures(async () => {
    let names: ParserNames = { reasoning: reasoningParser ?? reasoningOf(toolCallParser), tool: toolCallParser };
    let reader: IdReader | undefined;
    if (modelPath !== undefined) {
      const files = await modelFiles(modelPath, env);
      const kind = modelKind(modelPath, files);
      names = chosenParsers(values, { ...kind, chatTemplate: modelTemplate(kind, files)?.source ?? "" });
      const tokenizer = await modelTokenizer(files, env);
      reader = { tokenizer, eosTokenIds: new Set(endOfSequenceIds(files, tokenizer)) };
    }
    await answerLines(STDIN, new BlockWriter(STDOUT), (value) => parsed(checkedLine(parseLine, value), names, reader));
  });
}

/** The parser of reasoning that a format of calls has in itself. */
const reasoningOf = (tool: string | undefined): string | undefined =>
  tool === undefined ? undefined : unifiedReasoning(tool);

function parsed(line: ParseLine, names: ParserNames, reader: IdReader | undefined): object {
  const { finish, events } = takenApart(line, names, reader);
  const { content, reasoning, calls } = foldAnswer(events);
  return {
    content,
    reasoning,
    tool_calls: calls.map(({ id, name, arguments: args }, index) => ({ index, id, name, arguments: args })),
    finish_reason: finish,
    events,
  };
}

function takenApart(line: ParseLine, names: ParserNames, reader: IdReader | undefined): TakenApart {
  const { chunks, ids } = line;
  const ended = engineFinish(line);
  if (chunks && !ids) return readText(chunks, lineParsing(line, names, TEXT_ONLY), ended);
  if (!ids || chunks) throw new InvalidRequestError("Either 'chunks' or 'ids' is needed, not both");
  if (reader === undefined) throw new InvalidRequestError("ids: --model-path is needed for them", { param: "ids" });
  const { tokenizer, eosTokenIds } = reader;
  const { vocabSize } = tokenizer;
  const foreign = ids.flat().find((id) => id >= vocabSize);
  if (foreign !== undefined)
    throw new InvalidRequestError(`ids: the model has no token ${foreign}, its vocabulary ends at ${vocabSize - 1}`, {
      param: "ids",
    });
  return readIds(ids, tokenizer, eosTokenIds, lineParsing(line, names, tokenizer), ended);
}

function engineFinish({ finish_reason: reason }: ParseLine): "stop" | "length" {
  if (reason === undefined || reason === null) return "stop";
  if (reason === "stop" || reason === "length") return reason;
  throw new InvalidRequestError("finish_reason: what the engine says is stop or length", { param: "finish_reason" });
}

function lineParsing(line: ParseLine, names: ParserNames, vocabulary: Vocabulary): ParsingOptions | undefined {
  const startsInReasoning = line.starts_in_reasoning ?? defaultStart(names.reasoning) === "reasoning";
  const conversation = chatTools(line, undefined);
  // Whether reasoning had to be switched off for a forced call is the prompt's affair, which is over.
  const planned = planTools(conversation, {
    toolParser: names.tool,
    reasoningParser: names.reasoning,
    startsInReasoning,
    engineConstraints: ENGINE_CONSTRAINTS,
    engineWaitsForReasoning: true,
  });
  // Without tools nothing is known of their arguments, but calls can be told.
  const isUnknown = conversation.tools.length === 0 && line.tool_choice !== "none";
  const plan: ToolPlan = isUnknown ? { ...planned, parse: true } : planned;
  const { mode, named } = conversation.toolChoice;
  const constrained = mode === "required";
  return plannedParsing(vocabulary, names, { plan, startsInReasoning }, { constrained, isForced: named !== undefined });
}
