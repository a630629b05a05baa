import { InvalidRequestError } from "../../errors.ts";

/** One text of a request: as text, or as token ids that go to the engine as they are. */
export type PoolingInput = { readonly at: string } & (
  | { readonly text: string; readonly tokenIds?: undefined }
  | { readonly text?: undefined; readonly tokenIds: Uint32Array }
);

const invalid = (param: string, problem: string) =>
  new InvalidRequestError(`Invalid '${param}': ${problem}`, { param });

/**
 * The texts of an `input`: a string, a list of strings, a list of token ids, or a list of such lists. `at` is where each stands in the
 * request, for errors. Checked by hand: lists are long. Throws InvalidRequestError for other values, and for texts without content
 * unless `mayBeEmpty`.
 */
export function poolingInputs(input: unknown, param: string, vocabSize: number, mayBeEmpty = false): PoolingInput[] {
  if (input === undefined || input === null)
    throw new InvalidRequestError(`Missing required parameter: '${param}'`, { param });
  const textOf = (text: string, at: string) => (mayBeEmpty ? { text, at } : textInput(text, at));
  if (typeof input === "string") return [textOf(input, param)];
  if (!Array.isArray(input)) throw invalid(param, "expected a string, a list of strings, or token ids");
  const list: readonly unknown[] = input;
  if (list.length === 0) throw invalid(param, "it is empty");
  if (typeof list[0] === "number") return [{ at: param, tokenIds: tokenIds(list, param, vocabSize) }];
  const isText = typeof list[0] === "string";
  return list.map((item, i): PoolingInput => {
    const at = `${param}[${i}]`;
    if (isText && typeof item === "string") return textOf(item, at);
    if (!isText && Array.isArray(item)) return { at, tokenIds: tokenIds(item, at, vocabSize) };
    throw invalid(at, isText ? "expected a string like the others" : "expected a string or a list of token ids");
  });
}

/** A text that must not be empty. */
export function textInput(text: string, at: string): PoolingInput {
  if (text === "") throw invalid(at, "it is empty");
  return { at, text };
}

function tokenIds(list: readonly unknown[], at: string, vocabSize: number): Uint32Array {
  if (list.length === 0) throw invalid(at, "it is empty");
  const ids = new Uint32Array(list.length);
  for (let i = 0; i < list.length; i++) {
    const id = list[i]; // pairs of `entries()` would take milliseconds in a list of a million
    if (!Number.isInteger(id) || Number(id) < 0 || Number(id) >= vocabSize)
      throw invalid(`${at}[${i}]`, `expected a token id from 0 to ${vocabSize - 1}`);
    ids[i] = Number(id);
  }
  return ids;
}
