/** Families of models whose calls the tests of tools go through. */

/** How a family writes its calls, and the results that it gets. */
export interface Family {
  readonly name: string;
  readonly args: readonly string[];
  /** A chat template in the place of the model's own. */
  readonly template?: string;
  readonly thoughts: string;
  readonly calls: (cities: readonly string[]) => string;
  /** The prompt of the next round, from the first call on. */
  readonly results: string;
}

const TICKS = "```";
const MESSAGES = (call: string, calls: string, result: string) => `{%- for m in messages %}
{%- if m.role == 'tool' %}${result}
{%- elif m.tool_calls %}${calls.replace("CALLS", `{% for c in m.tool_calls %}${call}{% endfor %}`)}
{%- else %}[{{ m.role }}]{{ m.content }}{% endif %}
{%- endfor %}{% if tools %}{{ tools | tojson }}{% endif %}{% if add_generation_prompt %}[assistant]{% endif %}`;

export const FAMILIES: readonly Family[] = [
  {
    name: "Qwen 3",
    args: [],
    thoughts: "<think>\nTwo towns.\n</think>\n\n",
    calls: (cities) =>
      cities
        .map((city) => `<tool_call>\n{"name": "get_weather", "arguments": {"city": "${city}"}}\n</tool_call>`)
        .join("\n"),
    results: `<tool_call>\n{"name": "get_weather", "arguments": {"city": "Oslo"}}\n</tool_call>\n<tool_call>\n{"name": "get_weather", "arguments": {"city": "Łódź"}}\n</tool_call><|im_end|>\n<|im_start|>user\n<tool_response>\n{"city":"Oslo","degrees":4}\n</tool_response>\n<tool_response>\n{"city":"Łódź","degrees":4}\n</tool_response>`,
  },
  {
    name: "Llama's JSON",
    args: ["--tool-call-parser", "llama3_json", "--reasoning-parser", "none"],
    template: MESSAGES(
      `{"name": "{{ c.function.name }}", "parameters": {{ c.function.arguments | tojson }}}`,
      "[assistant]CALLS",
      "[ipython]{{ m.content }}",
    ),
    thoughts: "",
    calls: (cities) => cities.map((city) => `{"name": "get_weather", "parameters": {"city": "${city}"}}`).join("; "),
    results: `[assistant]{"name": "get_weather", "parameters": {"city": "Oslo"}}{"name": "get_weather", "parameters": {"city": "Łódź"}}[ipython]{"city":"Oslo","degrees":4}[ipython]{"city":"Łódź","degrees":4}`,
  },
  {
    name: "DeepSeek V3",
    args: ["--tool-call-parser", "deepseek_v3", "--reasoning-parser", "deepseek_v31"],
    template: MESSAGES(
      `{{ c.function.name }}:{{ c.function.arguments }};`,
      "[assistant]<｜tool▁calls▁begin｜>CALLS",
      "[result]{{ m.content }}",
    ),
    thoughts: "<think>Two towns.</think>",
    calls: (cities) =>
      `<｜tool▁calls▁begin｜>${cities.map((city) => `<｜tool▁call▁begin｜>function<｜tool▁sep｜>get_weather\n${TICKS}json\n{"city": "${city}"}\n${TICKS}<｜tool▁call▁end｜>`).join("\n")}<｜tool▁calls▁end｜>`,
    results: `<｜tool▁calls▁begin｜>get_weather:{"city": "Oslo"};get_weather:{"city": "Łódź"};[result]{"city":"Oslo","degrees":4}[result]{"city":"Łódź","degrees":4}`,
  },
];
