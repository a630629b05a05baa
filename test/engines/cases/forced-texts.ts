import type { Row } from "./row.ts";

/**
 * Texts that the engine is made to say byte for byte, by a `choice` of one. The split into tokens is drawn at random: characters
 * come in single bytes, and markers both as special tokens and spelled out.
 */
const texts: Readonly<Record<string, string>> = {
  emoji: "A🙂B👍🏽C🇫🇷D",
  "joined emoji": "family 👨‍👩‍👧‍👦, pirate 🏴‍☠️, heart ❤️‍🔥.",
  accents: "Ça va? Voilà l'été: naïve façade, Ångström, e\u0301 and é.",
  Chinese: "思考：今天天气很好，我们去公园吧。𠮷野家",
  Cyrillic: "Привет, мир! Съешь же ещё этих мягких французских булок.",
  thought: "<think>\nThe user greets. 思考🙂\n</think>\n\nHello!",
  "tool call": '<tool_call>\n{"name": "get_weather", "arguments": {"city": "Zürich", "days": 3}}\n</tool_call>',
  spaces: "  two,\ttab\n\n\nthree lines   end ",
  "half a marker": "a < b <think c </think d <tool_call e",
  code: "```ts\nconst x: string[] = [\"a\\n\", 'b'];\n```\n",
};

const SEEDS = [1, 2, 3];

/** Rows for the case table: name, body, expectation. */
export const forcedTextCases: readonly Row[] = Object.entries(texts).flatMap(([name, text]) =>
  SEEDS.map(
    (seed): Row => [
      `forced text: ${name}, seed ${seed}`,
      {
        structured_outputs: { choice: [text] },
        temperature: 1,
        top_p: 1,
        top_k: -1,
        seed,
        max_tokens: 400,
        skip_special_tokens: false,
      },
      { expectText: text },
    ],
  ),
);
