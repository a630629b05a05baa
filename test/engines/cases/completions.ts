import { greedy, type Row, say } from "./row.ts";

const prompt = "The capital of France is the city of";
/** "Hello", a space and two bytes of a character are among these in Qwen's vocabulary; all are in that of SmolLM2. */
const ids = [9707, 1879, 220, 104, 17, 9707];

/** Prompts that are no conversation. vLLM echoes none where ids are asked for, so these cases ask for one of both. */
export const completionCases: readonly Row[] = [
  ["greedy text", { ...greedy, prompt, return_token_ids: true }],
  ["16 tokens by default", { temperature: 0, prompt, return_token_ids: true }],
  ["ids as the prompt", { ...greedy, prompt: ids, return_token_ids: true }],
  ["texts", { ...greedy, prompt: [prompt, "Once upon a time", "1, 2, 3,"], max_tokens: 10 }],
  [
    "lists of ids, two choices each",
    { ...greedy, prompt: [ids, ids.slice(0, 2)], n: 2, max_tokens: 8, temperature: 1, seed: 7, ...say("aa") },
  ],
  ["echo", { ...greedy, prompt, echo: true, max_tokens: 10 }],
  ["echo of ids", { ...greedy, prompt: ids, echo: true, max_tokens: 10 }],
  ["logprobs", { ...greedy, prompt, logprobs: 3, max_tokens: 10 }],
  ["logprobs 0", { ...greedy, prompt, logprobs: 0, max_tokens: 10 }],
  ["echo with logprobs", { ...greedy, prompt, echo: true, logprobs: 2, max_tokens: 5 }],
  [
    "echo with logprobs, several prompts",
    { ...greedy, prompt: [prompt, "Once upon a time, a naïve"], echo: true, logprobs: 2, max_tokens: 5 },
  ],
  ["the prompt's logprobs alone", { prompt, echo: true, logprobs: 1, max_tokens: 0, temperature: 0 }],
  ["tokens as ids", { ...greedy, prompt, logprobs: 2, echo: true, return_tokens_as_token_ids: true, max_tokens: 5 }],
  ["a stop string", { ...greedy, prompt, ...say("Paris, of course"), stop: ", of" }],
  ["truncate_prompt_tokens", { ...greedy, prompt, truncate_prompt_tokens: 3, return_token_ids: true }],
  ["special tokens in the prompt", { ...greedy, prompt: "<|im_start|>user\nHi<|im_end|>\n", return_token_ids: true }],
  ["add_special_tokens false", { ...greedy, prompt, add_special_tokens: false, return_token_ids: true }],
  [
    "an empty list",
    { ...greedy, prompt: [] },
    { expectStatus: 400, peerDiffers: "vLLM answers 400 or 500, by its version" },
  ],
];
