import { cardProblem, cardText } from "./model-cards.ts";
import type { OptionTable } from "./option.ts";

function aliasProblem(value: string): string | undefined {
  return /^[^=]+=.+$/.test(value) ? undefined : "must be alias=name";
}

/** Where models come from, and how their prompts are written and their answers read. */
export const modelOptions = {
  modelPath: {
    flag: "model-path",
    aliases: ["model"],
    type: "string",
    group: "Model",
    help: "Folder with the model's tokenizer and configuration, or a Hugging Face repository (org/name or org/name@revision); without it the engine is asked for them.",
  },
  tokenizerPath: {
    flag: "tokenizer-path",
    type: "string",
    group: "Model",
    help: "Folder, tokenizer's file or repository to use the tokenizer of, instead of the one in --model-path.",
  },
  chatTemplate: {
    flag: "chat-template",
    type: "string",
    group: "Model",
    help: "Another chat template than the model's: the name of one of its own (tool_use, rag), a native encoder (harmony, deepseek_v32), or a file, Jinja or chat_template.json.",
  },
  reasoningParser: {
    flag: "reasoning-parser",
    type: "string",
    group: "Model",
    help: "Parser of the model's reasoning (docs/models.md); without it the one that its chat template or architecture asks for, none: passthrough.",
  },
  toolCallParser: {
    flag: "tool-call-parser",
    type: "string",
    group: "Model",
    help: "Parser of the model's tool calls, likewise.",
  },
  reasoningField: {
    flag: "reasoning-field",
    type: "enum",
    values: ["reasoning_content", "reasoning", "both"],
    default: "reasoning_content",
    group: "Model",
    help: "Where Chat Completions put reasoning.",
  },
  stopInReasoning: {
    flag: "stop-in-reasoning",
    type: "boolean",
    group: "Model",
    help: "Stop strings end an answer in its reasoning as well, not only in its content.",
  },
  modelAlias: {
    flag: "model-alias",
    type: "strings",
    check: aliasProblem,
    group: "Model",
    help: "Another name for a model: alias=name.",
  },
  modelCard: {
    flag: "model-card",
    fileKeys: ["models"],
    type: "strings",
    check: cardProblem,
    ofGroup: cardText,
    group: "Model",
    help: "Settings of one model, ID:key=value:key=value, with reasoning_parser, tool_call_parser, chat_template, alias, fallback, first_token_timeout_secs, inter_token_timeout_secs, request_timeout_secs and hedge_after_ms; in a file also the list `models`. Parsers and templates for all models go before those of a card.",
  },
} as const satisfies OptionTable;
