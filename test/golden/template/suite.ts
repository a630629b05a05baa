/** What the golden tests of templates have in common. */
import { compileTemplate } from "../../../src/template/engine/template.ts";
import { ChatTemplateError, TemplateRaisedError } from "../../../src/template/errors.ts";
import { type JsonObject, type JsonValue, parseLossless } from "../../../src/template/lossless-json.ts";

/** What a template gives, or how it fails. */
export type Rendered = { readonly text: string } | { readonly error: string; readonly raised: boolean };

/** Renders a template; an error that is none of a template's is thrown. */
export function render(template: string, context: JsonObject, now: Date): Rendered {
  try {
    return { text: compileTemplate(template).render(context, now) };
  } catch (error) {
    if (!(error instanceof ChatTemplateError)) throw error;
    return { error: error.message, raised: error instanceof TemplateRaisedError };
  }
}

export const object = (value: JsonValue | undefined): JsonObject => value as JsonObject;
export const list = (value: JsonValue | undefined): readonly JsonValue[] => value as readonly JsonValue[];

/** A file of make_random.py. */
export interface RandomCases {
  readonly made_with: { readonly now: string };
  readonly cases: readonly (readonly [template: string, expected: string | null, error?: string])[];
}

/** The cases in which we give something else than Python. `text`: the file, as its numbers count. */
export function differences({ made_with, cases }: RandomCases, text: string): { template: string; wanted: string; found: string }[] {
  const context = object(object(parseLossless(text)).get("context"));
  const now = new Date(made_with.now);
  const different: { template: string; wanted: string; found: string }[] = [];
  for (const [template, expected, error] of cases) {
    const found = render(template, context, now);
    const same = "text" in found ? found.text === expected : expected === null;
    if (!same)
      different.push({
        template,
        wanted: expected === null ? `an error: ${error}` : JSON.stringify(expected),
        found: "text" in found ? JSON.stringify(found.text) : `an error: ${found.error}`,
      });
  }
  return different;
}
