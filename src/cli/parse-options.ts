import type { OptionTable } from "../config/option.ts";

/** Settings of `collie parse`. */
export const parseOptions = {
  modelPath: {
    flag: "model-path",
    aliases: ["model"],
    type: "string",
    group: "Model",
    help: "Folder with the model's files, or a Hugging Face repository (org/name or org/name@revision). Needed for ids.",
  },
  toolCallParser: {
    flag: "tool-call-parser",
    type: "string",
    group: "Parsers",
    help: "What reads tool calls. Default: that of the model, or none.",
  },
  reasoningParser: {
    flag: "reasoning-parser",
    type: "string",
    group: "Parsers",
    help: "What reads reasoning. Default: that of the model, or none.",
  },
} as const satisfies OptionTable;
