/**
 * What forced calls look like, by family: made by our code, with texts that the tag must take or refuse.
 *   node scripts/bun.mjs run test/golden/tools/structural-tags.ts | python test/golden/tools/check_tags.py
 * lets xgrammar itself say whether it does.
 */
import type { Constraint } from "../../../src/engines/engine.ts";
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
  /** What the model may write around an answer. */
  readonly answer?: readonly [open: string, close: string];
  /** It must. */
  readonly isFramed?: boolean;
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
  { parser: "kimi_k3", answer: ["<|open|>response<|sep|>", "<|close|>response<|sep|>"], reasoning: "kimi_k3", thought: ["<|open|>think<|sep|>", "<|close|>think<|sep|>"], text: ["<|open|>tools<|sep|>", '<|open|>call tool="get_weather" index="1"<|sep|><|open|>argument key="city" type="string"<|sep|>Paris<|close|>argument<|sep|><|open|>argument key="days" type="number"<|sep|>2<|close|>argument<|sep|><|close|>call<|sep|>', "", '<|open|>call tool="get_time" index="2"<|sep|><|close|>call<|sep|>', "<|close|>tools<|sep|>"] },
  { parser: "inkling", isFramed: true, answer: ["<|content_text|>", "<|end_message|>"], thought: ["<|content_thinking|>", "<|end_message|><|message_model|>"], text: ["", `<|content_invoke_tool_json|>{"name": "get_weather", "args": ${W}}<|end_message|>`, "<|message_model|>", '<|content_invoke_tool_json|>{"name": "get_time", "args": {}}<|end_message|>', ""] },
  { parser: "harmony", isFramed: true, answer: ["<|channel|>final <|constrain|>json<|message|>", ""], isSingle: true, thought: ["<|channel|>analysis<|message|>", "<|end|><|start|>assistant"], text: ["", `<|channel|>commentary to=functions.get_weather <|constrain|>json<|message|>${W}`, "<|call|><|start|>assistant", "<|channel|>commentary to=functions.get_time <|constrain|>json<|message|>{}", ""] },
  { parser: "cohere", answer: ["<|START_RESPONSE|>", "<|END_RESPONSE|>"], reasoning: "cohere_cmd", thought: ["<|START_THINKING|>", "<|END_THINKING|>"], text: ["<|START_ACTION|>[\n", `{"tool_call_id": "0", "tool_name": "get_weather", "parameters": ${W}}`, ",\n", '{"tool_call_id": "1", "tool_name": "get_time", "parameters": {}}', "\n]<|END_ACTION|>"] },
  { parser: "granite", text: ["<|tool_call|>[", `{"name": "get_weather", "arguments": ${W}}`, ", ", '{"name": "get_time", "arguments": {}}', "]"] },
  { parser: "granite", sample: "<tool_call>[]", text: ["<tool_call>[", `{"name": "get_weather", "arguments": ${W}}`, ", ", '{"name": "get_time", "arguments": {}}', "]"] },
  { parser: "phi4_mini", text: ["functools[", `{"name": "get_weather", "arguments": ${W}}`, ", ", '{"name": "get_time", "arguments": {}}', "]"] },
  { parser: "internlm", isSingle: true, text: ["<|action_start|><|plugin|>\n", `{"name": "get_weather", "parameters": ${W}}`, "", '{"name": "get_time", "parameters": {}}', "<|action_end|>"] },
  { parser: "jamba", text: ["<tool_calls>[", `{"name": "get_weather", "arguments": ${W}}`, ", ", '{"name": "get_time", "arguments": {}}', "]</tool_calls>"] },
  { parser: "hunyuan", answer: ["<answer>\n", "\n</answer>"], reasoning: "hunyuan_a13b", text: ["<tool_calls>[", `{"name": "get_weather", "arguments": ${W}}`, ", ", '{"name": "get_time", "arguments": {}}', "]</tool_calls>"] },
  { parser: "nemotron", text: ["<TOOLCALL>[", `{"name": "get_weather", "arguments": ${W}}`, ", ", '{"name": "get_time", "arguments": {}}', "]</TOOLCALL>"] },
];

/** Families whose calls no tag can express: a call to the weather, and what calls begin with. */
const FREE: readonly (readonly [parser: string, call: string])[] = [
  ["pythonic", '[get_weather(city="Paris", days=2)]'],
  ["xlam", `[{"name": "get_weather", "arguments": ${W}}]`],
  ["lfm2", '<|tool_call_start|>[get_weather(city="Paris", days=2)]<|tool_call_end|>'],
  ["olmo3", '<function_calls>get_weather(city="Paris", days=2)</function_calls>'],
  ["sarashina", `<|tool_calls|>[{"name": "get_weather", "arguments": ${W}}]`],
  ["step3", '<｜tool_calls_begin｜><｜tool_call_begin｜>function<｜tool_sep｜><steptml:invoke name="get_weather"><steptml:parameter name="city">Paris</steptml:parameter><steptml:parameter name="days">2</steptml:parameter></steptml:invoke><｜tool_call_end｜><｜tool_calls_end｜>'],
  ["minimax_m1", `<tool_calls>\n{"name": "get_weather", "arguments": ${W}}\n</tool_calls>`],
  ["minimax_m3", ']<]minimax[>[<tool_call>]<]minimax[>[<invoke name="get_weather">]<]minimax[>[<city>Paris]<]minimax[>[</city>]<]minimax[>[<days>2]<]minimax[>[</days>]<]minimax[>[</invoke>]<]minimax[>[</tool_call>'],
  ["gemma4", '<|tool_call>call:get_weather{city:<|"|>Paris<|"|>,days:2}<tool_call|>'],
  ["functiongemma", "<start_function_call>call:get_weather{city:<escape>Paris<escape>,days:2}<end_function_call>"],
  ["longcat", "<longcat_tool_call>get_weather\n<longcat_arg_key>city</longcat_arg_key>\n<longcat_arg_value>Paris</longcat_arg_value>\n<longcat_arg_key>days</longcat_arg_key>\n<longcat_arg_value>2</longcat_arg_value>\n</longcat_tool_call>"],
  ["hy_v3", "<tool_calls><tool_call>get_weather<tool_sep><arg_key>city</arg_key><arg_value>Paris</arg_value><arg_key>days</arg_key><arg_value>2</arg_value></tool_call></tool_calls>"],
  ["hy_v4", "<tool_calls:opensource><tool_call:opensource>get_weather<tool_sep:opensource><arg_key:opensource>city</arg_key:opensource><arg_value:opensource>Paris</arg_value:opensource><arg_key:opensource>days</arg_key:opensource><arg_value:opensource>2</arg_value:opensource></tool_call:opensource></tool_calls:opensource>"],
  ["gigachat3", `function call<|role_sep|>\n{"name": "get_weather", "arguments": ${W}}`],
  ["gigachat35", '<｜GCML｜tool_calls>\n<｜GCML｜invoke name="get_weather">\n<｜GCML｜parameter name="city" string="true">Paris</｜GCML｜parameter>\n<｜GCML｜parameter name="days" string="false">2</｜GCML｜parameter>\n</｜GCML｜invoke>\n</｜GCML｜tool_calls>'],
  ["apertus", `<|tools_prefix|>[{"get_weather": ${W}}]<|tools_suffix|>`],
  ["plamo3", `<|plamo:begin_tool_requests:plamo|><|plamo:begin_tool_request:plamo|><|plamo:begin_tool_name:plamo|>get_weather<|plamo:end_tool_name:plamo|><|plamo:begin_tool_arguments:plamo|><|plamo:msg|>${W}<|plamo:end_tool_arguments:plamo|><|plamo:end_tool_request:plamo|><|plamo:end_tool_requests:plamo|>`],
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
  /** Texts with an answer in JSON that it takes, and the answer itself. */
  readonly answers?: readonly (readonly [text: string, answer: string])[];
  readonly rejects: readonly string[];
  /** What the simulated engine answers under the tag; null: anything will do. */
  readonly simulated: string | null;
}

/** The format of an answer, beside tools. */
export const ANSWER = '{"type":"object","properties":{"sum":{"type":"integer","maximum":9007199254740993}},"required":["sum"],"additionalProperties":false}';
const FORMAT = { kind: "json_schema", schema: ANSWER } as const;

const ALL = new Set(["structural_tag", "json_schema"] as const);

function cases(family: Family): TagCase[] {
  const [open, weather, separator, time, close] = family.text;
  const one = open + weather + close;
  const other = open + time + close;
  const two = open + weather + separator + time + close;
  const [thinks, ends] = family.thought ?? ["", ""];
  const thought = family.thought === undefined ? [] : [`${thinks}Hm, "they" {want} it.\n${ends}`];
  const unfinished = [open + weather.slice(0, -1), "", "Sunny."];
  const make = (kind: string, more: Partial<Conversation>, startsInReasoning: boolean, accepts: string[], rejects: string[], given: { waits?: boolean | undefined; takesToo?: string[]; constraint?: Constraint; answers?: [string, string][] } = {}): TagCase => {
    const plan = planTools(conversation(more), {
      toolParser: family.parser,
      reasoningParser: family.reasoning,
      startsInReasoning,
      engineWaitsForReasoning: "waits" in given ? given.waits : false,
      engineConstraints: ALL,
      callSample: family.sample,
      constraint: given.constraint,
    });
    if (plan.constraint?.kind !== "structural_tag") throw new Error(`${family.parser} has no tag`);
    const { parser, reasoning } = family;
    const name = `${parser}${family.sample === undefined ? "" : ` ${family.sample}`}, ${kind}`;
    const { answers } = given;
    const takesToo = answers === undefined ? given.takesToo : [...(given.takesToo ?? []), ...[tagText(JSON.parse(plan.constraint.tag), 1) ?? []].flat()];
    return { name, parser, reasoning, isOpen: startsInReasoning, tag: plan.constraint.tag, accepts, ...(takesToo && { takesToo }), ...(answers && { answers }), rejects, simulated: tagText(JSON.parse(plan.constraint.tag)) ?? null };
  };
  const wrong = one.replace(/(?<=\W)2(?=\W)/, "[2]");
  const strict: Partial<Conversation> = { tools: [{ ...f, strict: true }, g], toolChoice: { mode: "auto" } };
  const parallel = family.isSingle === true ? [] : [two];
  const auto: Partial<Conversation> = { toolChoice: { mode: "auto" } };
  const [around, behind] = family.answer ?? ["", ""];
  const bare = '{"sum": 3}';
  const answers = (before: string): [string, string][] => [...(family.isFramed === true ? [] : [[before + bare, bare] as [string, string]]), [before + around + bare + behind, bare]];
  const noAnswers = ["", "Sunny.", `${bare}Sunny.`, '{"sum": "3"}', ...(family.isFramed === true ? [bare] : []), `Sunny. ${one}`, ...(open === "" && family.parser === "llama" ? [] : [unfinished[0]!])];
  const thoughtful = answers("").concat(thought.flatMap((text) => answers(text)));
  const either = { constraint: FORMAT, answers: thoughtful } as const;
  const led = family.parser === "kimi_k3" ? ["<|open|>response<|sep|><|close|>response<|sep|>", "<|close|>response<|sep|>"].map((lead) => lead + one) : [];
  return [
    make("a call or an answer", auto, false, [one, other, ...led, ...parallel, ...thought.map((text) => text + one)], [...noAnswers, ...thought, `${bare}${one}`, `${one}${bare}`], either),
    make("a strict call or an answer", { ...strict, parallelToolCalls: false }, false, [one, other, ...thought.map((text) => text + one)], [...noAnswers, wrong, two], either),
    ...(thought.length === 0 ? [] : [make("a call or an answer, thinking", auto, true, [`Hm, "they" {want} it.\n${ends}${one}`], [one, bare, `Hm${ends}`, `Hm${ends}Sunny.`], { ...either, answers: answers(`Hm, "they" {want} it.\n${ends}`) })]),
    ...(thought.length === 0 ? [] : [make("a call or an answer, thinking perhaps", auto, true, [`Hm, "they" {want} it.\n${ends}${one}`, one], ["Hm", `Hm${ends}Sunny.`], { ...either, waits: undefined, answers: answers("").concat(answers(`Hm, "they" {want} it.\n${ends}`)) })]),
    make("required", {}, false, [one, other, ...led, ...parallel, ...thought.map((text) => text + one)], [...unfinished, ...thought, one.replace("get_weather", "nope")]),
    make("one call", { parallelToolCalls: false }, false, [one, other], [two, ...unfinished]),
    make("named", { toolChoice: { mode: "required", named: "get_time" } }, false, [other], [one, two, open + time + separator + time + close, ...unfinished]),
    ...(thought.length === 0 ? [] : [make("thinking", {}, true, [`Hm, "they" {want} it.\n${ends}${one}`], [one, "Hm", `Hm${ends}`, `Hm${ends}Sunny.`])]),
    ...(thought.length === 0 ? [] : [make("thinking perhaps", {}, true, [`Hm, "they" {want} it.\n${ends}${one}`, one], ["Hm", `Hm${ends}`, `Hm${ends}Sunny.`], { waits: undefined })]),
    make("strict", strict, false, [one, other, ...parallel, ...thought.map((text) => text + one)], [wrong, `Sunny. ${wrong}`, ...thought.map((text) => text + wrong)], { takesToo: ["", "Sunny.", "[1, {}] < b", `Look: ${one}`, ...thought, ...thought.map((text) => `${text}Sunny.`)] }),
    make("strict, one call", { ...strict, parallelToolCalls: false }, false, [one, other], [wrong, two, `${one}Sunny.`], { takesToo: ["Sunny."] }),
    ...(thought.length === 0 ? [] : [make("strict, thinking", strict, true, [`Hm, "they" {want} it.\n${ends}${one}`], [`Hm${ends}${wrong}`], { takesToo: ["Hm", `Hm${ends}Sunny.`] })]),
  ];
}

function freeCase([parser, call]: (typeof FREE)[number]): TagCase {
  const { constraint } = planTools(conversation({ toolChoice: { mode: "auto" } }), { toolParser: parser, startsInReasoning: false, engineConstraints: ALL, constraint: FORMAT });
  if (constraint?.kind !== "structural_tag") throw new Error(`${parser} has no tag`);
  const bare = '{"sum": 3}';
  return { name: `${parser}, a free call or an answer`, parser, reasoning: undefined, isOpen: false, tag: constraint.tag, accepts: [call], answers: [[bare, bare]], rejects: ["", "Sunny.", `Sunny. ${call}`, bare + call, '{"sum": "3"}'], simulated: tagText(JSON.parse(constraint.tag)) ?? null };
}

export const tagCases = (): TagCase[] => [...FAMILIES.flatMap(cases), ...FREE.map(freeCase)];

if (import.meta.main) console.log(JSON.stringify(tagCases(), null, 1));
