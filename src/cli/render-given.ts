/** Conversations as transformers' `apply_chat_template` takes them: the messages and tools of a line go to the template as they are. */
import { type Static, Type as t } from "@sinclair/typebox";
import { maybe } from "../apis/shared/sampling-fields.ts";
import { InvalidRequestError, UnsupportedError } from "../errors.ts";
import { thinkingSwitch } from "../generation/prompt.ts";
import { templateTraits } from "../generation/template-traits.ts";
import type { ChatTemplate, TemplateInput } from "../template/chat-template.ts";
import { parseLossless } from "../template/lossless-json.ts";
import { type MessageData, prepareMessages } from "../template/prepare-messages.ts";

const anything = t.Unknown();
const object = t.Record(t.String(), anything);

/** What a line may have. Fields that are not listed are ignored. */
export const givenLine = t.Object(
  {
    messages: t.Array(object),
    tools: maybe(t.Array(anything)),
    documents: maybe(t.Array(anything)),
    add_generation_prompt: maybe(t.Boolean()),
    continue_final_message: maybe(t.Union([t.Boolean(), t.String()])),
    chat_template_kwargs: maybe(object),
    reasoning_effort: maybe(t.Union([t.String(), t.Number()])),
    tool_choice: maybe(t.Union([t.String(), object])),
    response_format: maybe(object),
    chat_template: maybe(t.String()),
    clock: maybe(t.String()),
  },
  { additionalProperties: true },
);
type GivenLine = Static<typeof givenLine>;

/**
 * What a template is given for a line. `text`: the line itself, for its numbers and the order of its keys. Throws InvalidRequestError.
 */
export function givenInput(line: GivenLine, text: string, template: ChatTemplate): TemplateInput {
  if (line.chat_template)
    throw new UnsupportedError("chat_template may not be set by a line", { param: "chat_template" });
  const sent = lossless(text);
  const { continue_final_message: continues } = line;
  const continueFinalMessage = continues ?? false;
  const goesOn = continueFinalMessage !== false && continueFinalMessage !== "";
  const [tools, documents] = [sent.get("tools"), sent.get("documents")] as readonly (readonly unknown[] | undefined)[];
  return {
    messages: prepareMessages(sent.get("messages") as readonly MessageData[], {
      keepNullContent: template.needsNullContent,
    }),
    addGenerationPrompt: line.add_generation_prompt ?? !goesOn,
    continueFinalMessage,
    variables: variablesOf(line, sent, template),
    ...(tools && { tools }),
    ...(documents && { documents }),
  };
}

function lossless(text: string): ReadonlyMap<string, unknown> {
  try {
    return parseLossless(text) as ReadonlyMap<string, unknown>;
  } catch (error) {
    if (!(error instanceof SyntaxError)) throw error;
    throw new InvalidRequestError(error.message, { cause: error });
  }
}

/** Those that the gateway adds for a request's other fields, and `chat_template_kwargs` above them. */
function variablesOf(
  { reasoning_effort: effort, tool_choice: choice, tools }: GivenLine,
  sent: ReadonlyMap<string, unknown>,
  template: ChatTemplate,
): ReadonlyMap<string, unknown> {
  const variables = new Map<string, unknown>();
  if (effort !== undefined && effort !== null) {
    const { thinkingKey } = templateTraits(template, undefined, Boolean(tools));
    for (const [name, value] of thinkingSwitch(effort, thinkingKey)) variables.set(name, value);
  }
  const mode = typeof choice === "object" && choice !== null ? "required" : (choice ?? "auto");
  if (mode !== "auto") variables.set("tool_choice", mode);
  const format = sent.get("response_format");
  if (format) variables.set("response_format", format);
  for (const [name, value] of (sent.get("chat_template_kwargs") ?? []) as Iterable<[string, unknown]>)
    variables.set(name, value);
  return variables;
}
