/**
 * What forced calls look like, by family: made by our code, with texts that the tag must take or refuse.
 *   node scripts/bun.mjs run test/golden/tools/structural-tags.ts | python test/golden/tools/check_tags.py
 * lets xgrammar itself say whether it does.
 */
import type { Conversation, ToolDefinition } from "../../../src/generation/conversation.ts";
import { planTools } from "../../../src/generation/tools/plan.ts";
import { tagText } from "../../../src/simulator/output/structural-tag.ts";

const f: ToolDefinition = {
  type: "function",
  name: "get_weather",
  strict: false,
  parameters: {
    type: "object",
    properties: { city: { type: "string" }, days: { type: "integer" } },
    required: ["city"],
  },
};
const g: ToolDefinition = { type: "function", name: "get_time", strict: false, parameters: { type: "object", properties: {} } };
export const TOOLS = [f, g];

export const conversation = (more: Partial<Conversation> = {}): Conversation => ({
  messages: [{ role: "user", content: "a" }],
  tools: TOOLS,
  toolChoice: { mode: "required" },
  parallelToolCalls: true,
  addGenerationPrompt: true,
  continueFinalMessage: false,
  templateVariables: {},
  ...more,
});

/** A family, its reasoning parser, and two calls: the weather in Paris for 2 days, and the time. */
interface Family {
  readonly parser: string;
  readonly reasoning?: string;
  readonly sample?: string;
  /** Text before the first call, each call, text between calls, text behind the last one. */
  readonly text: readonly [open: string, weather: string, separator: string, time: string, close: string];
  /** The format has no second call. */
  readonly isSingle?: boolean;
  readonly thought?: readonly [open: string, close: string];
}

const W = '{"city": "Paris", "days": 2}';
const THINK = ["<think>", "</think>\n\n"] as const;

export const FAMILIES: readonly Family[] = [
  { parser: "qwen", reasoning: "qwen3", thought: THINK, text: ["", `<tool_call>\n{"name": "get_weather", "arguments": ${W}}\n</tool_call>`, "\n", '<tool_call>\n{"name": "get_time", "arguments": {}}\n</tool_call>', ""] },
  { parser: "qwen_xml", reasoning: "qwen3", thought: THINK, text: ["", "<tool_call>\n<function=get_weather>\n<parameter=city>\nParis\n</parameter>\n<parameter=days>\n2\n</parameter>\n</function>\n</tool_call>", "\n", "<tool_call>\n<function=get_time>\n\n</function>\n</tool_call>", ""] },
  { parser: "llama", text: ["", `{"name": "get_weather", "parameters": ${W}}`, "; ", '{"name": "get_time", "parameters": {}}', ""] },
  { parser: "mistral", reasoning: "mistral", thought: ["[THINK]", "[/THINK]"], text: ["[TOOL_CALLS] [", `{"name": "get_weather", "arguments": ${W}}`, ", ", '{"name": "get_time", "arguments": {}}', "]"] },
  { parser: "mistral", sample: "x[ARGS]{}", text: ["", `[TOOL_CALLS]get_weather[ARGS]${W}`, "", "[TOOL_CALLS]get_time[ARGS]{}", ""] },
  { parser: "deepseek", reasoning: "deepseek_r1", thought: ["<think>", "</think>"], text: ["<｜tool▁calls▁begin｜>", `<｜tool▁call▁begin｜>function<｜tool▁sep｜>get_weather\n\`\`\`json\n${W}\n\`\`\`<｜tool▁call▁end｜>`, "\n", "<｜tool▁call▁begin｜>function<｜tool▁sep｜>get_time\n```json\n{}\n```<｜tool▁call▁end｜>", "<｜tool▁calls▁end｜>"] },
  { parser: "deepseek31", reasoning: "deepseek_v31", thought: ["<think>", "</think>"], text: ["<｜tool▁calls▁begin｜>", `<｜tool▁call▁begin｜>get_weather<｜tool▁sep｜>${W}<｜tool▁call▁end｜>`, "", "<｜tool▁call▁begin｜>get_time<｜tool▁sep｜>{}<｜tool▁call▁end｜>", "<｜tool▁calls▁end｜>"] },
  { parser: "deepseek32", reasoning: "deepseek_v31", thought: ["<think>", "</think>"], text: ["\n\n<｜DSML｜function_calls>\n", '<｜DSML｜invoke name="get_weather">\n<｜DSML｜parameter name="city" string="true">Paris</｜DSML｜parameter>\n<｜DSML｜parameter name="days" string="false">2</｜DSML｜parameter>\n</｜DSML｜invoke>\n', "", '<｜DSML｜invoke name="get_time">\n</｜DSML｜invoke>\n', "</｜DSML｜function_calls>"] },
  { parser: "deepseek_v4", reasoning: "deepseek_v31", thought: ["<think>", "</think>"], text: ["\n\n<｜DSML｜tool_calls>\n", '<｜DSML｜invoke name="get_weather">\n<｜DSML｜parameter name="city" string="true">Paris</｜DSML｜parameter>\n<｜DSML｜parameter name="days" string="false">2</｜DSML｜parameter>\n</｜DSML｜invoke>\n', "", '<｜DSML｜invoke name="get_time">\n</｜DSML｜invoke>\n', "</｜DSML｜tool_calls>"] },
  { parser: "glm45_moe", reasoning: "glm45", thought: ["<think>", "</think>\n"], text: ["", "<tool_call>get_weather\n<arg_key>city</arg_key>\n<arg_value>Paris</arg_value>\n<arg_key>days</arg_key>\n<arg_value>2</arg_value>\n</tool_call>", "\n", "<tool_call>get_time\n</tool_call>", ""] },
  { parser: "glm47_moe", reasoning: "glm45", thought: ["<think>", "</think>"], text: ["", "<tool_call>get_weather<arg_key>city</arg_key><arg_value>Paris</arg_value><arg_key>days</arg_key><arg_value>2</arg_value></tool_call>", "", "<tool_call>get_time</tool_call>", ""] },
  { parser: "minimax_m2", reasoning: "minimax", thought: ["<think>", "</think>\n\n"], text: ["<minimax:tool_call>\n", '<invoke name="get_weather">\n<parameter name="city">Paris</parameter>\n<parameter name="days">2</parameter>\n</invoke>\n', "", '<invoke name="get_time">\n</invoke>\n', "</minimax:tool_call>"] },
  { parser: "seed_oss", reasoning: "seed_oss", thought: ["<seed:think>", "</seed:think>\n"], text: ["", "<seed:tool_call>\n<function=get_weather>\n<parameter=city>Paris</parameter>\n<parameter=days>2</parameter>\n</function>\n</seed:tool_call>", "\n", "<seed:tool_call>\n<function=get_time>\n\n</function>\n</seed:tool_call>", ""] },
  { parser: "kimik2", reasoning: "kimi_k25", thought: ["<think>", "</think>"], text: ["<|tool_calls_section_begin|>", `<|tool_call_begin|>functions.get_weather:0<|tool_call_argument_begin|>${W}<|tool_call_end|>`, "", "<|tool_call_begin|>functions.get_time:1<|tool_call_argument_begin|>{}<|tool_call_end|>", "<|tool_calls_section_end|>"] },
  { parser: "kimi_k3", reasoning: "kimi_k3", thought: ["<|open|>think<|sep|>", "<|close|>think<|sep|>"], text: ["<|open|>tools<|sep|>", '<|open|>call tool="get_weather" index="1"<|sep|><|open|>argument key="city" type="string"<|sep|>Paris<|close|>argument<|sep|><|open|>argument key="days" type="number"<|sep|>2<|close|>argument<|sep|><|close|>call<|sep|>', "", '<|open|>call tool="get_time" index="2"<|sep|><|close|>call<|sep|>', "<|close|>tools<|sep|>"] },
  { parser: "inkling", thought: ["<|content_thinking|>", "<|end_message|><|message_model|>"], text: ["", `<|content_invoke_tool_json|>{"name": "get_weather", "args": ${W}}<|end_message|>`, "<|message_model|>", '<|content_invoke_tool_json|>{"name": "get_time", "args": {}}<|end_message|>', ""] },
  { parser: "harmony", isSingle: true, thought: ["<|channel|>analysis<|message|>", "<|end|><|start|>assistant"], text: ["", `<|channel|>commentary to=functions.get_weather <|constrain|>json<|message|>${W}`, "<|call|><|start|>assistant", "<|channel|>commentary to=functions.get_time <|constrain|>json<|message|>{}", ""] },
  { parser: "cohere", reasoning: "cohere_cmd", thought: ["<|START_THINKING|>", "<|END_THINKING|>"], text: ["<|START_ACTION|>[\n", `{"tool_call_id": "0", "tool_name": "get_weather", "parameters": ${W}}`, ",\n", '{"tool_call_id": "1", "tool_name": "get_time", "parameters": {}}', "\n]<|END_ACTION|>"] },
  { parser: "granite", text: ["<|tool_call|>[", `{"name": "get_weather", "arguments": ${W}}`, ", ", '{"name": "get_time", "arguments": {}}', "]"] },
  { parser: "granite", sample: "<tool_call>[]", text: ["<tool_call>[", `{"name": "get_weather", "arguments": ${W}}`, ", ", '{"name": "get_time", "arguments": {}}', "]"] },
  { parser: "phi4_mini", text: ["functools[", `{"name": "get_weather", "arguments": ${W}}`, ", ", '{"name": "get_time", "arguments": {}}', "]"] },
  { parser: "internlm", isSingle: true, text: ["<|action_start|><|plugin|>\n", `{"name": "get_weather", "parameters": ${W}}`, "", '{"name": "get_time", "parameters": {}}', "<|action_end|>"] },
  { parser: "jamba", text: ["<tool_calls>[", `{"name": "get_weather", "arguments": ${W}}`, ", ", '{"name": "get_time", "arguments": {}}', "]</tool_calls>"] },
  { parser: "hunyuan", reasoning: "hunyuan_a13b", text: ["<tool_calls>[", `{"name": "get_weather", "arguments": ${W}}`, ", ", '{"name": "get_time", "arguments": {}}', "]</tool_calls>"] },
  { parser: "nemotron", text: ["<TOOLCALL>[", `{"name": "get_weather", "arguments": ${W}}`, ", ", '{"name": "get_time", "arguments": {}}', "]</TOOLCALL>"] },
];

export interface TagCase {
  readonly name: string;
  readonly parser: string;
  readonly reasoning: string | undefined;
  readonly isOpen: boolean;
  readonly tag: string;
  readonly accepts: readonly string[];
  /** Further texts that it takes, with more in them than calls. */
  readonly takesToo?: readonly string[];
  readonly rejects: readonly string[];
  /** What the simulated engine answers under the tag; null: anything will do. */
  readonly simulated: string | null;
}

const ALL = new Set(["structural_tag", "json_schema"] as const);

function cases(family: Family): TagCase[] {
  const [open, weather, separator, time, close] = family.text;
  const one = open + weather + close;
  const other = open + time + close;
  const two = open + weather + separator + time + close;
  const [thinks, ends] = family.thought ?? ["", ""];
  const thought = family.thought === undefined ? [] : [`${thinks}Hm, "they" {want} it.\n${ends}`];
  const unfinished = [open + weather.slice(0, -1), "", "Sunny."];
  const make = (kind: string, more: Partial<Conversation>, startsInReasoning: boolean, accepts: string[], rejects: string[], given: { waits?: boolean | undefined; takesToo?: string[] } = {}): TagCase => {
    const plan = planTools(conversation(more), {
      toolParser: family.parser,
      reasoningParser: family.reasoning,
      startsInReasoning,
      engineWaitsForReasoning: "waits" in given ? given.waits : false,
      engineConstraints: ALL,
      callSample: family.sample,
    });
    if (plan.constraint?.kind !== "structural_tag") throw new Error(`${family.parser} has no tag`);
    const { parser, reasoning } = family;
    const name = `${parser}${family.sample === undefined ? "" : ` ${family.sample}`}, ${kind}`;
    const { takesToo } = given;
    return { name, parser, reasoning, isOpen: startsInReasoning, tag: plan.constraint.tag, accepts, ...(takesToo && { takesToo }), rejects, simulated: tagText(JSON.parse(plan.constraint.tag)) ?? null };
  };
  const wrong = one.replace(/(?<=\W)2(?=\W)/, "[2]");
  const strict: Partial<Conversation> = { tools: [{ ...f, strict: true }, g], toolChoice: { mode: "auto" } };
  const parallel = family.isSingle === true ? [] : [two];
  return [
    make("required", {}, false, [one, other, ...parallel, ...thought.map((text) => text + one)], [...unfinished, ...thought, one.replace("get_weather", "nope")]),
    make("one call", { parallelToolCalls: false }, false, [one, other], [two, ...unfinished]),
    make("named", { toolChoice: { mode: "required", named: "get_time" } }, false, [other], [one, two, open + time + separator + time + close, ...unfinished]),
    ...(thought.length === 0 ? [] : [make("thinking", {}, true, [`Hm, "they" {want} it.\n${ends}${one}`], [one, "Hm", `Hm${ends}`, `Hm${ends}Sunny.`])]),
    ...(thought.length === 0 ? [] : [make("thinking perhaps", {}, true, [`Hm, "they" {want} it.\n${ends}${one}`, one], ["Hm", `Hm${ends}`, `Hm${ends}Sunny.`], { waits: undefined })]),
    make("strict", strict, false, [one, other, ...parallel, ...thought.map((text) => text + one)], [wrong, `Sunny. ${wrong}`, ...thought.map((text) => text + wrong)], { takesToo: ["", "Sunny.", "[1, {}] < b", `Look: ${one}`, ...thought, ...thought.map((text) => `${text}Sunny.`)] }),
    make("strict, one call", { ...strict, parallelToolCalls: false }, false, [one, other], [wrong, two, `${one}Sunny.`], { takesToo: ["Sunny."] }),
    ...(thought.length === 0 ? [] : [make("strict, thinking", strict, true, [`Hm, "they" {want} it.\n${ends}${one}`], [`Hm${ends}${wrong}`], { takesToo: ["Hm", `Hm${ends}Sunny.`] })]),
  ];
}

export const tagCases = (): TagCase[] => FAMILIES.flatMap(cases);

if (import.meta.main) console.log(JSON.stringify(tagCases(), null, 1));
