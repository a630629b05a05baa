/** Opens the tokenizer that it is sent and encodes texts; answers with all ids and the decoded text. */
import { openTokenizer, type TokenizerHandle } from "../../../src/tokenizer/load.ts";

declare const self: Worker;

self.onmessage = ({ data }: MessageEvent<{ handle: TokenizerHandle; texts: string[] }>) => {
  const tokenizer = openTokenizer(data.handle);
  const ids = data.texts.map((text) => [...tokenizer.encode(text)]);
  const decoder = tokenizer.decoder({ skipSpecialTokens: false });
  const decoded = ids.map((row) => row.map((id) => decoder.push(id)).join("") + decoder.end());
  postMessage({ ids, decoded });
};
