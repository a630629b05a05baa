/** What models write, over all samples of the parsers, is told as it is by Completions and /generate, streamed as whole. */
import { afterAll, expect, test } from "bun:test";
import { checkCompletion, foldCompletion } from "../../support/schemas/completions.ts";
import { checkResult, lastResults } from "../../support/schemas/generate.ts";
import { answered, frames, speaking } from "../../unit/apis/completions/gateway.ts";
import { decodeAll, encode } from "../../unit/generation/demo-tokenizer.ts";
import { startGateway } from "../../unit/server/gateway.ts";
import { SAMPLE_FILES, samplesOf } from "../parsers/samples.ts";

let said = "";
let size = 1;
const gateway = startGateway(
  [],
  speaking(
    () => said,
    () => size,
  ),
);
afterAll(() => gateway.stop());

test.each(SAMPLE_FILES.map((file) => [file]))(
  "%s",
  async (file) => {
    const samples = samplesOf(file);
    expect(samples.length).toBeGreaterThan(5);
    for (const [i, { id, input }] of samples.entries()) {
      said = input;
      size = 1 + (i % 3);
      // special tokens of the tokenizer's own in what a model writes are not shown unless that is asked for
      const skip = i % 2 === 0;
      const text = decodeAll(encode(input), skip);
      const body = { prompt: [1], max_tokens: 4000, skip_special_tokens: skip, logprobs: 1, return_token_ids: true };
      const { id: _, created, usage, ...whole } = checkCompletion(await answered(gateway, "/v1/completions", body));
      expect({ id, text: whole.choices[0]!.text }).toEqual({ id, text });
      expect(foldCompletion(await frames(gateway, "/v1/completions", body))).toEqual(whole);
      const native = { input_ids: [1], sampling_params: { max_new_tokens: 4000, skip_special_tokens: skip } };
      const result = checkResult(await answered(gateway, "/generate", native));
      const [last] = lastResults(await frames(gateway, "/generate", native));
      expect([result.text, last!.text]).toEqual([text, text]);
      expect(last!.output_ids).toEqual(result.output_ids);
      expect(whole.choices[0]!.token_ids).toEqual(result.output_ids);
    }
  },
  60_000,
);
