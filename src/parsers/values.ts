import { Input } from "./input.ts";
import { escapeJson, parseJson } from "./json.ts";
import { pythonValue } from "./python.ts";
import { Kind, type Kinds, kindOfValue } from "./schema.ts";

const WORDS = ["true", "false", "null", "True", "False", "None"];
/** What can be something else than a string for so long is looked at again at its end only. */
const MAX_LOOKED_AT = 400;

/** Turns the raw text of one argument into JSON: strings as they arrive, other types when the value is whole. */
export class ArgumentValue {
  private raw = "";
  private isString: boolean;
  private isUndecided = false;

  /**
   * @param kinds the types that the schema allows
   * @param emit takes JSON text
   * @param choices the strings that the schema names; grammars of engines allow white space around a value
   */
  constructor(
    private readonly kinds: Kinds,
    private readonly emit: (json: string) => void,
    private readonly choices: readonly string[] = [],
  ) {
    this.isString = kinds === Kind.string && choices.length === 0;
    if (this.isString) emit('"');
  }

  push(text: string): void {
    if (this.isString) {
      this.emit(escapeJson(text));
      return;
    }
    this.raw += text;
    if (this.isUndecided || !this.mustBeString()) {
      this.isUndecided ||= this.raw.length > MAX_LOOKED_AT;
      return;
    }
    this.isString = true;
    this.emit(`"${escapeJson(this.raw)}`);
  }

  /** The value is whole. */
  end(): void {
    const { choices } = this;
    const trimmed = this.raw.trim();
    const isPadded = !choices.includes(this.raw) && choices.includes(trimmed);
    this.emit(this.isString ? '"' : valueAsJson(isPadded ? trimmed : this.raw, this.kinds));
  }

  /** The text ended inside the value: what was generated, unclosed. No quote is invented for what need not be a string. */
  cut(): void {
    if (this.isString) return;
    const text = this.raw.trimStart();
    if (this.kinds === Kind.string) this.emit(`"${escapeJson(text)}`);
    else if (text !== "") this.emit(text);
  }

  /** Whether what is there can only be a string. */
  private mustBeString(): boolean {
    const { kinds } = this;
    if (kinds !== 0 && (kinds & Kind.string) === 0) return false;
    const text = this.raw.trimStart();
    if (text === "" || this.choices.some((choice) => isBegin(text, choice))) return false;
    if (kinds === Kind.string) return true;
    const first = text[0]!;
    const allows = (kind: Kinds) => kinds === 0 || (kinds & kind) !== 0;
    if (first === "{") return !allows(Kind.object);
    if (first === "[") return !allows(Kind.array);
    if (first === '"') return kinds !== 0;
    if (/[-\d]/.test(first)) {
      return !allows(Kind.integer | Kind.number) || !/^[-\d.eE+\s]*$/.test(text);
    }
    const word = text.trimEnd();
    return !allows(Kind.boolean | Kind.null) || !WORDS.some((known) => known.startsWith(word));
  }
}

/** Whether a text can become `choice`, with white space behind it. */
const isBegin = (text: string, choice: string): boolean =>
  choice.startsWith(text) || (text.startsWith(choice) && text.trimEnd() === choice.trimEnd());

/** JSON of an argument's raw text. The schema decides; without one: JSON, Python's constants, else a string. */
export function valueAsJson(raw: string, kinds: Kinds): string {
  if (kinds === Kind.string) return JSON.stringify(raw);
  const text = raw.trim();
  const isOpen = kinds === 0;
  if ((isOpen || (kinds & Kind.null) !== 0) && (text === "null" || text === "None")) return "null";
  const value = parseJson(text);
  if (value !== undefined) {
    const kind = kindOfValue(value);
    const fits = isOpen || (kinds & kind) !== 0 || (kinds & Kind.string) === 0;
    // Where strings are allowed, quotes are part of the string.
    return fits && !(kind === Kind.string && (kinds & Kind.string) !== 0) ? text : JSON.stringify(raw);
  }
  if (text === "True" || text === "False") {
    return isOpen || (kinds & Kind.boolean) !== 0 ? text.toLowerCase() : JSON.stringify(raw);
  }
  const literal = isOpen ? undefined : pythonAsJson(text, kinds);
  return literal ?? JSON.stringify(raw);
}

/** A Python list, dict or number as JSON, where the schema allows it. */
function pythonAsJson(text: string, kinds: Kinds): string | undefined {
  const first = text[0];
  const container =
    first === "{" ? Kind.object : first === "[" || first === "(" ? Kind.array : Kind.number | Kind.integer;
  if ((kinds & container) === 0) return undefined;
  const input = new Input();
  // A space ends the last word.
  input.feed(`${text} `);
  input.ended = true;
  let json = "";
  const outcome = pythonValue(input, (piece) => {
    json += piece;
  }).next();
  if (outcome.done !== true || outcome.value !== "done" || input.text.slice(input.at).trim() !== "") return undefined;
  return json.startsWith('"') ? undefined : json;
}
