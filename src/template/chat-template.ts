import { InvalidRequestError } from "../errors.ts";
import { PIECE_ITEMS, type Steps } from "../steps.ts";
import { continueFinal } from "./continue-message.ts";
import { type CompiledTemplate, compileTemplate } from "./engine/template.ts";
import { isDict, isList, type Value } from "./engine/values.ts";
import { ChatTemplateError, TemplateRaisedError } from "./errors.ts";
import { plainSteps, plainValue } from "./plain-value.ts";
import {
  type MessageData,
  messageSteps,
  messageValue,
  type PreparedMessage,
  prepareMessages,
} from "./prepare-messages.ts";

export { MAX_TEXT } from "./engine/limits.ts";
export { ChatTemplateError, TemplateLimitError, TemplateRaisedError, TemplateTextLimitError } from "./errors.ts";

/** Plain data throughout: what `JSON.parse` or `parseLossless` gives. */
export interface TemplateInput {
  /** As the template is to see them; see `prepareMessages`. */
  readonly messages: readonly MessageData[];
  readonly addGenerationPrompt: boolean;
  /** An empty list is one: it chooses the template `tool_use`, where there is one. Absent: undefined in the template. */
  readonly tools?: readonly unknown[];
  readonly documents?: readonly unknown[];
  /** The prompt ends inside the final message: behind its content (true), or behind the field of this name. */
  readonly continueFinalMessage?: boolean | string;
  /** Takes the named template, where the model has several. */
  readonly template?: string;
  /** `chat_template_kwargs`: further variables; they replace special tokens, but never the ones above. */
  readonly variables?: Readonly<Record<string, unknown>> | ReadonlyMap<string, unknown>;
  /** The clock of `strftime_now`; the local time counts. Default: now. */
  readonly now?: Date;
}

/** A piece of a prompt that is encoded by itself. */
export interface Segment {
  readonly text: string;
  /** Its text is a special token; false: special tokens in it are plain text. */
  readonly special: boolean;
}

/** A model's chat template, compiled once. */
export interface ChatTemplate {
  /**
   * The prompt's text. Throws InvalidRequestError when it fails on the conversation; of the class ChatTemplateRefusal when the template
   * refuses it by itself.
   */
  render(input: TemplateInput): string;
  /** The same in steps of a few milliseconds, where it can be had so. */
  renderSteps?(input: TemplateInput): Steps<string>;
  /** Of formats whose prompts are encoded in pieces: those pieces, whose texts joined are what `render` gives. */
  renderSegments?(input: TemplateInput): readonly Segment[];
  /** The same in steps; of such formats there is no `renderSteps`. */
  renderSegmentsSteps?(input: TemplateInput): Steps<readonly Segment[]>;
  /** The template writes tool calls only where content is null: see `prepareMessages`. */
  readonly needsNullContent: boolean;
}

/** A prompt on its way to its ids. `segments`: it is encoded in these pieces, not as one text. */
export interface RenderedPrompt {
  readonly text: string;
  readonly segments?: readonly Segment[];
}

/** The prompt as it is to be encoded. Throws as `ChatTemplate.render`. */
export function renderedPrompt(template: ChatTemplate, input: TemplateInput): RenderedPrompt {
  if (template.renderSegments === undefined) return { text: template.render(input) };
  return ofSegments(template.renderSegments(input));
}

/** The same in steps, as far as the template has them. */
export function* renderedPromptSteps(template: ChatTemplate, input: TemplateInput): Steps<RenderedPrompt> {
  if (template.renderSegmentsSteps !== undefined) return ofSegments(yield* template.renderSegmentsSteps(input));
  if (template.renderSteps !== undefined) return { text: yield* template.renderSteps(input) };
  return renderedPrompt(template, input);
}

const ofSegments = (segments: readonly Segment[]): RenderedPrompt => ({
  text: segments.map(({ text }) => text).join(""),
  segments,
});

/** The template refuses a conversation by `raise_exception`; the message is its own. */
export class ChatTemplateRefusal extends InvalidRequestError {}

/** Templates by name; `default` is the one for most conversations. */
export type NamedTemplates = Readonly<Record<string, string>>;

interface Compiled {
  readonly source: string;
  readonly template: CompiledTemplate;
}

function compileNamed(name: string, source: string): Compiled {
  try {
    return { source, template: compileTemplate(source) };
  } catch (error) {
    if (!(error instanceof ChatTemplateError)) throw error;
    const which = name === "default" ? "the chat template" : `the chat template '${name}'`;
    const where = error.line === undefined ? "" : `, line ${error.line}`;
    throw new ChatTemplateError(`${which} does not compile${where}: ${error.message}`, {
      line: error.line,
      cause: error,
    });
  }
}

/**
 * @param source the template, or several by name.
 * @param specials texts of the special tokens that templates use, e.g. `bos_token`.
 * Throws a ChatTemplateError with the line of what is wrong.
 */
export function compileChatTemplate(
  source: string | NamedTemplates,
  specials: Readonly<Record<string, string>>,
): ChatTemplate {
  const sources = typeof source === "string" ? { default: source } : source;
  const templates = new Map(Object.entries(sources).map(([name, text]) => [name, compileNamed(name, text)]));
  const constants = new Map<string, Value>(Object.entries(specials));
  let needsNullContent: boolean | undefined;
  return {
    render(input) {
      const { template, source: text } = choose(templates, input);
      return renderWith(template, text, constants, input).next().value as string;
    },
    renderSteps(input) {
      const { template, source: text } = choose(templates, input);
      return renderWith(template, text, constants, input, true);
    },
    get needsNullContent() {
      needsNullContent ??= losesCalls((messages) => this.render({ messages, addGenerationPrompt: false }));
      return needsNullContent;
    },
  };
}

function choose(templates: ReadonlyMap<string, Compiled>, { template: name, tools }: TemplateInput): Compiled {
  if (name !== undefined) {
    const named = templates.get(name);
    if (named === undefined) throw new InvalidRequestError(`The model has no chat template '${name.slice(0, 100)}'`);
    return named;
  }
  const chosen = (tools === undefined ? undefined : templates.get("tool_use")) ?? templates.get("default");
  if (chosen !== undefined) return chosen;
  throw new InvalidRequestError("The model has several chat templates, none of them the default");
}

/** Not `inSteps`: what comes first is the text. */
function* renderWith(
  template: CompiledTemplate,
  source: string,
  constants: ReadonlyMap<string, Value>,
  input: TemplateInput,
  inSteps = false,
): Generator<void, string> {
  const { continueFinalMessage: field = false, addGenerationPrompt } = input;
  const continues = field !== false && field !== "";
  if (continues && addGenerationPrompt)
    throw new InvalidRequestError("continue_final_message and add_generation_prompt exclude each other", {
      param: "continue_final_message",
    });
  try {
    const messages: PreparedMessage[] = [];
    for (const message of input.messages) {
      messages.push(inSteps ? yield* messageSteps(message) : messageValue(message));
      if (inSteps && messages.length % PIECE_ITEMS === 0) yield;
    }
    const continuation = continues ? continueFinal(messages, field, source) : undefined;
    const variables = yield* variablesOf(constants, input, inSteps);
    variables.set("messages", continuation?.messages ?? messages);
    if (inSteps) yield;
    const text = inSteps
      ? yield* template.renderSteps(variables, input.now, largeValues(messages, variables))
      : template.render(variables, input.now);
    return continuation === undefined ? text : continuation.cut(text);
  } catch (error) {
    if (error instanceof TemplateRaisedError)
      throw new ChatTemplateRefusal(error.message, { param: "messages", cause: error });
    if (!(error instanceof ChatTemplateError)) throw error;
    const where = error.line === undefined ? "" : ` (line ${error.line} of the template)`;
    throw new InvalidRequestError(`The chat template fails on these messages: ${error.message}${where}`, {
      param: "messages",
      cause: error,
    });
  }
}

/** What templates write as JSON: tools, each by itself or all of them, documents, and the arguments of calls. */
function* largeValues(messages: readonly PreparedMessage[], variables: ReadonlyMap<string, Value>): Iterable<Value> {
  for (const name of ["tools", "documents"]) {
    const list = variables.get(name) ?? null;
    if (isList(list)) yield* list;
    yield list;
  }
  yield* callArguments(messages);
}

/** The arguments of all calls of a conversation. */
export function* callArguments(messages: readonly PreparedMessage[]): Iterable<Value> {
  for (const message of messages) {
    const calls = message.get("tool_calls") ?? null;
    if (!isList(calls)) continue;
    for (const call of calls) {
      const called = isDict(call) ? (call.get("function") ?? null) : null;
      if (isDict(called)) yield called.get("arguments") ?? null;
    }
  }
}

function* variablesOf(
  constants: ReadonlyMap<string, Value>,
  input: TemplateInput,
  inSteps: boolean,
): Steps<Map<string, Value>> {
  const { variables, tools, documents, addGenerationPrompt } = input;
  const values = new Map(constants);
  if (variables !== undefined)
    for (const [name, value] of variables instanceof Map ? variables : Object.entries(variables))
      if (value !== undefined) values.set(name, inSteps ? yield* plainSteps(value) : plainValue(value));
  if (tools !== undefined) values.set("tools", inSteps ? yield* plainSteps(tools) : plainValue(tools));
  if (documents !== undefined) values.set("documents", inSteps ? yield* plainSteps(documents) : plainValue(documents));
  values.set("add_generation_prompt", addGenerationPrompt);
  return values;
}

const PROBE = "probe_of_a_call";

/**
 * Whether a template writes a tool call of a message with null content, and not of one without content. Tried out, with arguments as an
 * object and as a string: templates want one or the other.
 */
function losesCalls(render: (messages: readonly MessageData[]) => string): boolean {
  const conversation = (args: unknown): MessageData[] => [
    { role: "user", content: "a" },
    {
      role: "assistant",
      content: null,
      tool_calls: [{ id: "call00000", type: "function", function: { name: PROBE, arguments: args } }],
    },
    { role: "tool", content: "b", tool_call_id: "call00000", name: PROBE },
  ];
  const writes = (keepNullContent: boolean): boolean =>
    [{}, "{}"].some((args) => {
      try {
        return render(prepareMessages(conversation(args), { keepNullContent }).map(withoutName)).includes(PROBE);
      } catch {
        return false;
      }
    });
  return !writes(false) && writes(true);
}

/** The result of the call shall not show the name. */
function withoutName(message: ReadonlyMap<string, Value>): ReadonlyMap<string, Value> {
  const copy = new Map(message);
  copy.delete("name");
  return copy;
}
