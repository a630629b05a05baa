/** Constraints of the output. */
import { expect } from "bun:test";
import type { Constraint } from "../../../../../src/engines/engine.ts";
import type { Case } from "../case.ts";

const SCHEMA = '{"type":"object","properties":{"a":{"type":"integer"}},"required":["a"]}';
const TAG = JSON.stringify({
  type: "structural_tag",
  format: {
    type: "tag",
    begin: "<a>",
    content: { type: "json_schema", json_schema: { type: "integer" } },
    end: "</a>",
  },
});

/** `same`: what of it the engine has got if it has no kind of its own for it. */
function constraintCase(
  feature: string,
  constraint: Constraint,
  own: { kind: string; value: string; choices: string[] },
): Case {
  return {
    id: `constraint-${constraint.kind}`,
    feature,
    async run(peer) {
      const before = peer.simulator.stats().received;
      const { error } = await peer.run("tell me", { constraint, maxTokens: 100 });
      if (error?.kind === "invalid") {
        expect(peer.simulator.stats().received).toBe(before);
        return { refused: error.message };
      }
      expect(error).toBeUndefined();
      const got = peer.last().sampling.constraint;
      if (Bun.deepEquals(got, own)) return "works";
      if (constraint.kind === "json_object") {
        expect(got).toMatchObject({ kind: "json_schema", value: '{"type":"object"}' });
        return { differs: "asked for as a schema of any object" };
      }
      expect(constraint.kind).toBe("choice");
      expect(got).toMatchObject({ kind: "regex", value: "(a\\.b|c \\(d\\))" });
      return { differs: "asked for as a regular expression" };
    },
  };
}

export const constraintCases: readonly Case[] = [
  constraintCase(
    "JSON schema",
    { kind: "json_schema", schema: SCHEMA },
    { kind: "json_schema", value: SCHEMA, choices: [] },
  ),
  constraintCase("any JSON object", { kind: "json_object" }, { kind: "json_object", value: "true", choices: [] }),
  constraintCase(
    "regular expression",
    { kind: "regex", pattern: "[a-c]{3}" },
    { kind: "regex", value: "[a-c]{3}", choices: [] },
  ),
  constraintCase(
    "grammar",
    { kind: "grammar", grammar: 'root ::= "a"' },
    { kind: "grammar", value: 'root ::= "a"', choices: [] },
  ),
  constraintCase(
    "structural tag",
    { kind: "structural_tag", tag: TAG },
    { kind: "structural_tag", value: TAG, choices: [] },
  ),
  constraintCase(
    "choice of texts",
    { kind: "choice", choices: ["a.b", "c (d)"] },
    { kind: "choice", value: "", choices: ["a.b", "c (d)"] },
  ),
  {
    id: "constraint-failed",
    feature: "an answer that could not keep to its constraint is 422, and never tried again",
    async run(peer) {
      const { error } = await peer.run("REFUSED CONSTRAINT");
      expect(error).toMatchObject({ kind: "constraint", message: "no token fits" });
      return "works";
    },
  },
];
