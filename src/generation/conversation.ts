/** The one internal form of a conversation that every client API is turned into. */
export type Role = "system" | "developer" | "user" | "assistant" | "tool";

export interface TextPart {
  readonly type: "text";
  readonly text: string;
}
export type ContentPart = TextPart;
/** Text, or parts as the client sent them; nothing at all is the empty string. */
export type Content = string | readonly ContentPart[];

/** A call of an earlier assistant turn. */
export interface ToolCall {
  /** As the client sent it; the empty string where the API has none. */
  readonly id: string;
  readonly name: string;
  /** JSON text as the client sent it. */
  readonly arguments: string;
}

export interface Message {
  readonly role: Role;
  readonly content: Content;
  /** The client sent nothing as the content of a message with calls, rather than an empty text. Templates may tell the two apart. */
  readonly withoutContent?: true;
  /** `name` of the speaker or tool, where the API gave one. */
  readonly name?: string;
  /** Thoughts of an earlier assistant turn. */
  readonly reasoning?: string;
  /** Calls of an assistant turn; absent where there are none. */
  readonly toolCalls?: readonly ToolCall[];
  /** The call that a tool message answers. */
  readonly toolCallId?: string;
  /** A tool message whose tool failed. Its text is shown as it is; an empty one becomes "error". */
  readonly isError?: true;
}

/** A grammar of Lark's notation, or a regular expression that the whole text matches. */
export interface ToolGrammar {
  readonly syntax: "lark" | "regex";
  readonly definition: string;
}

export interface ToolDefinition {
  /** `custom`: takes free text, which the model writes as the argument `input` of a function. */
  readonly type: "function" | "custom";
  readonly name: string;
  readonly description?: string;
  /** JSON schema of the arguments, as `JSON.parse` gives it; absent: nothing is known of them. */
  readonly parameters?: unknown;
  /** Of a custom tool: what its text must look like; absent: any text. */
  readonly grammar?: ToolGrammar;
  /** The client relies on arguments that satisfy the schema. */
  readonly strict: boolean;
  /** What templates get, as plain data or as `parseLossless` gives it: `{type: "function", function: {…}}`. Absent: made from the above. */
  readonly declaration?: unknown;
  /** A message of the conversation tells the model of it: it may be called, but templates do not list it, so that prompts keep their beginning. */
  readonly toldInside?: true;
}

/** `allowed`: only these tools count. `named`: this one must be called; the mode is `required` then. */
export interface ToolChoice {
  readonly mode: "none" | "auto" | "required";
  readonly allowed?: readonly string[];
  readonly named?: string;
}

export interface Conversation {
  readonly messages: readonly Message[];
  readonly tools: readonly ToolDefinition[];
  /** The request has a list of tools, though an empty one: templates get it, and the template `tool_use` is taken where there is one. */
  readonly emptyToolList?: true;
  readonly toolChoice: ToolChoice;
  /** False: at most one call. */
  readonly parallelToolCalls: boolean;
  /** The prompt ends with the header of a new assistant turn. */
  readonly addGenerationPrompt: boolean;
  /** The prompt ends inside the last message, which the model goes on with: its content (true), or the field of this name. */
  readonly continueFinalMessage: boolean | string;
  /** How much the model is to think: a level of OpenAI's scale, or a number up to 1. `none`, `minimal` and 0 switch thinking off. */
  readonly reasoningEffort?: string | number;
  /** Turns thinking on or off where the template has a switch, whatever the effort; absent: the template's own default. */
  readonly thinking?: boolean;
  /**
   * System and developer messages behind the first others stay where they are: as such where the template takes them there, else as
   * user text in tags. Without it they go to the front.
   */
  readonly systemInPlace?: true;
  /** The format that is asked of the answer, in the form of Chat Completions; some templates tell the model. */
  readonly responseFormat?: unknown;
  readonly documents?: readonly unknown[];
  /** Takes the template of this name, where the model has several. */
  readonly template?: string;
  /** Further variables of the chat template, which come before those the gateway makes of other fields. */
  readonly templateVariables: Readonly<Record<string, unknown>> | ReadonlyMap<string, unknown>;
}

/** The tools that models are given: all, or those that the choice allows. */
export function offeredTools({
  tools,
  toolChoice,
}: Pick<Conversation, "tools" | "toolChoice">): readonly ToolDefinition[] {
  const { allowed } = toolChoice;
  if (allowed === undefined) return tools;
  const names = new Set(allowed);
  return tools.filter(({ name }) => names.has(name));
}

/** Those of them that templates list. */
export const listedTools = (conversation: Pick<Conversation, "tools" | "toolChoice">): readonly ToolDefinition[] =>
  offeredTools(conversation).filter(({ toldInside }) => toldInside !== true);

/** Text of a message's content: parts on lines of their own, as vLLM gives them to templates that take text only. */
export const contentText = (content: Content): string =>
  typeof content === "string" ? content : content.map(({ text }) => text).join("\n");
