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
    help: "Another template than the model's: the name of one of its own, a native encoder (harmony, deepseek_v32, ...), or a file.",
  },
  reasoningParser: {
    flag: "reasoning-parser",
    type: "string",
    group: "Model",
    help: "Whose openers are looked for at the prompt's end. Default: found from the template or the model's architecture.",
  },
} as const satisfies OptionTable;
