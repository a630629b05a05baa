/** Reading the parts of a tokenizer.json with errors that name them. */
import { isObject } from "../image/tokenizer-json.ts";
import { TokenizerError } from "../tokenizer.ts";

export type Json = Record<string, unknown>;

/** A part of the file: its kind, e.g. "normalizer", and its value. */
export interface Part {
  readonly kind: string;
  readonly json: Json;
}

export function partOf(kind: string, json: unknown): Part {
  if (!isObject(json) || typeof json["type"] !== "string")
    throw new TokenizerError(`the ${kind} of tokenizer.json is not an object with a type`);
  return { kind, json };
}

export const typeOf = ({ json }: Part): string => json["type"] as string;

export const unsupported = ({ kind, json }: Part, what?: string): TokenizerError => {
  const text = JSON.stringify(json);
  const shown = text.length > 300 ? `${text.slice(0, 300)}…` : text;
  return new TokenizerError(
    `tokenizer.json uses the ${kind} ${shown}${what === undefined ? "" : ` with ${what}`}, which is not supported`,
  );
};

const wrong = ({ kind, json }: Part, name: string): TokenizerError =>
  new TokenizerError(`the ${kind} ${String(json["type"])} of tokenizer.json has no valid ${name}`);

export function flag(part: Part, name: string, otherwise?: boolean): boolean {
  const value = part.json[name] ?? otherwise;
  if (typeof value !== "boolean") throw wrong(part, name);
  return value;
}

export function text(part: Part, name: string): string {
  const value = part.json[name];
  if (typeof value !== "string") throw wrong(part, name);
  return value;
}

/** One character. */
export function character(part: Part, name: string): string {
  const value = text(part, name);
  if ([...value].length !== 1) throw wrong(part, name);
  return value;
}

export function count(part: Part, name: string): number {
  const value = part.json[name];
  if (!Number.isSafeInteger(value) || Number(value) < 0) throw wrong(part, name);
  return Number(value);
}

export function parts(part: Part, name: string): Part[] {
  const value = part.json[name];
  if (!Array.isArray(value)) throw wrong(part, name);
  return value.map((json) => partOf(part.kind, json));
}

/** A `pattern`: a text to be taken literally, or an expression of Oniguruma. */
export function pattern(part: Part): { readonly literal: string } | { readonly expression: string } {
  const value = part.json["pattern"];
  if (isObject(value)) {
    if (typeof value["String"] === "string" && value["String"] !== "") return { literal: value["String"] };
    if (typeof value["Regex"] === "string") return { expression: value["Regex"] };
  }
  throw wrong(part, "pattern");
}
