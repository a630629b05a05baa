/** What a model's files say about how its prompts are written and its answers are read. */
import { basename } from "node:path";
import type { ModelCard } from "../config/model-cards.ts";
import type { ServeConfig } from "../config/serve-options.ts";
import { detectParsers, type ModelSource } from "../parsers/detect.ts";
import { familiesOf, PASSTHROUGH } from "../parsers/names.ts";
import { findEncoder } from "../template/encoders/native-encoder.ts";
import { findChatTemplate, type TemplateSource } from "../template/model-template.ts";
import { jsonFile } from "../tokenizer/model-files.ts";
import type { ModelEntry } from "./snapshot.ts";

/** The kind of a model, by its config.json. `modelId`: its name or path. */
export function modelKind(modelId: string, files: ReadonlyMap<string, Uint8Array>): Omit<ModelSource, "chatTemplate"> {
  const config = jsonFile(files, "config.json") ?? {};
  const { architectures, model_type: modelType } = config;
  return {
    modelId,
    ...(Array.isArray(architectures) && { architectures: architectures.filter((name) => typeof name === "string") }),
    ...(typeof modelType === "string" && { modelType }),
  };
}

/**
 * What writes a model's prompts by itself: the native encoder of such models, else the model's own template; undefined where there is
 * none. Throws a ChatTemplateError for files that are not JSON.
 */
export function modelTemplate(kind: ModelSource, files: ReadonlyMap<string, Uint8Array>): TemplateSource | undefined {
  const encoder = findEncoder({ ...kind, encoders: encoderFiles(files) });
  return encoder === undefined ? ofKind(kind, findChatTemplate(files)) : { source: "", specials: {}, encoder };
}

/** A template of a model with what models of its kind want besides. */
export function ofKind(
  { architectures = [], modelType, modelId = "" }: ModelSource,
  template: TemplateSource | undefined,
): TemplateSource | undefined {
  const isKimi =
    architectures.includes("KimiK25ForConditionalGeneration") ||
    modelType === "kimi_k25" ||
    /kimi[-_.]?k2[._-]?[56]/i.test(modelId);
  return template !== undefined && isKimi ? { ...template, kimiTools: true } : template;
}

const utf8 = new TextDecoder();

/** Texts of the encoders in Python that are published beside a model, by their files' names without folders. */
function encoderFiles(files: ReadonlyMap<string, Uint8Array>): ReadonlyMap<string, string> {
  const found = new Map<string, string>();
  for (const name of files.keys()) if (name.endsWith(".py")) found.set(basename(name), utf8.decode(files.get(name)));
  return found;
}

/** Parsers that are named go before those that the model asks for; of the latter one that does not go with a named one is left out. */
export function chosenParsers(
  { reasoningParser, toolCallParser }: Pick<ServeConfig, "reasoningParser" | "toolCallParser">,
  source: ModelSource,
): ModelEntry["parsers"] {
  const found = detectParsers(source);
  const named = { reasoning: reasoningParser, tool: toolCallParser };
  const both = { reasoning: named.reasoning ?? found.reasoning, tool: named.tool ?? found.tool };
  const chosen = goTogether(both.reasoning, both.tool) ? both : named;
  const some = (name: string | undefined) => (name === PASSTHROUGH || name === "none" ? undefined : name);
  return { reasoning: some(chosen.reasoning), tool: some(chosen.tool) };
}

/** What is set for one model: by the flags for all, else by its card. */
export function withCard(
  { reasoningParser, toolCallParser, chatTemplate }: CardSettings,
  cards: readonly ModelCard[],
  id: string,
): CardSettings {
  const card = cards.find((each) => each.id === id);
  return {
    reasoningParser: reasoningParser ?? card?.reasoningParser,
    toolCallParser: toolCallParser ?? card?.toolCallParser,
    chatTemplate: chatTemplate ?? card?.chatTemplate,
  };
}
type CardSettings = Pick<ServeConfig, "reasoningParser" | "toolCallParser" | "chatTemplate">;

function goTogether(reasoning: string | undefined, tool: string | undefined): boolean {
  try {
    familiesOf(reasoning, tool);
    return true;
  } catch {
    return false;
  }
}
