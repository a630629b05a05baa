import { describe, expect, test } from "bun:test";
import { readFileSync } from "node:fs";
import { beginsInReasoning, type DetectedParsers, detectParsers, opensReasoning } from "../../../src/parsers/detect.ts";
import { defaultStart, familiesOf } from "../../../src/parsers/names.ts";
import { createOutputParser } from "../../../src/parsers/parser.ts";

const both = (tool: string | undefined, reasoning: string | undefined): DetectedParsers => ({
  ...(reasoning === undefined ? {} : { reasoning }),
  ...(tool === undefined ? {} : { tool }),
});

test("names that vLLM gives parsers of these formats", () => {
  for (const name of ["cohere_command3", "cohere_command4", "poolside_v1", "solar_open2"])
    expect(familiesOf(name, name)).toMatchObject({ reasoning: {}, tool: {} });
  expect(familiesOf(undefined, "minicpm5").tool).toBeDefined();
});

describe("parsers of a model", () => {
  test("the template's own markers come first", () => {
    const rows: readonly [string, DetectedParsers][] = [
      ["<|start|>{{ x }}<|channel|>analysis<|message|>", both("harmony", "harmony")],
      ["{% if x %}<tool_call>\n<function={{ n }}>\n<parameter={{ k }}>{% endif %}", both("qwen_xml", undefined)],
      ['<|im_start|><think></think><tool_call>\n{"name": ', both("qwen", "qwen3")],
      [
        "<｜Assistant｜><think></think><｜tool▁calls▁begin｜><｜tool▁call▁begin｜>{{ n }}<｜tool▁sep｜>",
        both("deepseek31", "deepseek_v31"),
      ],
      ["</think><｜tool▁calls▁begin｜>'\\n' + '```json'", both("deepseek", "deepseek_r1")],
      ["<tool_call>{{ n }}<arg_key>{{ k }}</arg_key><arg_value></think>", both("glm47_moe", "glm45")],
      ["<tool_call>{{ n }}\n<arg_key>{{ k }}</arg_key>\n<arg_value></think>", both("glm45_moe", "glm45")],
      ["<minimax:tool_call></think>", both("minimax_m2", "minimax")],
      ["[TOOL_CALLS][THINK]", both("mistral", "mistral")],
      ["<|python_tag|>", both("llama", undefined)],
      ["<|tool_calls_section_begin|></think>", both("kimik2", "kimi_k25")],
      ['<｜tool_calls_begin｜><steptml:invoke name="{{ n }}"> <think>', both("step3", "step3")],
      ["<steptml:invoke {{ m.content.split('</think>') }}", both("step3", "step3")],
      ["<SPECIAL_11>Assistant\n<think>\n\n <TOOLCALL>[ '</think>' in content", both("nemotron", "nano_v3")],
      ["<|im_start|>assistant\n<think> <function_calls>{{ f }}</function_calls>", both("olmo3", "olmo3")],
      ["<|im_start|>{{ x }}<function_calls></think>", both("olmo3", "olmo3")],
      ["<|im_start|><function_calls>{{ f }}</function_calls>", both("olmo3", undefined)],
      ["[|assistant|]<think>\n\n</think>\n\n <tool_call>{{ t }}</tool_call>", both("qwen", "exaone4")],
      ["'[|' + role + '|]' [|endofturn|] </think> <tool_call>", both("qwen", "exaone4")],
      ["{%- set ns_token = ']<]minimax[>[' %}<tool_call><invoke name= <mm:think>", both("minimax_m3", "minimax_m3")],
      ["'<tool_calls' + HYTK <tool_call <tool_sep <arg_key </arg_key <think", both("hy_v3", "hy_v3")],
      ["<tool_calls{{ s }}><tool_call{{ s }}><arg_key{{ s }}><think{{ s }}>", both("hy_v4", "hy_v3")],
      ["'function call' role_sep=\"<|role_sep|>\\n\" <|message_sep|>", both("gigachat3", undefined)],
      ["<｜GCML｜tool_calls> <think></think>", both("gigachat35", "gigachat35")],
      ["<|tools_prefix|><|inner_prefix|>", both("apertus", "apertus")],
      ["<|plamo:begin_tool_requests:plamo|><|plamo:begin_think:plamo|>", both("plamo3", "plamo3")],
      ["nothing", {}],
    ];
    for (const [chatTemplate, expected] of rows) {
      expect([chatTemplate, detectParsers({ chatTemplate })]).toEqual([chatTemplate, expected]);
      // Neither the architecture nor the name changes what the template says of its own format.
      if (expected.tool !== undefined) {
        expect(detectParsers({ chatTemplate, modelType: "cohere2", modelId: "x/Kimi-K2" }).tool).toBe(expected.tool);
      }
    }
  });
  test("then the architecture, then the name", () => {
    expect(detectParsers({ architectures: ["GptOssForCausalLM"], modelId: "llama-4" })).toEqual(
      both("harmony", "harmony"),
    );
    expect(detectParsers({ modelType: "glm4_moe" })).toEqual(both("glm45_moe", "glm45"));
    expect(detectParsers({ architectures: ["DeepseekV3ForCausalLM"], modelId: "deepseek-ai/DeepSeek-V3.1" })).toEqual(
      both("deepseek31", "deepseek_v31"),
    );
  });
  test("names that others get wrong", () => {
    const rows: readonly [string, DetectedParsers][] = [
      ["zai-org/GLM-4.5-Air", both("glm45_moe", "glm45")],
      ["zai-org/GLM-4.7", both("glm47_moe", "glm45")],
      ["moonshotai/Kimi-K2.6", both("kimik2", "kimi_k25")],
      ["moonshotai/Kimi-K2-Instruct", both("kimik2", "kimi_k2")],
      ["moonshotai/Kimi-K2-Thinking", both("kimik2", "kimi_thinking")],
      ["Qwen/Qwen3-235B-A22B-Thinking-2507", both("qwen", "qwen3_thinking")],
      ["Qwen/Qwen3-235B-A22B-Instruct-2507", both("qwen", undefined)],
      ["Qwen/Qwen3-Coder-30B-A3B-Instruct", both("qwen_xml", undefined)],
      ["Qwen/QwQ-32B", both("qwen", "qwen3_thinking")],
      ["deepseek-ai/DeepSeek-V3.2", both("deepseek32", "deepseek_v31")],
      ["deepseek-ai/DeepSeek-V3.2-Exp", both("deepseek31", "deepseek_v31")],
      ["deepseek-ai/DeepSeek-R1-0528", both("deepseek", "deepseek_r1")],
      ["NousResearch/Hermes-3-Llama-3.1-8B", both("qwen", undefined)],
      ["mistralai/Devstral-Small-2507", both("mistral", undefined)],
      ["mistralai/Magistral-Small-2506", both("mistral", "mistral")],
      ["meta-llama/Llama-3.2-3B-Instruct", both("llama", undefined)],
      ["meta-llama/Llama-3.1-8B-Instruct", both("json", undefined)],
      ["meta-llama/Llama-4-Scout-17B-16E", both("pythonic", undefined)],
      ["openai/gpt-oss-120b", both("harmony", "harmony")],
      ["stepfun-ai/step-3", both("step3", "step3")],
      ["unknown/model", {}],
    ];
    for (const [modelId, expected] of rows) expect([modelId, detectParsers({ modelId })]).toEqual([modelId, expected]);
  });
  test("what is found exists", () => {
    const source = readFileSync(new URL("../../../src/parsers/detect.ts", import.meta.url), "utf8");
    const options = { tools: [], startsInReasoning: false, singleTokenMarkers: new Set<string>(), parseTools: true };
    const tables = source.slice(source.indexOf("const TOOLS_BY"), source.indexOf("/** The parsers of a model"));
    const rules = [...tables.matchAll(/^ {2}\[\/.*?\/i?, (?:"(\w+)"|undefined), (?:"(\w+)"|undefined)\],$/gm)];
    expect(rules.length).toBeGreaterThan(60);
    for (const [, tool, reasoning] of rules) createOutputParser(reasoning, tool, options);
    const [tools, reasoning] = tables.slice(0, tables.indexOf("/** A pattern")).split("const REASONING_BY");
    for (const [, name] of tools!.matchAll(/^ {2}\["(\w+)"/gm)) createOutputParser(undefined, name, options);
    for (const [, name] of reasoning!.matchAll(/^ {2}\["(\w+)"/gm)) createOutputParser(name, undefined, options);
  });
});

describe("whether a prompt ends in open reasoning", () => {
  const rows: readonly [parser: string, prompt: string, opens: boolean][] = [
    ["qwen3", "<|im_start|>user\nhi<|im_end|>\n<|im_start|>assistant\n<think>\n", true],
    ["qwen3", "<|im_start|>user\nhi<|im_end|>\n<|im_start|>assistant\n", false],
    ["qwen3", "<|im_start|>assistant\n<think>\n\n</think>\n\n", false],
    ["qwen3", "<|im_start|>user\nwhat is <think>?<|im_end|>\n<|im_start|>assistant\n", false],
    ["qwen3", "<|im_start|>assistant\n<think>\nbegun already", true],
    ["deepseek_r1", "<｜User｜>hi <think><｜Assistant｜>", false],
    ["deepseek_r1", "<｜User｜>hi<｜Assistant｜><think>\n", true],
    ["deepseek_v31", "<｜User｜>hi<｜Assistant｜></think>", false],
    ["kimi_k25", "<|im_assistant|>assistant<|im_middle|><think>", true],
    ["kimi_k3", '<|open|>message role="assistant"<|sep|><|open|>think<|sep|>', true],
    ["kimi_k3", "<|open|>think<|sep|>a<|close|>think<|sep|><|open|>response<|sep|>", false],
    ["mistral", "[INST]hi[/INST][THINK]", true],
    ["mistral", "[INST][THINK] is what?[/INST]", false],
    ["cohere_cmd", "<|CHATBOT_TOKEN|><|START_THINKING|>", true],
    ["gemma4", "<|turn>model\n<|channel>thought\n", true],
    ["seed_oss", "<seed:bos>assistant\n<seed:think>", true],
    ["seed_oss", "<seed:bos>user\nwhat is <seed:think>?<seed:eos><seed:bos>assistant\n", false],
    ["exaone4", "[|user|]what is <think>?[|endofturn|]\n[|assistant|]", false],
    ["exaone4", "[|user|]hi[|endofturn|]\n[|assistant|]<think>\n", true],
    ["hunyuan_a13b", "<think>\n\n</think>\n", false],
    ["minimax", "]~b]ai\n<think>\n", true],
    ["minimax", "]~b]user\n<think>?[e~[\n]~b]ai\n", false],
    ["harmony", "<|start|>assistant", false],
    ["harmony", "<|start|>assistant<|channel|>analysis<|message|>", true],
    ["harmony", "<|channel|>analysis<|message|>a<|end|><|start|>assistant", false],
    ["inkling", "<|message_model|><|content_thinking|>", true],
    ["granite", "Here is my thought process:", false],
    ["passthrough", "<think>", false],
  ];
  for (const [parser, prompt, opens] of rows) {
    test(`${parser}: ${JSON.stringify(prompt.slice(-60))}`, () => expect(opensReasoning(prompt, parser)).toBe(opens));
  }
  test("the end of a long prompt tells as much as all of it", () => {
    const long = "a < b, [x] and {y}\n".repeat(400);
    const parts = ["<think>", "</think>", "<|im_end|>\n", "<|im_start|>assistant\n"];
    // the parts at every place around the borders of what is looked at
    for (const first of parts)
      for (const second of parts)
        for (const between of ["", long.slice(0, 900), long])
          for (let length = 230; length < 270; length++) {
            const prompt = `${long}${first}${between}${second}${long.slice(0, length)}`;
            const opens = second === "<think>";
            expect([first, second, length, opensReasoning(prompt, "qwen3")]).toEqual([first, second, length, opens]);
          }
    expect(opensReasoning(`<think>${long}`, "qwen3")).toBe(true);
    expect(opensReasoning(long, "qwen3")).toBe(false);
    expect(opensReasoning("", "qwen3")).toBe(false);
  });
  test("models that always reason do so unless the prompt has closed a block", () => {
    const begins: readonly [parser: string, prompt: string, begins: boolean][] = [
      ["deepseek_r1", "<｜User｜>hi<｜Assistant｜>", true],
      ["deepseek_r1", "<｜User｜>hi<｜Assistant｜><think>\n", true],
      ["deepseek_r1", "<｜User｜>what is </think>?<｜Assistant｜>", true],
      ["deepseek_r1", "<｜tool▁output▁end｜><｜tool▁outputs▁end｜>", true],
      ["deepseek_r1", "<|im_start|>assistant\n<think>\n\n</think>\n\n", false],
      ["kimi_thinking", "<|im_assistant|>assistant<|im_middle|>", true],
      ["qwen3_thinking", "<|im_start|>assistant\n", true],
      ["qwen3", "<|im_start|>assistant\n", false],
      ["qwen3", "<|im_start|>assistant\n<think>\n\n</think>\n\n", false],
      ["deepseek_v31", "<｜User｜>hi<｜Assistant｜></think>", false],
      ["base", "<|im_start|>assistant\n", false],
      ["harmony", "<|start|>assistant", false],
      ["none", "", false],
    ];
    for (const [parser, prompt, expected] of begins)
      expect([parser, prompt, beginsInReasoning(prompt, parser)]).toEqual([parser, prompt, expected]);
  });
  test("without a prompt the family tells", () => {
    expect(defaultStart("deepseek_r1")).toBe("reasoning");
    expect(defaultStart("qwen3")).toBe("toggle");
    expect(defaultStart("harmony")).toBe("text");
    expect(defaultStart(undefined)).toBe("text");
  });
});
