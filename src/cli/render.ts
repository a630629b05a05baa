import { Type as t } from "@sinclair/typebox";
import { chatConversation } from "../apis/chat/messages.ts";
import { messageList, promptFields } from "../apis/chat/schema.ts";
import { plannedPrompt } from "../apis/shared/planning.ts";
import { maybe, refuseUnsupportedPrompt } from "../apis/shared/sampling-fields.ts";
import { ConfigError } from "../config/config-error.ts";
import type { Environment } from "../config/given.ts";
import type { ValuesOf } from "../config/option.ts";
import { resolveOptions } from "../config/resolve.ts";
import { InvalidRequestError } from "../errors.ts";
import { givenTemplate, UnknownTemplateError } from "../fleet/given-template.ts";
import { chosenParsers, modelKind } from "../fleet/model-kind.ts";
import type { ParserNames } from "../generation/parsing.ts";
import { encodePrompt, type PromptEncoder } from "../generation/prompt.ts";
import type { PlannedPrompt } from "../generation/tools/plan-prompt.ts";
import { opensReasoning } from "../parsers/detect.ts";
import { type ChatTemplate, renderedPrompt } from "../template/chat-template.ts";
import { ChatTemplateError } from "../template/errors.ts";
import { compileModelTemplate } from "../template/model-template.ts";
import { BlockWriter } from "./byte-streams.ts";
import { checkedLine } from "./checked-line.ts";
import { type AnswerLine, answerLines } from "./json-lines.ts";
import { type ModelFiles, modelFiles, modelTokenizer } from "./model.ts";
import { checkParsers } from "./parser-problem.ts";
import { givenInput, givenLine } from "./render-given.ts";
import { renderOptions } from "./render-options.ts";
import { toldFailures } from "./told-failures.ts";

const STDIN = 0;
const STDOUT = 1;

const chatLine = t.Object(
  { messages: messageList, ...promptFields, clock: maybe(t.String()) },
  { additionalProperties: true },
);
/** `collie render`: conversations to prompts, as transformers or Chat Completions make them. */
export async function run(args: readonly string[], env: Environment): Promise<number> {
  const { values } = resolveOptions(renderOptions, { args, env });
  const { modelPath } = values;
  if (modelPath === undefined) throw new ConfigError(["--model-path: is needed: a folder or a repository (org/name)"]);
  checkParsers(values.reasoningParser, undefined);
  return toldFailures(async () => {
    const files = await modelFiles(modelPath, env);
    const answer = await renderer(modelPath, files, env, values);
    await answerLines(STDIN, new BlockWriter(STDOUT), answer);
  });
}

async function renderer(
  modelPath: string,
  files: ModelFiles,
  env: Environment,
  { chatTemplate, reasoningParser, messages }: ValuesOf<typeof renderOptions>,
): Promise<AnswerLine> {
  const kind = modelKind(modelPath, files);
  const found = namedTemplate(kind, files, chatTemplate);
  if (found === undefined) throw new ChatTemplateError("the model has no chat template: name one by --chat-template");
  const template = compileModelTemplate(found);
  const parsers = chosenParsers(
    { reasoningParser, toolCallParser: undefined },
    { ...kind, chatTemplate: found.source },
  );
  const prompt = messages === "chat" ? chatPrompts(template, parsers) : givenPrompts(template, parsers);
  const tokenizer = await modelTokenizer(files, env);
  const encoder: PromptEncoder = { tokenizer, encodeLong: async (text, options) => tokenizer.encode(text, options) };
  return async (value, text) => {
    const made = prompt(value, text);
    const ids = await encodePrompt(made, encoder, 0);
    return { text: made.text, ids: Array.from(ids), ends_in_reasoning: made.startsInReasoning };
  };
}

function namedTemplate(...given: Parameters<typeof givenTemplate>): ReturnType<typeof givenTemplate> {
  try {
    return givenTemplate(...given);
  } catch (error) {
    if (!(error instanceof UnknownTemplateError)) throw error;
    throw new ConfigError([`--chat-template: ${error.message}`]);
  }
}

/** Makes a prompt of a line. Throws GatewayErrors. */
type Prompts = (value: object, text: string) => Omit<PlannedPrompt, "plan">;

const chatPrompts =
  (template: ChatTemplate, parsers: ParserNames): Prompts =>
  (value, text) => {
    const line = checkedLine(chatLine, value);
    refuseUnsupportedPrompt(line);
    return plannedPrompt(chatConversation(line, text), parsers, template, clockOf(line));
  };

const givenPrompts =
  (template: ChatTemplate, { reasoning }: ParserNames): Prompts =>
  (value, line) => {
    const given = checkedLine(givenLine, value);
    const made = renderedPrompt(template, { ...givenInput(given, line, template), ...clockOf(given) });
    return { ...made, startsInReasoning: reasoning !== undefined && opensReasoning(made.text, reasoning) };
  };

const CLOCK = /^\d{4}-\d\d-\d\dT\d\d:\d\d(?::\d\d(?:\.\d{1,6})?)?$/;

/** The local time that a line wants templates to see. */
function clockOf({ clock }: { readonly clock?: string | null }): { readonly now?: Date } {
  if (clock === undefined || clock === null) return {};
  const now = new Date(CLOCK.test(clock) ? clock : Number.NaN);
  if (Number.isNaN(now.getTime()))
    throw new InvalidRequestError("Invalid 'clock': expected a local time such as 2026-01-31T12:00:00", {
      param: "clock",
    });
  return { now };
}
