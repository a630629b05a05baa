import { type Static, Type as t } from "@sinclair/typebox";
import { promptFields } from "../chat/schema.ts";

const text = t.String();
const name = (description: string) => t.String({ minLength: 1, description });

/** Request of `POST /parse/function_call` (SMG) and `POST /parse_function_call` (SGLang). */
export const functionCallRequest = t.Object(
  {
    text,
    tool_call_parser: name("Name of a tool parser, e.g. qwen; names of vLLM, SGLang and SMG are known"),
    tools: promptFields.tools,
  },
  { additionalProperties: true },
);
export type FunctionCallRequest = Static<typeof functionCallRequest>;

/** Request of `POST /parse/reasoning` (SMG) and `POST /separate_reasoning` (SGLang). */
export const reasoningRequest = t.Object(
  { text, reasoning_parser: name("Name of a reasoning parser, e.g. qwen3") },
  { additionalProperties: true },
);
export type ReasoningRequest = Static<typeof reasoningRequest>;

/** Answers in SMG's form. */
export const functionCallResponse = t.Object({
  remaining_text: t.String({ description: "The text without the calls" }),
  reasoning_text: t.Optional(t.String({ description: "Only where the format of the calls has reasoning in it" })),
  tool_calls: t.Array(t.Object({ function: t.Object({ name: t.String(), arguments: t.String() }) })),
  success: t.Boolean({ description: "false: a call is not complete; it is listed as far as it goes" }),
});
export const reasoningResponse = t.Object({
  normal_text: t.String(),
  reasoning_text: t.String(),
  success: t.Literal(true),
});

/** The same in SGLang's. */
export const sglangCallsResponse = t.Object({
  normal_text: t.String(),
  calls: t.Array(t.Object({ tool_index: t.Integer(), name: t.String(), parameters: t.String() })),
});
export const sglangReasoningResponse = t.Object({ reasoning_text: t.String(), text: t.String() });
