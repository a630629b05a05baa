/** `POST /rerank` and `/v1/rerank` over HTTP, with an engine in memory. */
import { afterAll, describe, expect, test } from "bun:test";
import { MODEL, modelEntry, startGateway } from "../../server/gateway.ts";
import { answer, type Embedder, idsOf, type PoolingGateway, poolingGateway, refused } from "../pooling/gateway.ts";

/** Two dimensions: how often a prompt has the one word and the other, not of length 1. */
const counting: Embedder = (ids) => {
  const count = (word: string) => ids.filter((id) => id === idsOf(word)[0]).length;
  return [2 * count("number"), 2 * count("type")];
};
const open: { stop(): Promise<void> }[] = [];
function started(...args: Parameters<typeof poolingGateway>): PoolingGateway {
  const gateway = poolingGateway(...args);
  open.push(gateway);
  return gateway;
}
afterAll(() => Promise.all(open.map((gateway) => gateway.stop())));
const gateway = started(counting);

const documents = ["type", "number type", { text: "number number" }, "this"];
const base = { query: "number", documents };
const HALF = Math.SQRT1_2;

describe.each(["/rerank", "/v1/rerank"])("%s", (path) => {
  test("sorts by cosine, the best first, in both families' words", async () => {
    const body = await answer(gateway, path, base);
    const tokens = 3 + 3 + 4 + 4 + 3;
    const result = (index: number, score: number, text: string) => ({
      index,
      score: expect.closeTo(score, 10),
      relevance_score: expect.closeTo(score, 10),
      document: { text },
    });
    expect(body).toEqual({
      id: expect.stringMatching(/^rerank-./),
      object: "rerank",
      created: expect.any(Number),
      model: MODEL,
      results: [
        result(2, 1, "number number"),
        result(1, HALF, "number type"),
        result(0, 0, "type"),
        result(3, 0, "this"),
      ],
      usage: { prompt_tokens: tokens, total_tokens: tokens },
    });
    for (const { score, relevance_score } of body["results"] as { score: number; relevance_score: number }[])
      expect(score).toBe(relevance_score);
    expect(Math.abs((body["created"] as number) - Date.now() / 1000)).toBeLessThan(10);
  });

  test("top_n or top_k keeps the best, more than there are keeps all", async () => {
    const indices = async (body: object) =>
      ((await answer(gateway, path, { ...base, ...body }))["results"] as { index: number }[]).map(({ index }) => index);
    expect(await indices({ top_n: 1 })).toEqual([2]);
    expect(await indices({ top_k: 2 })).toEqual([2, 1]);
    expect(await indices({ top_n: 3, top_k: 1 })).toEqual([2, 1, 0]);
    expect(await indices({ top_n: 99 })).toEqual([2, 1, 0, 3]);
    expect(await indices({ top_n: null })).toEqual([2, 1, 0, 3]);
  });

  test("return_documents false leaves the texts out", async () => {
    const { results } = await answer(gateway, path, { ...base, return_documents: false });
    for (const result of results as object[])
      expect(Object.keys(result).sort()).toEqual(["index", "relevance_score", "score"]);
  });

  test.each([
    [{ documents: ["a"] }, "query"],
    [{ query: "", documents: ["a"] }, "query"],
    [{ query: " \n", documents: ["a"] }, "query"],
    [{ query: ["a"], documents: ["a"] }, "query"],
    [{ query: "a" }, "documents"],
    [{ query: "a", documents: null }, "documents"],
    [{ query: "a", documents: [] }, "documents"],
    [{ query: "a", documents: "b" }, "documents"],
    [{ query: "a", documents: ["b", ""] }, "documents[1]"],
    [{ query: "a", documents: ["b", 1] }, "documents[1]"],
    [{ query: "a", documents: [{ title: "b" }] }, "documents[0]"],
    [{ query: "a", documents: [null] }, "documents[0]"],
    [{ query: "a", documents: ["b"], top_n: 0 }, "top_n"],
    [{ query: "a", documents: ["b"], top_k: -1 }, "top_k"],
    [{ query: "a", documents: ["b"], top_k: 1.5 }, "top_k"],
    [{ query: "a", documents: [Array(20).fill("number").join(" ")] }, "documents[0]"],
  ])("refuses %j", async (body, param) => {
    expect(await refused(gateway, path, body)).toMatchObject({ type: "invalid_request_error", param });
  });
});

test("long documents are cut on request", async () => {
  const long = Array(20).fill("number").join(" ");
  const { usage } = await answer(gateway, "/rerank", { query: "type", documents: [long], truncate_prompt_tokens: -1 });
  expect(usage).toEqual({ prompt_tokens: 3 + 16, total_tokens: 3 + 16 });
});

describe("the model", () => {
  test("may be left out if there is one", async () => {
    for (const model of [undefined, null, ""])
      expect((await answer(gateway, "/rerank", { ...base, model }))["model"]).toBe(MODEL);
    expect((await answer(gateway, "/rerank", { ...base, model: "demo" }))["model"]).toBe("demo");
  });

  test("has to be named if there are two", async () => {
    const two = startGateway([], undefined, [modelEntry(), modelEntry({ id: "other", aliases: [] })]);
    open.push(two);
    expect(await refused(two, "/rerank", { ...base, model: undefined })).toMatchObject({ param: "model" });
  });

  test("cannot be one whose numbers are logits of labels", async () => {
    const classes = { labels: ["a", "b"], activation: "softmax" } as const;
    const cross = started(counting, { pooling: { matryoshka: undefined, classes } });
    const error = await refused(cross, "/rerank", base);
    expect(error).toMatchObject({ code: "unsupported_parameter", param: "model" });
    expect(error.message).toContain("cross-encoder");
  });
});
