import { openGeneral } from "../../../../src/tokenizer/general/open.ts";

self.onmessage = ({ data }: MessageEvent<{ memory: SharedArrayBuffer; text: string }>) => {
  self.postMessage([...openGeneral(data.memory).encode(data.text)]);
};
