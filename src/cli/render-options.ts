import type { OptionTable } from "../config/option.ts";

/** Settings of `collie render`. */
export const renderOptions = {
  modelPath: {
    flag: "model-path",
    aliases: ["model"],
    type: "string",
    group: "Model",
    help: "Folder with the model's files, or a Hugging Face repository (org/name or org/name@revision).",
  },
  chatTemplate: {
    flag: "chat-template",
    type: "string",
    group: "Model",
    help: "Another template than the model's: the name of one of its own, a native encoder (harmony, deepseek_v32, ...), or a file, Jinja or chat_template.json.",
  },
  reasoningParser: {
    flag: "reasoning-parser",
    type: "string",
    group: "Model",
    help: "Whose openers are looked for at the prompt's end. Default: found from the template or the model's architecture.",
  },
  messages: {
    flag: "messages",
    type: "enum",
    values: ["given", "chat"],
    default: "given",
    group: "Model",
    help: "What reaches the template: messages and tools as they are given, which is what transformers does, or in the form that Chat Completions brings them into for it.",
  },
} as const satisfies OptionTable;
