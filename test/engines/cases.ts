import type { ChatBody } from "./answer.ts";
import { forcedTextCases } from "./forced-texts.ts";

/** One request that is put to both servers, once streamed and once not. */
export interface EngineCase {
  readonly name: string;
  readonly model: "tiny" | "smollm2";
  readonly body: ChatBody;
  /** Text that the answer must have, besides being equal on both sides. */
  readonly expectText?: string | RegExp;
  /** The peer's own text need not be this: where the peer is known to differ, say why. */
  readonly expectStatus?: number;
  /** Words that our error message must have. */
  readonly expectError?: RegExp;
  /** Why this case is judged by `expect…` alone and not by the peer. */
  readonly peerDiffers?: string;
}

const EOS = 151645;
const SECOND_EOS = 151643;
/** " Hello"-less: the token of "Hello" in Qwen's vocabulary. */
const HELLO = 9707;
const hello = (n: number): ChatBody => ({ logit_bias: { [HELLO]: 100 }, max_tokens: n });
const user = (content: string) => [{ role: "user", content }];
const greedy = { temperature: 0, max_tokens: 40 };

type Row = [name: string, body: ChatBody, rest?: Partial<EngineCase>];

function tiny([name, body, rest]: Row): EngineCase {
  const full = { messages: user("Hello"), return_token_ids: true, ...body };
  return { name, model: "tiny", body: { model: "tiny", ...full }, ...rest };
}

const schema = {
  type: "object",
  properties: { city: { type: "string", enum: ["Paris", "Rome"] }, days: { type: "integer", minimum: 1, maximum: 9 } },
  required: ["city", "days"],
  additionalProperties: false,
};
const say = (...choice: string[]) => ({ structured_outputs: { choice } });
const SENTENCE = "Hello world, this is a test: naïve 思考🙂 done.";
const forced = { ...say(SENTENCE), temperature: 0, max_tokens: 200 };

const text: Row[] = [
  ["greedy text", greedy],
  [
    "a conversation",
    {
      ...greedy,
      messages: [
        { role: "system", content: "You are terse.\n" },
        { role: "user", content: "Привет, 世界! 👩‍👩‍👧  \n\n\tcode: `x = 1;`" },
        { role: "assistant", content: "<think>\nhm\n</think>\n\nHi." },
        { role: "user", content: "And <|im_end|> or <tool_call>?" },
      ],
    },
  ],
  [
    "content in parts",
    {
      ...greedy,
      messages: [
        {
          role: "user",
          content: [
            { type: "text", text: "One." },
            { type: "text", text: "Two." },
          ],
        },
      ],
    },
  ],
  ["thinking switched off in the template", { ...greedy, chat_template_kwargs: { enable_thinking: false } }],
  [
    "continue_final_message",
    {
      ...greedy,
      messages: [...user("Say a poem."), { role: "assistant", content: "Roses are red," }],
      continue_final_message: true,
      add_generation_prompt: false,
    },
  ],
  ["no generation prompt", { ...greedy, add_generation_prompt: false }],
  [
    "special tokens shown",
    { ...forced, ...say("<think>\nx\n</think>\n\n<tool_call>y</tool_call>"), skip_special_tokens: false },
  ],
  ["a long answer", { ...greedy, max_tokens: 300, ignore_eos: true }],
];

const sampling: Row[] = [
  ["the model's own defaults, seed 7", { seed: 7, max_tokens: 40 }],
  ["temperature 1, seed 1", { temperature: 1, top_p: 1, top_k: -1, seed: 1, max_tokens: 40 }],
  ["top_k 3, seed 2", { temperature: 1, top_k: 3, seed: 2, max_tokens: 40 }],
  ["top_p 0.3, seed 3", { temperature: 1, top_p: 0.3, seed: 3, max_tokens: 40 }],
  ["min_p 0.9, seed 4", { temperature: 1, min_p: 0.9, seed: 4, max_tokens: 40 }],
  ["frequency and presence penalty", { ...greedy, frequency_penalty: 1.5, presence_penalty: 1 }],
  ["repetition_penalty", { ...greedy, repetition_penalty: 1.8 }],
  ["logit_bias", { ...greedy, ...hello(4) }, { expectText: "HelloHelloHelloHello" }],
  ["n = 3, seed 5", { n: 3, temperature: 1, seed: 5, max_tokens: 12 }],
  ["n = 2, greedy", { n: 2, temperature: 0, max_tokens: 4 }],
  ["max_tokens 1", { ...greedy, max_tokens: 1 }],
  ["max_completion_tokens 2", { temperature: 0, max_completion_tokens: 2 }],
];

const ends: Row[] = [
  ["EOS at once", { ...greedy, logit_bias: { [EOS]: 100 } }],
  ["EOS at once, with logprobs", { ...greedy, logit_bias: { [EOS]: 100 }, logprobs: true, top_logprobs: 3 }],
  ["EOS at once, special tokens shown", { ...greedy, logit_bias: { [EOS]: 100 }, skip_special_tokens: false }],
  ["EOS of generation_config at once", { ...greedy, logit_bias: { [SECOND_EOS]: 100 } }],
  [
    "EOS of generation_config, with logprobs",
    { ...greedy, logit_bias: { [SECOND_EOS]: 100 }, logprobs: true, top_logprobs: 2 },
  ],
  ["EOS, min_tokens 3", { ...greedy, logit_bias: { [EOS]: 100 }, min_tokens: 3 }],
  ["EOS, ignore_eos", { ...greedy, logit_bias: { [EOS]: 100 }, ignore_eos: true, max_tokens: 4 }],
  [
    "EOS, ignore_eos, special tokens shown",
    { ...greedy, logit_bias: { [EOS]: 100 }, ignore_eos: true, max_tokens: 4, skip_special_tokens: false },
  ],
  ["EOS in stop_token_ids", { ...greedy, logit_bias: { [EOS]: 100 }, stop_token_ids: [EOS] }],
  [
    "EOS in stop_token_ids, ignore_eos",
    { ...greedy, logit_bias: { [EOS]: 100 }, stop_token_ids: [EOS], ignore_eos: true },
  ],
  ["stop_token_ids", { ...greedy, ...hello(6), stop_token_ids: [HELLO] }],
  [
    "stop_token_ids, with logprobs",
    { ...greedy, ...hello(6), stop_token_ids: [HELLO], logprobs: true, top_logprobs: 1 },
  ],
  ["stop_token_ids, included", { ...greedy, ...hello(6), stop_token_ids: [HELLO], include_stop_str_in_output: true }],
  ["stop_token_ids, min_tokens 3", { ...greedy, ...hello(6), stop_token_ids: [HELLO], min_tokens: 3 }],
  ["stop string, one token", { ...greedy, ...hello(6), stop: "Hello" }],
  ["stop string across tokens", { ...greedy, ...hello(6), stop: ["oHe"] }],
  [
    "stop string across three tokens, included",
    { ...greedy, ...hello(9), stop: ["oHelloH"], include_stop_str_in_output: true },
  ],
  ["stop string, with logprobs", { ...greedy, ...hello(9), stop: ["oHelloH"], logprobs: true, top_logprobs: 2 }],
  ["stop string, min_tokens 4", { ...greedy, ...hello(9), stop: ["Hello"], min_tokens: 4 }],
  ["stop string across tokens, min_tokens 3", { ...greedy, ...hello(9), stop: ["oHe"], min_tokens: 3 }],
  [
    "stop string across tokens, min_tokens 3, included",
    { ...greedy, ...hello(9), stop: ["oHe"], min_tokens: 3, include_stop_str_in_output: true },
  ],
  ["stop string in a sentence", { ...forced, stop: " test" }],
  ["stop string in a sentence, included", { ...forced, stop: " test", include_stop_str_in_output: true }],
  ["stop string with an emoji", { ...forced, stop: "🙂" }],
  ["stop string that ends inside a word", { ...forced, stop: ["ïv"] }],
  ["stop string of one space", { ...forced, stop: [" "] }],
  ["two stop strings, the second comes first", { ...forced, stop: ["done", "考"] }],
  ["two stop strings, one inside the other", { ...forced, stop: ["world, this", "wor"] }],
  ["two stop strings with one end", { ...forced, stop: ["ld,", "world,"] }],
  ["stop string that never comes", { ...forced, stop: ["☃never"] }],
  ["stop string half there at the end", { ...forced, stop: ["done.☃"] }],
  ["stop string, n = 2", { ...hello(6), temperature: 1, seed: 1, n: 2, stop: "oHe" }],
  ["EOS text as stop string", { ...greedy, logit_bias: { [EOS]: 100 }, stop: ["<|im_end|>"] }],
  ["empty stop list", { ...greedy, stop: [] }],
];

const logprobs: Row[] = [
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

const constraints: Row[] = [
  [
    "json_schema",
    { ...greedy, max_tokens: 80, response_format: { type: "json_schema", json_schema: { name: "trip", schema } } },
  ],
  [
    "json_schema, strict",
    {
      seed: 3,
      max_tokens: 80,
      response_format: { type: "json_schema", json_schema: { name: "trip", schema, strict: true } },
    },
  ],
  ["json_object", { ...greedy, max_tokens: 30, response_format: { type: "json_object" } }],
  ["response_format text", { ...greedy, response_format: { type: "text" } }],
  [
    "regex",
    { seed: 3, max_tokens: 60, structured_outputs: { regex: "(red|green) [0-9]{3}" } },
    { expectText: /^(red|green) [0-9]{3}$/ },
  ],
  [
    "grammar",
    { seed: 3, max_tokens: 60, structured_outputs: { grammar: 'root ::= "yes" | "no"' } },
    { expectText: /^(yes|no)$/ },
  ],
  [
    "choice of three",
    { seed: 4, max_tokens: 60, ...say("left", "right", "straight on") },
    { expectText: /^(left|right|straight on)$/ },
  ],
  [
    "structural tag",
    {
      seed: 3,
      max_tokens: 60,
      response_format: {
        type: "structural_tag",
        format: {
          type: "tag",
          begin: "<f>",
          content: {
            type: "json_schema",
            json_schema: {
              type: "object",
              properties: { a: { type: "boolean" } },
              required: ["a"],
              additionalProperties: false,
            },
          },
          end: "</f>",
        },
      },
    },
  ],
  ["constraint cut by max_tokens", { ...greedy, max_tokens: 5, ...say(SENTENCE) }],
];

const errors: Row[] = [
  [
    "schema of an unknown type",
    { ...greedy, response_format: { type: "json_schema", json_schema: { name: "x", schema: { type: "nonsense" } } } },
    { expectStatus: 400 },
  ],
  ["regex that is not closed", { ...greedy, structured_outputs: { regex: "(unclosed" } }, { expectStatus: 400 }],
  ["grammar that is broken", { ...greedy, structured_outputs: { grammar: "root ::= [" } }, { expectStatus: 400 }],
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
  ["empty stop string", { ...greedy, stop: [""] }],
];

const real: Row[] = [
  [
    "capital of France",
    { messages: user("What is the capital of France?"), temperature: 0, max_tokens: 40 },
    { expectText: "The capital of France is Paris." },
  ],
  ["capital of France, sampled", { messages: user("What is the capital of France?"), seed: 11, max_tokens: 30 }],
  [
    "city as JSON",
    {
      messages: user("Name a city and its country as JSON."),
      temperature: 0,
      max_tokens: 80,
      response_format: {
        type: "json_schema",
        json_schema: {
          name: "city",
          schema: {
            type: "object",
            properties: { city: { type: "string" }, country: { type: "string" } },
            required: ["city", "country"],
          },
        },
      },
    },
    { expectText: /"city"\s*:\s*"New York"/ },
  ],
  [
    "yes or no",
    { messages: user("Is Paris in France? Answer yes or no."), temperature: 0, max_tokens: 10, ...say("yes", "no") },
    { expectText: "yes" },
  ],
  [
    "second turn",
    {
      messages: [
        ...user("My name is Ada."),
        { role: "assistant", content: "Nice to meet you, Ada!" },
        { role: "user", content: "What is my name?" },
      ],
      temperature: 0,
      max_tokens: 30,
    },
    { expectText: /Ada/ },
  ],
  [
    "with logprobs",
    {
      messages: user("What is the capital of France?"),
      temperature: 0,
      max_tokens: 40,
      logprobs: true,
      top_logprobs: 4,
    },
  ],
  [
    "stop string in a sentence",
    { messages: user("What is the capital of France?"), temperature: 0, max_tokens: 40, stop: [" is Par"] },
  ],
  ["a longer text", { messages: user("Tell me a short story about a dog."), temperature: 0, max_tokens: 160 }],
  [
    "continued",
    {
      messages: [
        ...user("What is the capital of France?"),
        { role: "assistant", content: "The capital of France is the" },
      ],
      temperature: 0,
      max_tokens: 20,
      continue_final_message: true,
      add_generation_prompt: false,
    },
  ],
];

/** Every request, in the order in which they are sent. */
export const engineCases: readonly EngineCase[] = [
  ...[...text, ...sampling, ...ends, ...logprobs, ...constraints, ...forcedTextCases, ...errors].map(tiny),
  ...real.map(
    ([name, body, rest]): EngineCase => ({
      name: `SmolLM2: ${name}`,
      model: "smollm2",
      body: { model: "smollm2", return_token_ids: true, ...body },
      ...rest,
    }),
  ),
];
