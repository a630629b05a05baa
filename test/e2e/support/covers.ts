/** Names of tests that prove what a vendor's client can do here: docs/apis.md is made of them (scripts/apis-docs.ts). */

export const APIS = [
  "Chat Completions",
  "Completions",
  "Embeddings",
  "Rerank",
  "Classify",
  "Responses",
  "Conversations",
  "Messages",
  "Message Batches",
  "Interactions",
  "Models",
] as const;
export type Api = (typeof APIS)[number];

/** What is shown of every client of an API that generates; each API has more of its own. */
export const CASES = [
  "text",
  "stream",
  "reasoning",
  "one tool",
  "parallel tools",
  "structured output",
  "error before the first byte",
  "error after it",
  "cut stream",
  "long stream",
] as const;
export type Case = (typeof CASES)[number];

/** npm packages; `fetch` where no client of the vendor's has it. */
export type Client =
  | "openai"
  | "@openai/agents"
  | "@anthropic-ai/sdk"
  | "@google/genai"
  | "ai + @ai-sdk/openai"
  | "ai + @ai-sdk/anthropic"
  | "ai + @ai-sdk/google"
  | "fetch";

/**
 * The name of such a test: `test(covers("Responses", "stream", "openai"), …)`. Call it with three literals: the page is checked against
 * the sources.
 */
export const covers = (api: Api, feature: Case | (string & {}), client: Client): string =>
  `${api} | ${feature} | ${client}`;
