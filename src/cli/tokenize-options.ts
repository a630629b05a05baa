import type { OptionTable } from "../config/option.ts";

/** Settings of `collie tokenize`. */
export const tokenizeOptions = {
  modelPath: {
    flag: "model-path",
    aliases: ["model"],
    type: "string",
    group: "Model",
    help: "Folder with a tokenizer, its file, or a Hugging Face repository (org/name or org/name@revision).",
  },
  jsonl: {
    flag: "jsonl",
    type: "boolean",
    group: "Input and output",
    help: "Read a JSON string a line from standard input, print a JSON array of ids a line.",
  },
  decode: {
    flag: "decode",
    type: "boolean",
    group: "Input and output",
    help: "The other way round: token ids in, text out.",
  },
  addSpecialTokens: {
    flag: "add-special-tokens",
    type: "boolean",
    group: "Tokens",
    help: "Add what the tokenizer puts around a text, such as BOS and EOS.",
  },
  skipSpecialTokens: {
    flag: "skip-special-tokens",
    type: "boolean",
    group: "Tokens",
    help: "With --decode: leave special tokens out of the text.",
  },
} as const satisfies OptionTable;
