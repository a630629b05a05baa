/** The models that the agents run on: real tokenizers, a template of each family, and what such a model writes. */
import { cpSync, mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";

export const CONTEXT_LENGTH = 131_072;

const templates = join(import.meta.dir, "..", "golden", "template", "chat_templates");

export interface AgentModel {
  readonly name: string;
  /** Whether it thinks before it speaks. */
  readonly thinks: boolean;
  /** What the model writes that thinks `thought` and calls one tool. */
  call(thought: string, tool: string, args: Record<string, string>): string;
  /** What it writes that thinks and says something. */
  say(thought: string, text: string): string;
  /** Fills a folder with the model's files. `fixtures` is the folder of scripts/fixtures.ts. */
  files(folder: string, fixtures: string): void;
}

function copyFiles(folder: string, fixtures: string, tokenizer: string, architecture: string, type: string): void {
  mkdirSync(folder, { recursive: true });
  cpSync(join(fixtures, "tokenizers", `${tokenizer}.json`), join(folder, "tokenizer.json"));
  cpSync(join(fixtures, "tokenizer-configs", `${tokenizer}.json`), join(folder, "tokenizer_config.json"));
  const config = { architectures: [architecture], model_type: type, max_position_embeddings: CONTEXT_LENGTH };
  writeFileSync(join(folder, "config.json"), JSON.stringify(config));
}

export const MODELS: readonly AgentModel[] = [
  {
    name: "Qwen3-8B",
    thinks: true,
    call: (thought, name, args) =>
      `<think>\n${thought}\n</think>\n\n<tool_call>\n${JSON.stringify({ name, arguments: args })}\n</tool_call>`,
    say: (thought, text) => `<think>\n${thought}\n</think>\n\n${text}`,
    files: (folder, fixtures) => copyFiles(folder, fixtures, "qwen3", "Qwen3ForCausalLM", "qwen3"),
  },
  {
    name: "Llama-3.1-8B-Instruct",
    thinks: false,
    call: (_, name, parameters) => JSON.stringify({ name, parameters }),
    say: (_, text) => text,
    files(folder, fixtures) {
      copyFiles(folder, fixtures, "llama3_1", "LlamaForCausalLM", "llama");
      // in the form of Llama 3.1's own, which the tokenizer's package lacks
      cpSync(join(templates, "tools_in_user.jinja"), join(folder, "chat_template.jinja"));
    },
  },
];
