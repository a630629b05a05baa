/** `POST /v1/classify` over HTTP, with an engine in memory. */
import { afterAll, describe, expect, test } from "bun:test";
import type { PoolingTraits } from "../../../../src/fleet/snapshot.ts";
import { MODEL } from "../../server/gateway.ts";
import {
  answer,
  CLS,
  type Embedder,
  idsOf,
  type PoolingGateway,
  poolingGateway,
  refused,
  SEP,
} from "../pooling/gateway.ts";

const open: PoolingGateway[] = [];
type Classes = NonNullable<PoolingTraits["classes"]>;
function started(embedder: Embedder, classes: Classes | undefined): PoolingGateway {
  const gateway = poolingGateway(embedder, { pooling: { matryoshka: undefined, classes } });
  open.push(gateway);
  return gateway;
}
afterAll(() => Promise.all(open.map((gateway) => gateway.stop())));

const labels = ["calm", "glad", "sad"];
const softmax = started((ids) => (ids.includes(idsOf("number")[0]!) ? [0, Math.log(2), 0] : [3, 1, 3]), {
  labels,
  activation: "softmax",
});
const close = (...values: number[]) => values.map((value) => expect.closeTo(value, 6));

test("texts get the label that is most probable, with the probabilities of all in the model's order", async () => {
  const e = Math.exp(-2);
  const sum = 2 + e;
  expect(await answer(softmax, "/v1/classify", { input: ["number", "this type"] })).toEqual({
    id: expect.stringMatching(/^classify-./),
    object: "list",
    created: expect.any(Number),
    model: MODEL,
    data: [
      { index: 0, label: "glad", probs: close(0.25, 0.5, 0.25), num_classes: 3 },
      { index: 1, label: "calm", probs: close(1 / sum, e / sum, 1 / sum), num_classes: 3 },
    ],
    usage: { prompt_tokens: 3 + 4, total_tokens: 3 + 4 },
  });
});

test("use_activation false gives the engine's numbers", async () => {
  const { data } = await answer(softmax, "/v1/classify", { input: "number", use_activation: false });
  expect(data).toEqual([{ index: 0, label: "glad", probs: [0, Math.fround(Math.log(2)), 0], num_classes: 3 }]);
});

test("a text, and ids", async () => {
  const labelOf = async (input: unknown) =>
    ((await answer(softmax, "/v1/classify", { input }))["data"] as { label: string }[]).map(({ label }) => label);
  const ids = [CLS, ...idsOf("number"), SEP];
  expect(await labelOf("number")).toEqual(["glad"]);
  expect(await labelOf(ids)).toEqual(["glad"]);
  expect(await labelOf([[7], ids])).toEqual(["calm", "glad"]);
});

describe("probabilities", () => {
  const probs = async (activation: Classes["activation"], logits: number[]) => {
    const names = logits.map((_, i) => `l${i}`);
    const { data } = await answer(
      started(() => logits, { labels: names, activation }),
      "/v1/classify",
      { input: "a" },
    );
    return (data as { label: string; probs: number[] }[])[0];
  };

  test("large logits do not overflow", async () => {
    expect(await probs("softmax", [1e30, 0])).toMatchObject({ label: "l0", probs: [1, 0] });
    expect(await probs("softmax", [-1e30, -1e30])).toMatchObject({ probs: [0.5, 0.5] });
    expect(await probs("sigmoid", [-1e30, 1e30])).toMatchObject({ label: "l1", probs: [0, 1] });
  });

  test("of one label or independent ones are their own, those of a regression its numbers", async () => {
    expect(await probs("sigmoid", [0])).toMatchObject({ label: "l0", probs: [0.5] });
    expect(await probs("sigmoid", [0, Math.log(3)])).toMatchObject({ label: "l1", probs: close(0.5, 0.75) });
    expect(await probs("none", [-2.5])).toMatchObject({ label: "l0", probs: [-2.5] });
  });
});

test("a model without labels is refused before its engine is asked", async () => {
  const none = started(() => [1], undefined);
  const error = await refused(none, "/v1/classify", { input: "a" });
  expect(error).toMatchObject({ code: "unsupported_parameter", param: "model" });
  expect(error.message).toContain("no labels");
  expect(none.prompts).toEqual([]);
});

test("an engine that gives other than a number for each label does not classify", async () => {
  const vectors = started(() => [0.6, 0.8], { labels, activation: "softmax" });
  const error = await refused(vectors, "/v1/classify", { input: "a" });
  expect(error).toMatchObject({ code: "unsupported_parameter", param: "model" });
  expect(error.message).toContain("2 numbers for 3 labels");
});

test.each([[{}], [{ input: "" }], [{ input: [] }], [{ input: [1, "a"] }], [{ input: {} }]])(
  "refuses %j",
  async (body) => {
    expect((await refused(softmax, "/v1/classify", body)).param).toStartWith("input");
  },
);
