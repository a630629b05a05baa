import { forced, greedy, hello, type Row } from "./row.ts";

export const samplingCases: readonly Row[] = [
  ["the model's own defaults, seed 7", { seed: 7, max_tokens: 40 }],
  ["temperature 1, seed 1", { temperature: 1, top_p: 1, top_k: -1, seed: 1, max_tokens: 40 }],
  ["top_k 3, seed 2", { temperature: 1, top_k: 3, seed: 2, max_tokens: 40 }],
  ["top_p 0.3, seed 3", { temperature: 1, top_p: 0.3, seed: 3, max_tokens: 40 }],
  ["min_p 0.9, seed 4", { temperature: 1, min_p: 0.9, seed: 4, max_tokens: 40 }],
  ["frequency and presence penalty", { ...greedy, frequency_penalty: 1.5, presence_penalty: 1 }],
  ["repetition_penalty", { ...greedy, repetition_penalty: 1.8 }],
  ["logit_bias", { ...greedy, ...hello(4) }, { expectText: "HelloHelloHelloHello" }],
  ["n = 3, seed 5", { n: 3, temperature: 1, seed: 5, max_tokens: 12 }],
  [
    "n = 2, greedy",
    { n: 2, temperature: 0, max_tokens: 4 },
    {
      expectText: /^_GRAY<any Authorization/,
      peerDiffers: "vLLM refuses it; OpenAI and Collie answer with copies of one",
    },
  ],
  ["max_tokens 1", { ...greedy, max_tokens: 1 }],
  ["max_completion_tokens 2", { temperature: 0, max_completion_tokens: 2 }],
];

export const logprobsCases: readonly Row[] = [
  ["logprobs without alternatives", { ...greedy, max_tokens: 6, logprobs: true }],
  ["logprobs, top_logprobs 0", { ...greedy, max_tokens: 6, logprobs: true, top_logprobs: 0 }],
  ["logprobs, top_logprobs 5", { ...greedy, max_tokens: 12, logprobs: true, top_logprobs: 5 }],
  ["logprobs, top_logprobs 20", { ...greedy, max_tokens: 3, logprobs: true, top_logprobs: 20 }],
  [
    "logprobs of sampled tokens",
    { temperature: 1, top_k: -1, top_p: 1, seed: 1, max_tokens: 12, logprobs: true, top_logprobs: 2 },
  ],
  ["logprobs of split characters", { ...forced, logprobs: true, top_logprobs: 1 }],
  [
    "logprobs as token ids",
    { ...greedy, max_tokens: 3, logprobs: true, top_logprobs: 2, return_tokens_as_token_ids: true },
  ],
  ["logprobs, n = 2", { temperature: 1, seed: 1, n: 2, max_tokens: 4, logprobs: true, top_logprobs: 2 }],
];
