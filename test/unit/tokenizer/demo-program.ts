/** Compiled by a test: loads the embedded demo model, encodes here and in a worker, prints what it saw. */
import { demoModelFiles } from "../../../src/tokenizer/demo-model.ts";
import { imageKey, imageOfBytes } from "../../../src/tokenizer/image-cache.ts";
import { loadTokenizer, openTokenizer, PREBUILT } from "../../../src/tokenizer/load.ts";

const TEXT = "<|im_start|>user\nHello!<|im_end|>";
const files = await demoModelFiles();
const [json, image] = ["tokenizer.json", PREBUILT].map((name) => files.get(name) as Uint8Array) as [
  Uint8Array,
  Uint8Array,
];
const imageFits = imageOfBytes(image, imageKey(json)) !== undefined;
const handle = await loadTokenizer(files);
const worker = new Worker(new URL("./encode-worker.ts", import.meta.url).href);
worker.onmessage = ({ data }: MessageEvent<{ ids: number[][] }>) => {
  const ids = [...openTokenizer(handle).encode(TEXT)];
  console.log(JSON.stringify({ names: [...files.keys()], imageFits, ids, workerIds: data.ids }));
  worker.terminate();
};
worker.postMessage({ handle, texts: [TEXT] });
