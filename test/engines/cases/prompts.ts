import { forced, greedy, type Row, say, user } from "./row.ts";

export const textCases: readonly Row[] = [
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

const weather = {
  type: "function",
  function: {
    name: "get_weather",
    description: "Wetter: größer <b>&</b> 'so'",
    parameters: {
      type: "object",
      properties: { city: { type: "string", enum: ["Zürich", "a/b"] } },
      required: ["city"],
    },
  },
};
const call = { id: "call_1", type: "function", function: { name: "get_weather", arguments: '{"city": "Zürich"}' } };

/** What the chat template gets: `prompt_token_ids` tell. */
export const promptsCases: readonly Row[] = [
  ["tools, tool_choice none", { ...greedy, tools: [weather], tool_choice: "none" }],
  [
    "a tool call and its result in the history",
    {
      ...greedy,
      tools: [weather],
      tool_choice: "none",
      messages: [
        ...user("Weather?"),
        { role: "assistant", content: null, tool_calls: [call] },
        { role: "tool", tool_call_id: "call_1", content: '{"t": 3}' },
      ],
    },
  ],
  [
    "two tool calls, text before them",
    {
      ...greedy,
      messages: [
        ...user("Weather?"),
        { role: "assistant", content: "I look.", tool_calls: [call, { ...call, id: "call_2" }] },
        { role: "tool", tool_call_id: "call_1", content: "3" },
        { role: "tool", tool_call_id: "call_2", content: [{ type: "text", text: "4" }] },
      ],
    },
  ],
  [
    "reasoning_content in the history",
    {
      ...greedy,
      messages: [
        ...user("a"),
        { role: "assistant", content: "b", reasoning_content: "because" },
        ...user("c"),
        { role: "assistant", content: "d", reasoning: "since" },
        { role: "tool", tool_call_id: "x", content: "e" },
      ],
    },
  ],
  ["developer role", { ...greedy, messages: [{ role: "developer", content: "Be brief." }, ...user("Hello")] }],
  [
    "system content in parts",
    { ...greedy, messages: [{ role: "system", content: [{ type: "text", text: "Be brief." }] }, ...user("Hello")] },
  ],
  ["empty user content", { ...greedy, messages: user("") }],
  ["spaces around the content", { ...greedy, messages: user("  \n Hello \n\n ") }],
  ["message with a name", { ...greedy, messages: [{ role: "user", name: "ada", content: "Hello" }] }],
  ["ends with an assistant message", { ...greedy, messages: [...user("Hello"), { role: "assistant", content: "Hi" }] }],
  ["content in one part", { ...greedy, messages: [{ role: "user", content: [{ type: "text", text: "One." }] }] }],
  [
    "null fields",
    { ...greedy, stop: null, n: null, seed: null, tools: null, logit_bias: null, response_format: null, top_p: null },
  ],
];
