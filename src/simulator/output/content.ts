import type { Tokenizer } from "../../tokenizer/tokenizer.ts";
import type { GenerationSpec } from "../generation.ts";
import type { SimulatorHost } from "../host.ts";
import type { ScriptRule } from "../script/rule.ts";
import { type Content, echoContent, fixedContent } from "./answer.ts";
import { constrainedText } from "./constrained.ts";

/** What one choice of a request says: by its rule, as an echo, under its constraint, or the default answer. */
export function contentFor(
  host: SimulatorHost,
  spec: GenerationSpec,
  rule: ScriptRule | undefined,
  index: number,
  cachedTokens: number,
): Content {
  const { prompt, sampling } = spec;
  const { tokenizer } = host.model;
  if (rule?.tokenIds) return fixedContent(rule.tokenIds);
  if (rule?.text !== undefined && tokenizer) return fixedContent(tokenizer.encode(rule.text));
  if (host.echo) return echoContent(prompt, host.model.specialIds);
  const variant = sampling.temperature === 0 ? 0 : (Math.imul(sampling.seed ?? 0, 0x9e3779b1) >>> 28) + index;
  const text = sampling.constraint ? constrainedText(sampling.constraint, variant) : undefined;
  if (text !== undefined && tokenizer) {
    const thought = spec.constraintWaits && isThinking(tokenizer, prompt) ? THOUGHT : "";
    return fixedContent(tokenizer.encode(thought + text));
  }
  return host.answer(prompt.length, cachedTokens, variant);
}

/** What goes before a constrained text when the prompt has opened a thought. */
const THOUGHT = "The form of the answer is given.\n</think>\n\n";

/** Whether the last mark of a thought in a prompt opens one. */
function isThinking(tokenizer: Tokenizer, prompt: Uint32Array): boolean {
  const [open, close] = ["<think>", "</think>"].map((mark) => tokenizer.encode(mark)[0]!);
  return prompt.lastIndexOf(open!) > prompt.lastIndexOf(close!);
}
