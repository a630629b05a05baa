import { greedy, type Row, SENTENCE, say } from "./row.ts";

const schema = {
  type: "object",
  properties: { city: { type: "string", enum: ["Paris", "Rome"] }, days: { type: "integer", minimum: 1, maximum: 9 } },
  required: ["city", "days"],
  additionalProperties: false,
};

export const constraintsCases: readonly Row[] = [
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
