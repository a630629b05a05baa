import type { Step } from "../input.ts";
import type { Parsing } from "../parsing.ts";
import { APERTUS_MARKERS, apertus } from "./apertus.ts";
import { gemma } from "./gemma.ts";
import { HARMONY_MARKERS, harmony } from "./harmony.ts";
import { INKLING_MARKERS, inkling } from "./inkling.ts";
import { type JsonBlocks, jsonBlocks } from "./json-blocks.ts";
import { type KeyedFamily, keyed, keyedMarkers } from "./keyed.ts";
import { KIMI_K3_MARKERS, kimiK3 } from "./kimi-k3.ts";
import { MINIMAX_M3_MARKERS, minimaxM3 } from "./minimax-m3.ts";
import { MISTRAL_MARKERS, mistral } from "./mistral.ts";
import { PLAMO_MARKERS, plamo } from "./plamo.ts";
import { type PythonicFamily, pythonic } from "./pythonic.ts";
import { type SectionFamily, sections } from "./sections.ts";
import { type TaggedFamily, tagged } from "./tagged.ts";

/** A format of tool calls. */
export interface ToolFamily {
  /** Every marker that may be one token of the vocabulary. */
  readonly markers: readonly string[];
  readonly run: (parsing: Parsing) => Step<void>;
  /** The format carries reasoning too: one parser reads both. */
  readonly isUnified?: boolean;
  /** An object of JSON may be a call, without any marker. */
  readonly isBare?: boolean;
}

/** Ends a message of GigaChat 3; the template writes an empty line behind it. */
const MESSAGE_SEPARATOR = "<|message_sep|>";
const END_OF_SENTENCE = "<｜end▁of▁sentence｜>";

const jsonFamily = (family: JsonBlocks, markers?: readonly string[]): ToolFamily => ({
  markers: markers ?? [...(family.open ?? []), ...(family.close ?? []), ...(family.drop ?? [])],
  run: jsonBlocks(family),
  isBare: family.bare !== undefined,
});
const taggedFamily = (family: TaggedFamily, markers: readonly string[] = []): ToolFamily => ({
  markers: [...family.open, ...family.close, ...(family.tail ?? []), ...markers],
  run: tagged(family),
});
const keyedFamily = (family: KeyedFamily): ToolFamily => ({
  markers: keyedMarkers(family),
  run: keyed(family),
});
const sectionFamily = (family: SectionFamily): ToolFamily => ({
  markers: [...family.section, ...family.sectionEnd, family.call, family.callEnd, family.separator],
  run: sections(family),
});
const pythonicFamily = (family: PythonicFamily): ToolFamily => ({
  markers: [...family.open, ...family.close],
  run: pythonic(family),
});

const FUNCTION_TAGS = {
  call: "<function=",
  callClose: "</function>",
  parameter: "<parameter=",
  parameterClose: "</parameter>",
  newlines: true,
} as const;

const DEEPSEEK = sectionFamily({
  section: ["<｜tool▁calls▁begin｜>"],
  sectionEnd: ["<｜tool▁calls▁end｜>", END_OF_SENTENCE],
  call: "<｜tool▁call▁begin｜>",
  callEnd: "<｜tool▁call▁end｜>",
  separator: "<｜tool▁sep｜>",
  kind: "deepseek",
});

/** Tags with a word between bars behind the bracket, which is a token of its own: DeepSeek's DSML, GigaChat's GCML. */
const barTags = (word: string, blocks: readonly string[]): ToolFamily => ({
  markers: [`<｜${word}｜`, `</｜${word}｜`, `｜${word}｜`, END_OF_SENTENCE],
  run: tagged({
    open: blocks.map((name) => `<｜${word}｜${name}`),
    close: blocks.map((name) => `</｜${word}｜${name}`),
    tail: [END_OF_SENTENCE],
    call: `<｜${word}｜invoke name="`,
    callClose: `</｜${word}｜invoke>`,
    parameter: `<｜${word}｜parameter name="`,
    parameterClose: `</｜${word}｜parameter>`,
    attributes: true,
    jsonBody: true,
    before: "\n\n",
  }),
});
const DSML = barTags("DSML", ["function_calls>", "tool_calls>", " calls>", "calls>"]);

/** A tag and its closer. */
const pair = (name: string): readonly [string, string] => [`<${name}>`, `</${name}>`];

const GLM = keyedFamily({
  open: ["<tool_call>"],
  close: ["</tool_call>"],
  key: [pair("arg_key")],
  value: [pair("arg_value")],
});

/** Hunyuan 3 and 4: published checkpoints spell their tokens with this suffix, the first ones without. */
const HY_SPELLINGS = ["", ":opensource"];
const hyPairs = (name: string) => HY_SPELLINGS.map((suffix) => pair(name + suffix));
const HY = keyedFamily({
  section: hyPairs("tool_calls"),
  open: hyPairs("tool_call").map(([open]) => open),
  close: hyPairs("tool_call").map(([, close]) => close),
  separator: HY_SPELLINGS.map((suffix) => `<tool_sep${suffix}>`),
  key: hyPairs("arg_key"),
  value: hyPairs("arg_value"),
});

/** Tool parsers by name. */
export const TOOL_FAMILIES: Readonly<Record<string, ToolFamily>> = {
  json: jsonFamily({ open: ["<|python_tag|>"], bare: "anywhere" }),
  llama: jsonFamily({ open: ["<|python_tag|>"], bare: "start" }),
  mistral: { markers: MISTRAL_MARKERS, run: mistral },
  qwen: jsonFamily({ open: ["<tool_call>"], close: ["</tool_call>"] }),
  cohere: jsonFamily({
    open: ["<|START_ACTION|>"],
    close: ["<|END_ACTION|>"],
    drop: ["<|START_RESPONSE|>", "<|END_RESPONSE|>", "<|START_TEXT|>", "<|END_TEXT|>"],
  }),
  qwen_xml: taggedFamily({ open: ["<tool_call>"], close: ["</tool_call>"], ...FUNCTION_TAGS, bareCalls: true }),
  glm45_moe: GLM,
  glm47_moe: GLM,
  step3: taggedFamily(
    {
      open: ["<｜tool_calls_begin｜>"],
      close: ["<｜tool_calls_end｜>"],
      fillers: ["<｜tool_call_begin｜>", "function", "<｜tool_sep｜>", "<｜tool_call_end｜>"],
      call: '<steptml:invoke name="',
      callClose: "</steptml:invoke>",
      parameter: '<steptml:parameter name="',
      parameterClose: "</steptml:parameter>",
      attributes: true,
    },
    ["<｜tool_call_begin｜>", "<｜tool_sep｜>", "<｜tool_call_end｜>"],
  ),
  minimax_m2: taggedFamily({
    open: ["<minimax:tool_call>"],
    close: ["</minimax:tool_call>"],
    call: '<invoke name="',
    callClose: "</invoke>",
    parameter: '<parameter name="',
    parameterClose: "</parameter>",
    attributes: true,
  }),
  seed_oss: taggedFamily({ open: ["<seed:tool_call>"], close: ["</seed:tool_call>"], ...FUNCTION_TAGS }),
  deepseek: DEEPSEEK,
  deepseek31: DEEPSEEK,
  deepseek32: DSML,
  deepseek_v4: DSML,
  kimik2: sectionFamily({
    section: ["<|tool_calls_section_begin|>", "<|tool_call_section_begin|>"],
    sectionEnd: ["<|tool_calls_section_end|>", "<|tool_call_section_end|>"],
    call: "<|tool_call_begin|>",
    callEnd: "<|tool_call_end|>",
    separator: "<|tool_call_argument_begin|>",
    kind: "kimi",
  }),
  kimi_k3: { markers: KIMI_K3_MARKERS, run: kimiK3 },
  inkling: { markers: INKLING_MARKERS, run: inkling, isUnified: true },
  harmony: { markers: HARMONY_MARKERS, run: harmony, isUnified: true },
  pythonic: pythonicFamily({ open: ["<|python_start|>"], close: ["<|python_end|>"], bare: true }),
  lfm2: pythonicFamily({ open: ["<|tool_call_start|>"], close: ["<|tool_call_end|>"] }),
  olmo3: pythonicFamily({ open: ["<function_calls>"], close: ["</function_calls>"], lines: true }),
  sarashina: jsonFamily({ open: ["<|tool_calls|>"], bare: "start", shape: { python: true } }),
  granite: jsonFamily({ open: ["<|tool_call|>", "<tool_call>", "<function_call>"], close: ["</tool_call>"] }),
  phi4_mini: jsonFamily({ open: ["functools", "<|tool_call|>"], close: ["<|/tool_call|>"] }, [
    "<|tool_call|>",
    "<|/tool_call|>",
  ]),
  internlm: jsonFamily(
    {
      open: ["<|action_start|><|plugin|>", "<|action_start|> <|plugin|>", "<|action_start|>\n<|plugin|>"],
      close: ["<|action_end|>"],
    },
    ["<|action_start|>", "<|plugin|>", "<|action_end|>"],
  ),
  minimax_m1: jsonFamily({ open: ["<tool_calls>"], close: ["</tool_calls>"] }),
  jamba: jsonFamily({ open: ["<tool_calls>"], close: ["</tool_calls>"] }),
  hunyuan: jsonFamily({ open: ["<tool_calls>"], close: ["</tool_calls>"], opaque: ["<think>", "</think>"] }),
  nemotron: jsonFamily({ open: ["<TOOLCALL>"], close: ["</TOOLCALL>"] }),
  xlam: jsonFamily(
    {
      open: ["[TOOL_CALLS]", "<tool_call>"],
      close: ["</tool_call>"],
      bare: "start",
      fence: ["```json", "```"],
    },
    ["[TOOL_CALLS]", "<tool_call>", "</tool_call>"],
  ),
  gemma4: {
    markers: ["<|tool_call>", "<tool_call|>", '<|"|>'],
    run: gemma({ open: "<|tool_call>", close: "<tool_call|>", quote: '<|"|>' }),
  },
  functiongemma: {
    markers: ["<start_function_call>", "<end_function_call>", "<escape>"],
    run: gemma({ open: "<start_function_call>", close: "<end_function_call>", quote: "<escape>" }),
  },
  longcat: keyedFamily({
    open: ["<longcat_tool_call>"],
    close: ["</longcat_tool_call>"],
    key: [pair("longcat_arg_key")],
    value: [pair("longcat_arg_value")],
  }),
  solar_open2: keyedFamily({
    open: ["<|tool_call:start|>"],
    close: ["<|tool_call:end|>"],
    key: [["<|tool_arg:start|>", "<|tool_arg:value|>"]],
    value: [["", "<|tool_arg:end|>"]],
  }),
  minicpm5: taggedFamily(
    {
      open: [],
      close: [],
      call: '<function name="',
      callClose: "</function>",
      parameter: '<param name="',
      parameterClose: "</param>",
      attributes: true,
      bareCalls: true,
      cdata: true,
    },
    ["<function", "</function>", "<param", "</param>"],
  ),
  minimax_m3: { markers: MINIMAX_M3_MARKERS, run: minimaxM3 },
  hy_v3: HY,
  hy_v4: HY,
  gigachat3: jsonFamily(
    {
      open: ["<|function_call|>", "function call<|role_sep|>"],
      close: [MESSAGE_SEPARATOR],
      drop: [`${MESSAGE_SEPARATOR}\n\n`, MESSAGE_SEPARATOR],
    },
    ["<|function_call|>", "<|role_sep|>", MESSAGE_SEPARATOR],
  ),
  gigachat35: barTags("GCML", ["tool_calls>"]),
  apertus: { markers: APERTUS_MARKERS, run: apertus },
  plamo3: { markers: PLAMO_MARKERS, run: plamo },
};
