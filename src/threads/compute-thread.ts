/** Entry point of a compute thread: builds tables and encodes long texts, one job after the other. */
import { type Answer, failureOf, sharedIds, textOf } from "../fleet/control-link.ts";
import { buildTokenizer, openApart } from "../tokenizer/load.ts";
import type { Tokenizer } from "../tokenizer/tokenizer.ts";
import type { ComputeJob, FromCompute } from "./messages.ts";

declare const self: Worker;

/** Tokenizers by the key of their handle. */
const tokenizers = new Map<string, Tokenizer>();

function run(job: ComputeJob): unknown {
  if (job.type === "build")
    return buildTokenizer(job.files, job.cacheDir === undefined ? {} : { cacheDir: job.cacheDir });
  let tokenizer = tokenizers.get(job.key);
  if (tokenizer === undefined) {
    if (job.handle === undefined) throw new Error(`no tokenizer ${job.key}`);
    tokenizer = openApart(job.handle);
    tokenizers.set(job.key, tokenizer);
  }
  return sharedIds(tokenizer.encode(textOf(job.text), job.options));
}

self.onmessage = ({ data }: MessageEvent<ComputeJob>) => {
  let answer: Answer;
  try {
    answer = { value: run(data) };
  } catch (error) {
    answer = failureOf(error);
  }
  self.postMessage(answer satisfies FromCompute);
};
