/** The one internal form of a conversation that every client API is turned into. */
export type Role = "system" | "user" | "assistant" | "tool";

export interface Message {
  readonly role: Role;
  /** The text of all parts, in order. */
  readonly content: string;
  /** `name` of the speaker or tool, where the API gave one. */
  readonly name?: string;
  /** Thoughts of an earlier assistant turn. */
  readonly reasoning?: string;
  readonly toolCallId?: string;
}

export interface Conversation {
  readonly messages: readonly Message[];
  /** The prompt ends with the header of a new assistant turn. */
  readonly addGenerationPrompt: boolean;
  /** The prompt ends inside the last message, which the model goes on with. */
  readonly continueFinalMessage: boolean;
  /** Further variables of the chat template. */
  readonly templateVariables: Readonly<Record<string, unknown>>;
}
