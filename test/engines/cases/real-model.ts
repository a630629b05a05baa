import { type Row, say, user } from "./row.ts";

export const realCases: readonly Row[] = [
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
    { expectText: /^\s*\{\s*"city"\s*:\s*"New York"\s*,\s*"country"\s*:\s*"[^"]+"\s*\}\s*$/ },
  ],
  [
    "a date by a regular expression",
    {
      messages: user("When was the French Revolution?"),
      temperature: 0,
      max_tokens: 30,
      structured_outputs: { regex: "It began in 1[0-9]{3}\\." },
    },
    { expectText: /^It began in 1[0-9]{3}\.$/ },
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
