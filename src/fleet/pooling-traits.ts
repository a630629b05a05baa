/** What a model's config.json says of its vectors. Names and defaults are those of transformers' PretrainedConfig and of vLLM. */
import { jsonFile } from "../tokenizer/model-files.ts";
import type { PoolingTraits } from "./snapshot.ts";

/** Labels of a sequence classifier whose configuration leaves them out. */
const DEFAULT_LABELS = 2;

/** Throws TokenizerError for a config.json that is no JSON object. */
export function poolingTraits(files: ReadonlyMap<string, Uint8Array>): PoolingTraits {
  const config = jsonFile(files, "config.json") ?? {};
  return { matryoshka: matryoshkaOf(config), classes: classesOf(config) };
}

type Config = Readonly<Record<string, unknown>>;

function matryoshkaOf({ is_matryoshka: all, matryoshka_dimensions: sizes }: Config): PoolingTraits["matryoshka"] {
  const listed = Array.isArray(sizes) ? sizes.filter((size): size is number => Number.isSafeInteger(size)) : [];
  if (listed.length > 0) return listed;
  return all === true ? "any" : undefined;
}

function classesOf(config: Config): PoolingTraits["classes"] {
  const { architectures, problem_type: problem } = config;
  const isClassifier =
    Array.isArray(architectures) &&
    architectures.some((name) => typeof name === "string" && name.endsWith("ForSequenceClassification"));
  const labels = labelsOf(config, isClassifier);
  if (labels === undefined) return undefined;
  if (problem === "regression") return { labels, activation: "none" };
  const isMulti = problem === "multi_label_classification";
  return { labels, activation: isMulti || labels.length === 1 ? "sigmoid" : "softmax" };
}

/** Models that are no classifiers may have labels as well: what the engine gives tells. */
function labelsOf({ id2label, num_labels: count }: Config, isClassifier: boolean): readonly string[] | undefined {
  if (typeof id2label === "object" && id2label !== null) {
    const names = id2label as Config;
    const size = Object.keys(names).length;
    const labels = Array.from({ length: size }, (_, id) => names[id]);
    return size > 0 && labels.every((label) => typeof label === "string") ? labels : undefined;
  }
  const size = Number.isSafeInteger(count) && Number(count) > 0 ? Number(count) : isClassifier ? DEFAULT_LABELS : 0;
  return size === 0 ? undefined : Array.from({ length: size }, (_, id) => `LABEL_${id}`);
}
