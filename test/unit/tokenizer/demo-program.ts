/** Compiled by a test: loads the embedded demo model, encodes here and in a worker, prints what it saw. */
import { demoModelFiles } from "../../../src/tokenizer/demo-model.ts";
import { embeddedTables } from "../../../src/tokenizer/embedded.ts";
import { tokenizerSource } from "../../../src/tokenizer/formats/source.ts";
import { loadTokenizer, openTokenizer } from "../../../src/tokenizer/load.ts";
import { tableKey } from "../../../src/tokenizer/table-cache.ts";

const TEXT = "<|im_start|>user\nHello!<|im_end|>";
const files = await demoModelFiles();
const key = tableKey(tokenizerSource(files).contents());
const imageFits = (await embeddedTables(key)) !== undefined;
const handle = await loadTokenizer(files);
const worker = new Worker(new URL("./encode-worker.ts", import.meta.url).href);
worker.onmessage = ({ data }: MessageEvent<{ ids: number[][] }>) => {
  const ids = [...openTokenizer(handle).encode(TEXT)];
  console.log(JSON.stringify({ names: [...files.keys()], imageFits, ids, workerIds: data.ids }));
  worker.terminate();
};
worker.postMessage({ handle, texts: [TEXT] });
