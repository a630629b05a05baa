/** Qwen 3's token ids, by an implementation that is not the gateway's. */
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { Tokenizer } from "@huggingface/tokenizers";
import { bundleFolder } from "./scripted-engine.ts";

export class QwenText {
  private readonly tokenizer: Tokenizer;

  constructor() {
    const json = (name: string) => JSON.parse(readFileSync(join(bundleFolder, name), "utf8")) as object;
    this.tokenizer = new Tokenizer(json("tokenizer.json"), json("tokenizer_config.json"));
  }

  encode(text: string): number[] {
    return Array.from(this.tokenizer.encode(text, { add_special_tokens: false }).ids);
  }

  /** Id of a text that is one token. */
  one(text: string): number {
    const ids = this.encode(text);
    if (ids.length !== 1 || ids[0] === undefined) throw new TypeError(`'${text}' is not one token`);
    return ids[0];
  }
}
