/** The prompts of a stream as the engines see them, from the template and the tokenizer of the model folder. */
import { readModelFolder } from "../../src/simulator/model/simulated-model.ts";
import { compileModelTemplate, findChatTemplate } from "../../src/template/model-template.ts";
import { prepareMessages } from "../../src/template/prepare-messages.ts";
import { loadTokenizer, openTokenizer } from "../../src/tokenizer/load.ts";
import { modelFolder } from "../lab/paths.ts";
import type { Ask } from "./shapes.ts";

/** A request with its prompt as token ids. */
export interface TokenAsk {
  readonly atMs: number;
  readonly ids: Uint32Array;
  readonly maxTokens: number;
  readonly key: string;
}

/** Gives the prompts of later calls; the tokenizer is loaded once. */
export async function promptReader(): Promise<(asks: readonly Ask[]) => TokenAsk[]> {
  const files = await readModelFolder(modelFolder());
  const source = findChatTemplate(files);
  if (source === undefined) throw new Error("the model folder has no chat template");
  const template = compileModelTemplate(source);
  const tokenizer = openTokenizer(await loadTokenizer(files));
  return (asks) =>
    asks.map(({ atMs, messages, maxTokens, key }) => {
      const prepared = prepareMessages(messages.map((message) => ({ ...message })));
      const text = template.render({ messages: prepared, addGenerationPrompt: true });
      return { atMs, ids: tokenizer.encode(text), maxTokens, key };
    });
}
