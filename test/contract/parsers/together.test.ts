/** Reasoning and tool calls of one answer, as the models write them. */
import { describe, expect, test } from "bun:test";
import { randomOf } from "./cases.ts";
import type { Sample } from "./samples.ts";
import { markersOf, parse, summary, tokensOf } from "./ways.ts";

interface Answer {
  readonly reasoning: string;
  readonly tool: string;
  readonly input: string;
  readonly startsInReasoning?: boolean;
  readonly thoughts: string;
  readonly content: string;
  readonly calls: readonly (readonly [string, unknown])[];
}

const ls = { cmd: "ls <think>x</think>" };
const LS = '{"cmd": "ls <think>x</think>"}';

const ANSWERS: readonly Answer[] = [
  {
    reasoning: "qwen3",
    tool: "hermes",
    input: `<think>\nplan\n</think>\n\n<tool_call>\n{"name": "run", "arguments": ${LS}}\n</tool_call>`,
    thoughts: "\nplan\n",
    content: "\n\n",
    calls: [["run", ls]],
  },
  {
    reasoning: "qwen3_thinking",
    tool: "qwen_xml",
    input: `I use <tool_call> now<tool_call>\n<function=run>\n<parameter=cmd>\n${ls.cmd}\n</parameter>\n</function>\n</tool_call>`,
    startsInReasoning: true,
    thoughts: "I use <tool_call> now",
    content: "",
    calls: [["run", ls]],
  },
  {
    reasoning: "deepseek_v31",
    tool: "deepseek31",
    input: `plan</think>Ok.<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>run<｜tool▁sep｜>${LS}<｜tool▁call▁end｜><｜tool▁calls▁end｜><｜end▁of▁sentence｜>`,
    startsInReasoning: true,
    thoughts: "plan",
    content: "Ok.",
    calls: [["run", ls]],
  },
  {
    reasoning: "deepseek_v31",
    tool: "deepseek32",
    input: `plan</think>\n\n<｜DSML｜function_calls>\n<｜DSML｜invoke name="run">\n<｜DSML｜parameter name="cmd" string="true">${ls.cmd}</｜DSML｜parameter>\n</｜DSML｜invoke>\n</｜DSML｜function_calls>`,
    startsInReasoning: true,
    thoughts: "plan",
    content: "",
    calls: [["run", ls]],
  },
  {
    reasoning: "kimi_k25",
    tool: "kimik2",
    input: `plan <|tool_calls_section_begin|><|tool_call_begin|>functions.run:0<|tool_call_argument_begin|>${LS}<|tool_call_end|><|tool_calls_section_end|>`,
    startsInReasoning: true,
    thoughts: "plan ",
    content: "",
    calls: [["run", ls]],
  },
  {
    reasoning: "kimi_k3",
    tool: "kimi_k3",
    input: `plan<|close|>think<|sep|><|open|>response<|sep|>Ok.<|close|>response<|sep|><|open|>tools<|sep|><|open|>call tool="run" index="1"<|sep|><|open|>argument key="cmd" type="string"<|sep|>${ls.cmd}<|close|>argument<|sep|><|close|>call<|sep|><|close|>tools<|sep|><|close|>message<|sep|>`,
    startsInReasoning: true,
    thoughts: "plan",
    content: "Ok.",
    calls: [["run", ls]],
  },
  {
    reasoning: "glm45",
    tool: "glm45_moe",
    input: `<think>plan</think>\n<tool_call>run\n<arg_key>cmd</arg_key>\n<arg_value>${ls.cmd}</arg_value>\n</tool_call>\n`,
    thoughts: "plan",
    content: "\n",
    calls: [["run", ls]],
  },
  {
    reasoning: "minimax",
    tool: "minimax_m2",
    input: `plan\n<minimax:tool_call>\n<invoke name="run">\n<parameter name="cmd">${ls.cmd}</parameter>\n</invoke>\n</minimax:tool_call>`,
    startsInReasoning: true,
    thoughts: "plan\n",
    content: "",
    calls: [["run", ls]],
  },
  {
    reasoning: "cohere_cmd",
    tool: "cohere",
    input: `<|START_THINKING|>plan<|END_THINKING|><|START_ACTION|>\n[{"tool_call_id": "0", "tool_name": "run", "parameters": ${LS}}]\n<|END_ACTION|>`,
    thoughts: "plan",
    content: "",
    calls: [["run", ls]],
  },
  {
    reasoning: "mistral",
    tool: "mistral",
    input: `[THINK]plan[/THINK]Ok.[TOOL_CALLS]run[ARGS]${LS}`,
    thoughts: "plan",
    content: "Ok.",
    calls: [["run", ls]],
  },
  {
    reasoning: "gemma4",
    tool: "gemma4",
    input: `<|channel>thought\nplan<|tool_call>call:run{cmd:<|"|>${ls.cmd}<|"|>}<tool_call|>`,
    thoughts: "plan",
    content: "",
    calls: [["run", ls]],
  },
  {
    reasoning: "hunyuan_a13b",
    tool: "hunyuan_a13b",
    input: `<think>\nplan\n</think>\n<answer>\n<tool_calls>[{"name": "run", "arguments": ${LS}}]</tool_calls>\n</answer>`,
    thoughts: "plan",
    content: "",
    calls: [["run", ls]],
  },
  {
    reasoning: "ernie45",
    tool: "ernie45",
    input: `plan</think><tool_call>\n{"name": "run", "arguments": ${LS}}\n</tool_call>\n<response>\nDone.\n</response>`,
    startsInReasoning: true,
    thoughts: "plan",
    content: "\nDone.",
    calls: [["run", ls]],
  },
  {
    reasoning: "seed_oss",
    tool: "seed_oss",
    input: `<seed:think>plan</seed:think><seed:tool_call>\n<function=run>\n<parameter=cmd>${ls.cmd}</parameter>\n</function>\n</seed:tool_call>`,
    thoughts: "plan",
    content: "",
    calls: [["run", ls]],
  },
  {
    reasoning: "step3",
    tool: "step3",
    input: `plan</think><｜tool_calls_begin｜><｜tool_call_begin｜>function<｜tool_sep｜><steptml:invoke name="run"><steptml:parameter name="cmd">${ls.cmd}</steptml:parameter></steptml:invoke><｜tool_call_end｜><｜tool_calls_end｜>`,
    startsInReasoning: true,
    thoughts: "plan",
    content: "",
    calls: [["run", ls]],
  },
  {
    reasoning: "granite",
    tool: "granite",
    input: `Here is my thought process:plan Here is my response:<|tool_call|>[{"name": "run", "arguments": ${LS}}]`,
    thoughts: "plan ",
    content: "",
    calls: [["run", ls]],
  },
  {
    reasoning: "olmo3",
    tool: "olmo3",
    input: `plan</think><function_calls>\nrun(cmd="${ls.cmd}")\n</function_calls>`,
    startsInReasoning: true,
    thoughts: "plan",
    content: "",
    calls: [["run", ls]],
  },
  {
    reasoning: "base",
    tool: "xlam",
    input: `<think>plan</think>[{"name": "run", "arguments": ${LS}}]`,
    thoughts: "plan",
    content: "",
    calls: [["run", ls]],
  },
  {
    reasoning: "harmony",
    tool: "harmony",
    input: `<|channel|>analysis<|message|>plan<|end|><|start|>assistant<|channel|>commentary<|message|>Ok.<|end|><|start|>assistant<|channel|>commentary to=functions.run <|constrain|>json<|message|>${LS}<|call|>`,
    thoughts: "plan",
    content: "Ok.",
    calls: [["run", ls]],
  },
  {
    reasoning: "inkling",
    tool: "inkling",
    input: `<|message_model|><|content_thinking|>plan<|end_message|><|message_model|>run<|content_invoke_tool_json|>{"name":"run","args":${LS}}<|end_message|><|content_model_end_sampling|>`,
    thoughts: "plan",
    content: "",
    calls: [["run", ls]],
  },
];

describe("reasoning and calls", () => {
  for (const answer of ANSWERS) {
    test(`${answer.reasoning} and ${answer.tool}`, () => {
      const sample: Sample = {
        ...answer,
        id: answer.tool,
        startsInReasoning: answer.startsInReasoning ?? false,
        chunks: undefined,
      };
      const { input } = sample;
      const whole = parse(sample, [input]);
      const calls = answer.calls.map(([name, args]) => [name, args, true]);
      expect(summary(whole)).toEqual({ content: answer.content, reasoning: answer.thoughts, calls });
      expect(parse(sample, [...input])).toEqual(whole);
      for (let k = 1; k < input.length; k++) expect(parse(sample, [input.slice(0, k), input.slice(k)])).toEqual(whole);
      const markers = markersOf(sample);
      const random = randomOf(sample.id);
      // A marker of reasoning inside an argument is a value, as a token too.
      for (let round = 0; round < 5; round++) {
        const pieces = tokensOf(input, markers, () => 1 + Math.floor(random() * 6));
        const isMention = answer.reasoning === "qwen3_thinking";
        expect(parse(sample, pieces, new Set(isMention ? [] : markers))).toEqual(whole);
      }
    });
  }
});
