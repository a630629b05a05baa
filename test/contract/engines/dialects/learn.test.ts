/** How an engine is recognised, and what is learnt of it before it gets a request, by age and with or without reflection. */
import { describe, expect, setDefaultTimeout, test } from "bun:test";
import { DIALECTS } from "../../../../src/engines/dialects.ts";
import { Feature, fieldsOf } from "../../../../src/engines/features.ts";
import type { DialectName } from "../../../support/proto-package.ts";
import { type Protocol, withPeer } from "./peer.ts";

setDefaultTimeout(30_000);

const NAMES: readonly DialectName[] = ["vllm", "sglang", "tokenspeed", "trtllm", "mlx"];

/** The features that an engine lacks, of those that the newest of its dialect has. Vectors are for models that give them. */
const lacking = (dialect: DialectName, features: number): string[] =>
  fieldsOf(DIALECTS.find(({ name }) => name === dialect)!.features & ~features & ~Feature.embed);

/** What an old engine lacks. */
const OLD_LACKS: Readonly<Record<DialectName, readonly string[]>> = {
  vllm: ["flush_cache", "profiling"],
  sglang: [],
  tokenspeed: ["seed", "data_parallel_rank", "tokenizer bundles"],
  trtllm: [],
  mlx: [],
};
/** One rank is no rank to pin to. */
const NEW_LACKS: Partial<Record<DialectName, readonly string[]>> = { tokenspeed: ["data_parallel_rank"] };

describe.each(NAMES)("%s", (dialect) => {
  const at = (protocol: Protocol, noReflection: boolean, check: (facts: Facts) => void) =>
    withPeer(
      dialect,
      protocol,
      "framing",
      async (peer) => {
        expect(peer.engine.dialect).toBe(dialect);
        expect(peer.facts.dialect).toBe(dialect);
        check(peer.facts);
      },
      { noReflection },
    );
  type Facts = Parameters<Parameters<typeof withPeer>[3]>[0]["facts"];

  test("new, with reflection", () =>
    at("0.4.28", false, ({ features, protocol, vocabSize, contextLength }) => {
      expect(lacking(dialect, features)).toEqual([...(NEW_LACKS[dialect] ?? [])]);
      // The newest thing that its descriptors have: 0.4.28 brought nothing to the others.
      expect(protocol).toBe(dialect === "vllm" ? "0.4.28" : "0.4.27");
      expect(vocabSize).toBe(151_936);
      expect(contextLength).toBeGreaterThan(1000);
    }));

  test("old, with reflection", () =>
    at("0.4.14", false, ({ features, protocol }) => {
      expect(protocol).toBe("0.4.14");
      expect(lacking(dialect, features)).toEqual([...OLD_LACKS[dialect]]);
    }));

  test("new, without reflection: what is served or told proves its age", () =>
    at("0.4.28", true, ({ features, protocol }) => {
      expect(lacking(dialect, features)).toEqual([...(NEW_LACKS[dialect] ?? [])]);
      expect(protocol).toBe({ vllm: "0.4.27", tokenspeed: "0.4.27" }[dialect as string] ?? "unknown");
    }));

  test("old, without reflection: fields that it may lack are not counted on", () =>
    at("0.4.14", true, ({ features, protocol }) => {
      expect(protocol).toBe("unknown");
      // Calls may be tried: one that is not there says so.
      const lost = OLD_LACKS[dialect].filter((field) => field === "seed" || field === "data_parallel_rank");
      expect(lacking(dialect, features)).toEqual(lost);
    }));
});

describe.each(["vllm", "sglang"] as const)("a model of %s that gives vectors", (dialect) => {
  test.each(["0.4.14", "0.4.28"] as const)("%s", (protocol) =>
    withPeer(
      dialect,
      protocol,
      "framing",
      async ({ engine, facts, encode, simulator, run }) => {
        expect(facts.features & (Feature.embed | Feature.generate)).toBe(Feature.embed);
        const signal = new AbortController().signal;
        const [one, again] = await Promise.all(
          ["a text", "a text"].map((text, i) => engine.embed({ requestId: `e${i}`, tokenIds: encode(text) }, signal)),
        );
        expect(one!.embedding).toHaveLength(24);
        expect(one!.embedding).toEqual(again!.embedding);
        expect(one!.promptTokens).toBe(encode("a text").length);
        expect([...simulator.requests().at(-1)!.promptIds]).toEqual([...encode("a text")]);
        expect((await run("tell me")).error).toMatchObject({
          kind: "invalid",
          message: "the engine of this model does not support text generation",
        });
      },
      { poolingDim: 24 },
    ),
  );
});

describe("engines of several ranks", () => {
  test.each([
    ["vllm", "0.4.28"],
    ["tokenspeed", "0.4.28"],
  ] as const)("%s %s: a request is pinned to one", (dialect, protocol) =>
    withPeer(
      dialect,
      protocol,
      "framing",
      async ({ facts, last, run }) => {
        expect(facts.dataParallelSize).toBe(4);
        expect((await run("RECITE it", {}, { dataParallelRank: 2 })).error).toBeUndefined();
        expect(last().extra["data_parallel_rank"]).toBe(2);
        expect((await run("RECITE it", {}, { dataParallelRank: 4 })).error?.kind).toBe("invalid");
      },
      { dataParallelSize: 4 },
    ),
  );

  test("TokenSpeed that is older than the field is never asked for a rank", () =>
    withPeer(
      "tokenspeed",
      "0.4.14",
      "framing",
      async ({ run, simulator }) => {
        expect((await run("RECITE it", {}, { dataParallelRank: 2 })).error).toMatchObject({
          kind: "invalid",
          message: "the engine of this model does not support data_parallel_rank",
        });
        expect(simulator.stats().received).toBe(0);
      },
      { dataParallelSize: 4 },
    ));
});

describe.each(["sglang", "tokenspeed"] as const)("what compiles the constraints of %s", (dialect) => {
  const tag = { kind: "structural_tag", tag: "{}" } as const;
  const schema = { kind: "json_schema", schema: '{"type":"object"}' } as const;

  test("outlines knows schemas and regular expressions alone", () =>
    withPeer(
      dialect,
      "0.4.28",
      "framing",
      async ({ run }) => {
        expect((await run("tell me", { constraint: schema })).error).toBeUndefined();
        expect((await run("tell me", { constraint: { kind: "choice", choices: ["a", "b"] } })).error).toBeUndefined();
        expect((await run("tell me", { constraint: tag })).error?.message).toBe(
          "the engine of this model does not support structural tags",
        );
      },
      { grammarBackend: "outlines" },
    ));

  test("none knows nothing", () =>
    withPeer(
      dialect,
      "0.4.28",
      "framing",
      async ({ run }) => {
        for (const constraint of [schema, tag])
          expect((await run("tell me", { constraint })).error?.kind).toBe("invalid");
        expect((await run("tell me")).error).toBeUndefined();
      },
      { grammarBackend: "none" },
    ));
});

describe("where a constraint starts", () => {
  test("vLLM and SGLang that wait for the end of the reasoning say so", async () => {
    for (const dialect of ["vllm", "sglang"] as const)
      await withPeer(dialect, "0.4.28", "framing", async ({ facts }) => expect(facts.waitsForReasoning).toBe(true), {
        waitsForReasoning: true,
      });
  });

  test("SGLang is told when the prompt ends in reasoning, and else starts at the first token", () =>
    withPeer(
      "sglang",
      "0.4.28",
      "framing",
      async ({ run, last }) => {
        await run("RECITE it", {}, { startsInReasoning: true });
        expect(last().extra["require_reasoning"]).toBe(true);
        await run("RECITE it");
        expect(last().extra["require_reasoning"]).not.toBe(true);
      },
      { waitsForReasoning: true },
    ));

  test("engines that do not wait: the gateway lets the thought pass", async () => {
    for (const [dialect, waits] of [
      ["vllm", false],
      ["sglang", false],
      ["tokenspeed", false],
      ["trtllm", undefined],
      ["mlx", undefined],
    ] as const)
      await withPeer(dialect, "0.4.28", "framing", async ({ facts }) =>
        expect([dialect, facts.waitsForReasoning]).toEqual([dialect, waits]),
      );
    await withPeer("vllm", "0.4.14", "framing", async ({ facts }) => expect(facts.waitsForReasoning).toBeUndefined());
  });
});
