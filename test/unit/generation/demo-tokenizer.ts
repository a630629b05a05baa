import { findChatTemplate } from "../../../src/template/model-template.ts";
import { demoModelFiles } from "../../../src/tokenizer/demo-model.ts";
import { loadTokenizer, openTokenizer } from "../../../src/tokenizer/load.ts";

const files = await demoModelFiles();

/** Tables, tokenizer and chat template of Qwen 3. */
export const demoHandle = await loadTokenizer(files);
export const demoTokenizer = openTokenizer(demoHandle);
export const demoTemplate = findChatTemplate(files);

/** `<|im_end|>` and `<|endoftext|>`. */
export const IM_END = 151645;
export const END_OF_TEXT = 151643;

export const encode = (text: string): number[] => Array.from(demoTokenizer.encode(text));
export const decodeAll = (ids: readonly number[], skipSpecialTokens = true): string => {
  const decoder = demoTokenizer.decoder({ skipSpecialTokens });
  return ids.map((id) => decoder.push(id)).join("") + decoder.end();
};
