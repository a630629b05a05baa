import type { RequestedConstraint } from "../sampling.ts";
import { instance } from "./json-instance.ts";
import { regexText } from "./regex-text.ts";
import { tagText } from "./structural-tag.ts";

/**
 * A text that a constraint allows, or undefined for those that the simulator does not understand (grammars, and uncommon
 * regular expressions): then the answer is the usual one.
 */
export function constrainedText(constraint: RequestedConstraint, variant: number): string | undefined {
  switch (constraint.kind) {
    case "choice":
      return constraint.choices[variant % constraint.choices.length];
    case "json_object":
      return '{"answer": "simulated"}';
    case "json_schema":
      return JSON.stringify(instance(JSON.parse(constraint.value)));
    case "regex":
      return regexText(constraint.value);
    case "structural_tag":
      return tagText(JSON.parse(constraint.value), variant);
    default:
      return undefined;
  }
}
