import { readFile } from "node:fs/promises";
import { type Static, Type as t } from "@sinclair/typebox";
import { chatConversation } from "../apis/chat/messages.ts";
import { messageList, promptFields } from "../apis/chat/schema.ts";
import { plannedPrompt } from "../apis/shared/planning.ts";
import { maybe, refuseUnsupportedPrompt } from "../apis/shared/sampling-fields.ts";
import { ConfigError } from "../config/config-error.ts";
import type { Environment } from "../config/given.ts";
import { resolveOptions } from "../config/resolve.ts";
import { InvalidRequestError } from "../errors.ts";
import { chosenParsers, modelKind, modelTemplate } from "../fleet/model-kind.ts";
import { encodePrompt } from "../generation/prompt.ts";
import { ENCODER_NAMES, type EncoderName } from "../template/encoders/native-encoder.ts";
import { ChatTemplateError } from "../template/errors.ts";
import { compileModelTemplate, type TemplateSource } from "../template/model-template.ts";
import { BlockWriter } from "./byte-streams.ts";
import { checkedLine } from "./checked-line.ts";
import { type AnswerLine, answerLines } from "./json-lines.ts";
import { type ModelFiles, modelFiles, modelTokenizer } from "./model.ts";
import { renderOptions } from "./render-options.ts";
import { toldFailures } from "./told-failures.ts";

const STDIN = 0;
const STDOUT = 1;

const renderLine = t.Object(
  { messages: messageList, ...promptFields, clock: maybe(t.String()) },
  { additionalProperties: true },
);
type RenderLine = Static<typeof renderLine>;

/** `collie render`: conversations to prompts, as Chat Completions make them. */
export async function run(args: readonly string[], env: Environment): Promise<number> {
  const { values } = resolveOptions(renderOptions, { args, env });
  const { modelPath, chatTemplate, reasoningParser } = values;
  if (modelPath === undefined) throw new ConfigError(["--model-path: is needed: a folder or a repository (org/name)"]);
  return toldFailures(async () => {
    const files = await modelFiles(modelPath, env);
    const answer = await renderer(modelPath, files, env, { chatTemplate, reasoningParser });
    await answerLines(STDIN, new BlockWriter(STDOUT), answer);
  });
}

interface RendererOptions {
  readonly chatTemplate: string | undefined;
  readonly reasoningParser: string | undefined;
}

async function renderer(
  modelPath: string,
  files: ModelFiles,
  env: Environment,
  { chatTemplate, reasoningParser }: RendererOptions,
): Promise<AnswerLine> {
  const kind = modelKind(modelPath, files);
  const own = modelTemplate(kind, files);
  const { found, name } = await givenTemplate(chatTemplate, own, (text) => modelTemplate(kind, files, text));
  if (found === undefined) throw new ChatTemplateError("the model has no chat template: name one by --chat-template");
  const template = compileModelTemplate(found);
  const source = name === undefined ? found.source : (found.named?.[name] ?? "");
  const parsers = chosenParsers({ reasoningParser, toolCallParser: undefined }, { ...kind, chatTemplate: source });
  const tokenizer = await modelTokenizer(files, env);
  const encoder = { tokenizer, encodeLong: (text: string) => Promise.resolve(tokenizer.encode(text)) };
  return async (value, text) => {
    const line = checkedLine(renderLine, value);
    refuseUnsupportedPrompt(line);
    const conversation = chatConversation(line, text);
    const now = clockOf(line);
    const named = name === undefined ? conversation : { ...conversation, template: name };
    const prompt = plannedPrompt(named, parsers, template, now === undefined ? {} : { now });
    const ids = await encodePrompt(prompt.text, encoder, 0);
    return { text: prompt.text, ids: Array.from(ids), ends_in_reasoning: prompt.startsInReasoning };
  };
}

/** The template that `--chat-template` means; `name`: it is the model's own of this name. */
async function givenTemplate(
  given: string | undefined,
  own: TemplateSource | undefined,
  withText: (text: string) => TemplateSource | undefined,
): Promise<{ readonly found: TemplateSource | undefined; readonly name?: string }> {
  if (given === undefined) return { found: own };
  if (own?.named !== undefined && Object.hasOwn(own.named, given)) return { found: own, name: given };
  if (isEncoder(given)) return { found: { source: "", specials: {}, encoder: given } };
  try {
    return { found: withText(await readFile(given, "utf8")) };
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== "ENOENT") throw error;
    const names = [...Object.keys(own?.named ?? {}), ...ENCODER_NAMES].join(", ");
    throw new ConfigError([`--chat-template: ${JSON.stringify(given)} is no file, and none of ${names}`]);
  }
}

const isEncoder = (name: string): name is EncoderName => (ENCODER_NAMES as readonly string[]).includes(name);

const CLOCK = /^\d{4}-\d\d-\d\dT\d\d:\d\d(?::\d\d(?:\.\d{1,6})?)?$/;

/** The local time that a line wants templates to see. */
function clockOf({ clock }: RenderLine): Date | undefined {
  if (clock === undefined || clock === null) return undefined;
  const now = new Date(CLOCK.test(clock) ? clock : Number.NaN);
  if (Number.isNaN(now.getTime()))
    throw new InvalidRequestError("Invalid 'clock': expected a local time such as 2026-01-31T12:00:00", {
      param: "clock",
    });
  return now;
}
