/** The `post_processor` part of a tokenizer.json as a plain value: which ids go around a text, or around two. */
import { isObject } from "./image/tokenizer-json.ts";
import { type PostProcessor, TokenizerError } from "./tokenizer.ts";

type Item = number | "A" | "B";
/** One list of items per encoding: the Rust library joins them after the last processor of a sequence. */
type Encodings = readonly (readonly Item[])[];
type Processor = (encodings: Encodings) => Encodings;

/**
 * The ids that a `post_processor` (the JSON value; null or undefined: none) adds. Throws `TokenizerError` naming the part if it is
 * unknown, damaged, or takes a text more or less than once.
 */
export function postProcessorOf(json: unknown): PostProcessor {
  if (json === null || json === undefined) return { single: ["A"], pair: ["A", "B"] };
  const process = processorOf(json);
  const single = process([["A"]]).flat();
  if (single.filter((item) => item === "A").length !== 1) throw unsupported("does not hold its text once");
  return { single: single.filter((item) => item !== "B"), pair: process([["A"], ["B"]]).flat() };
}

const unsupported = (what: string): TokenizerError =>
  new TokenizerError(`the post_processor of tokenizer.json ${what}, which is not supported`);

function processorOf(json: unknown): Processor {
  const type = isObject(json) ? json["type"] : undefined;
  if (!isObject(json) || typeof type !== "string") throw unsupported("is not an object with a type");
  switch (type) {
    case "ByteLevel":
      return (encodings) => encodings; // it moves offsets only
    case "BertProcessing":
      return around(json, []);
    case "RobertaProcessing":
      return around(json, [namedId(json, "sep")]);
    case "TemplateProcessing":
      return template(json);
    case "Sequence": {
      const list = json["processors"];
      if (!Array.isArray(list)) throw unsupported("has a Sequence without processors");
      const processors = list.map(processorOf);
      return (encodings) => processors.reduce((e, process) => process(e), encodings);
    }
    default:
      throw unsupported(`is ${type}`);
  }
}

/** `cls A sep`, then `lead B sep`. */
function around(json: Record<string, unknown>, lead: readonly number[]): Processor {
  const cls = namedId(json, "cls");
  const sep = namedId(json, "sep");
  return (encodings) => encodings.map((items, i) => [...(i === 0 ? [cls] : lead), ...items, sep]);
}

/** A token written as `[text, id]`. */
function namedId(json: Record<string, unknown>, name: "cls" | "sep"): number {
  const token = json[name];
  const id: unknown = Array.isArray(token) ? token[1] : undefined;
  if (!isId(id)) throw unsupported(`has no ${name} token`);
  return id;
}

const isId = (x: unknown): x is number => Number.isInteger(x) && Number(x) >= 0 && Number(x) < 2 ** 32;

function template(json: Record<string, unknown>): Processor {
  const single = pieces(json, "single");
  const pair = pieces(json, "pair");
  return (encodings) => {
    if (encodings.length !== 1 && encodings.length !== 2) throw unsupported("has a template after another template");
    return (encodings.length === 2 ? pair : single).map((piece) => {
      if (typeof piece !== "number") return piece;
      const encoding = encodings[piece];
      if (!encoding) throw unsupported("has a template for one text that names a second");
      return encoding;
    });
  };
}

/** The pieces of a template: the number of a text, or ids. */
function pieces(json: Record<string, unknown>, name: "single" | "pair"): (number | readonly number[])[] {
  const list = json[name];
  const tokens = json["special_tokens"];
  if (!Array.isArray(list) || !isObject(tokens)) throw unsupported(`has a template without ${name} or special_tokens`);
  return list.map((piece: unknown) => {
    const sequence = isObject(piece) && isObject(piece["Sequence"]) ? piece["Sequence"]["id"] : undefined;
    if (sequence === "A" || sequence === "B") return sequence === "A" ? 0 : 1;
    const id = isObject(piece) && isObject(piece["SpecialToken"]) ? piece["SpecialToken"]["id"] : undefined;
    const token = typeof id === "string" && Object.hasOwn(tokens, id) ? tokens[id] : undefined;
    const ids: unknown = isObject(token) ? token["ids"] : undefined;
    if (!Array.isArray(ids) || !ids.every(isId)) throw unsupported(`has no special token for ${JSON.stringify(piece)}`);
    return ids;
  });
}
