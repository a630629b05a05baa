import { greedy, type Row, user } from "./row.ts";

const LENIENT = "vLLM takes such a message; OpenAI and Collie refuse it";

export const errorsCases: readonly Row[] = [
  [
    "schema of an unknown type",
    { ...greedy, response_format: { type: "json_schema", json_schema: { name: "x", schema: { type: "nonsense" } } } },
    { expectStatus: 400, expectError: /nonsense/ },
  ],
  [
    "regex that is not closed",
    { ...greedy, structured_outputs: { regex: "(unclosed" } },
    { expectStatus: 400, expectError: /unclosed/ },
  ],
  [
    "grammar that is broken",
    { ...greedy, structured_outputs: { grammar: "root ::= [" } },
    { expectStatus: 400, expectError: /grammar/i },
  ],
  ["temperature -1", { temperature: -1 }, { expectStatus: 400 }],
  ["top_p 1.5", { top_p: 1.5 }, { expectStatus: 400 }],
  ["top_logprobs 21", { ...greedy, logprobs: true, top_logprobs: 21 }, { expectStatus: 400 }],
  ["top_logprobs without logprobs", { ...greedy, top_logprobs: 2 }, { expectStatus: 400 }],
  ["n = 0", { n: 0 }, { expectStatus: 400 }],
  ["max_tokens 0", { ...greedy, max_tokens: 0 }],
  ["max_tokens over the context", { ...greedy, max_tokens: 1_000_000 }, { expectStatus: 400 }],
  ["a prompt over the context", { ...greedy, messages: user("word ".repeat(9000)) }, { expectStatus: 400 }],
  ["min_tokens over max_tokens", { ...greedy, min_tokens: 9, max_tokens: 3 }, { expectStatus: 400 }],
  ["no messages", { messages: [] }],
  ["another model", { model: "nobody" }, { expectStatus: 404 }],
  ["logit_bias past the vocabulary", { ...greedy, logit_bias: { "4000000": 1 } }, { expectStatus: 400 }],
  ["stop token past the vocabulary", { ...greedy, max_tokens: 2, stop_token_ids: [4_000_000] }],
  ["frequency_penalty 5", { ...greedy, frequency_penalty: 5 }, { expectStatus: 400 }],
  ["temperature 3", { temperature: 3, seed: 1, max_tokens: 3 }],
  ["two constraints", { ...greedy, structured_outputs: { regex: "a", choice: ["b"] } }, { expectStatus: 400 }],
  ["stream_options without stream", { ...greedy, max_tokens: 1, stream_options: { include_usage: true } }],
  [
    "role that nobody knows",
    { ...greedy, messages: [{ role: "nobody", content: "x" }] },
    { expectStatus: 400, expectError: /nobody/, peerDiffers: LENIENT },
  ],
  [
    "message without content",
    { ...greedy, messages: [{ role: "user" }] },
    { expectStatus: 400, expectError: /content/, peerDiffers: LENIENT },
  ],
  ["stop of the wrong type", { ...greedy, stop: 5 }, { expectStatus: 400 }],
  ["empty stop string", { ...greedy, stop: [""] }],
];
