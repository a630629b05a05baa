import { expect, test } from "bun:test";
import { poolingTraits } from "../../../src/fleet/pooling-traits.ts";

const traits = (config: object) => poolingTraits(new Map([["config.json", Buffer.from(JSON.stringify(config))]]));
const CLASSIFIER = { architectures: ["BertForSequenceClassification"] };

test("sizes that vectors may be cut to", () => {
  expect(poolingTraits(new Map())).toEqual({ matryoshka: undefined, classes: undefined });
  expect(traits({ architectures: ["BertModel"] }).matryoshka).toBeUndefined();
  expect(traits({ is_matryoshka: false }).matryoshka).toBeUndefined();
  expect(traits({ is_matryoshka: true }).matryoshka).toBe("any");
  expect(traits({ is_matryoshka: true, matryoshka_dimensions: [64, 128] }).matryoshka).toEqual([64, 128]);
  expect(traits({ matryoshka_dimensions: [256] }).matryoshka).toEqual([256]);
  expect(traits({ matryoshka_dimensions: [] }).matryoshka).toBeUndefined();
});

test("labels, and what makes probabilities", () => {
  expect(traits({ ...CLASSIFIER, id2label: { 1: "bad", 0: "good", 2: "so so" } }).classes).toEqual({
    labels: ["good", "bad", "so so"],
    activation: "softmax",
  });
  const ten = Object.fromEntries(Array.from({ length: 12 }, (_, i) => [String(11 - i), `l${11 - i}`]));
  expect(traits({ id2label: ten }).classes?.labels.slice(9)).toEqual(["l9", "l10", "l11"]);
  // transformers leaves two default labels out of the file
  expect(traits(CLASSIFIER).classes).toEqual({ labels: ["LABEL_0", "LABEL_1"], activation: "softmax" });
  expect(traits({ ...CLASSIFIER, num_labels: 3 }).classes?.labels).toEqual(["LABEL_0", "LABEL_1", "LABEL_2"]);
  expect(traits({ ...CLASSIFIER, id2label: { 0: "LABEL_0" } }).classes?.activation).toBe("sigmoid");
  const multi = { ...CLASSIFIER, id2label: { 0: "a", 1: "b" }, problem_type: "multi_label_classification" };
  expect(traits(multi).classes?.activation).toBe("sigmoid");
  expect(traits({ ...CLASSIFIER, id2label: { 0: "a" }, problem_type: "regression" }).classes?.activation).toBe("none");
});

test("labels that are not numbered from 0 on are none", () => {
  for (const id2label of [{ 1: "a", 2: "b" }, { 0: "a", 2: "b" }, { 0: 1 }, {}])
    expect(traits({ ...CLASSIFIER, id2label }).classes).toBeUndefined();
});
