/**
 * Large JSON texts, read piece by piece: one call of `JSON.parse` for a text of megabytes holds a thread for up to a second where
 * the text has many keys, strings or brackets. What is read is what `JSON.parse` gives.
 */
import { BadJsonError } from "../errors.ts";
import { inTurns, PIECE_TEXT, type Steps } from "../steps.ts";
import { MAX_DEPTH, makePrintable, parseText, refuseDepth } from "./json-object.ts";

/** UTF-16 units that `JSON.parse` is given at a time; more only where a single string is longer. Takes up to 5 ms. */
const PIECE = PIECE_TEXT;
/** Keys of one object: far more than anything means, and few enough to check what is in them at one go. */
const MAX_KEYS = 100_000;

const [QUOTE, COMMA, BACKSLASH] = [0x22, 0x2c, 0x5c];
const [ARRAY, ARRAY_END, OBJECT, OBJECT_END] = [0x5b, 0x5d, 0x7b, 0x7d];

/**
 * The same as `parseObject` and `refuseDepth`, with pauses in which other work of the thread is done. Objects of too many keys are refused,
 * too. `what` begins the messages of errors. Throws BadJsonError.
 */
export async function parseSliced(text: string, what: string): Promise<object> {
  return inTurns(new SlicedReader(text, what).read());
}

type Container = unknown[] | Record<string, unknown>;

/** An array or object whose end has not been seen. */
interface Open {
  readonly isArray: boolean;
  /** Where it begins: the bracket. */
  readonly from: number;
  /** Where the elements begin that were not read yet. */
  start: number;
  /** Where the element begins that is being looked through. */
  element: number;
  keys: number;
  /** What was read of it; undefined: nothing, and it may yet be read in one piece with what it is in. */
  value: Container | undefined;
  /** Where the value of an open child goes that is read by pieces. */
  childKey: string | undefined;
  /** Its last element was such a child: only a comma or the end may follow. */
  afterChild: boolean;
}

class SlicedReader {
  private readonly open: Open[] = [];
  /** What lies before was read, or is in no piece. */
  private readTill = 0;

  constructor(
    private readonly text: string,
    private readonly what: string,
  ) {}

  /** Gives way between any two pieces. */
  *read(): Steps<object> {
    const { text, open } = this;
    const root = text.search(/[^ \t\r\n]/);
    if (root < 0) throw new BadJsonError(`${this.what} is empty: a JSON object is needed`);
    if (text.charCodeAt(root) !== OBJECT) throw new BadJsonError(`${this.what} must be a JSON object`);
    let pause = PIECE;
    for (let at = root; at < text.length; at++) {
      if (at >= pause) {
        yield;
        pause = at + PIECE;
      }
      switch (text.charCodeAt(at)) {
        case QUOTE:
          at = this.endOfString(at);
          break;
        case COMMA:
          this.comma(at);
          break;
        case ARRAY:
        case OBJECT:
          if (open.length === MAX_DEPTH) throw new BadJsonError(`${this.what} nests deeper than ${MAX_DEPTH} levels`);
          open.push(opened(at, text.charCodeAt(at) === ARRAY));
          break;
        case ARRAY_END:
        case OBJECT_END: {
          const value = this.close(at);
          if (open.length > 0) break;
          if (!isBlank(text, at + 1, text.length)) throw this.wrong("something follows the object");
          return value ?? this.parse(text.slice(root, at + 1));
        }
      }
    }
    throw this.wrong("it ends too early");
  }

  private endOfString(from: number): number {
    const { text } = this;
    for (let at = text.indexOf('"', from + 1); at >= 0; at = text.indexOf('"', at + 1)) {
      let before = at - 1;
      while (text.charCodeAt(before) === BACKSLASH) before--;
      if ((at - before) % 2 === 1) return at;
    }
    throw this.wrong("it ends too early");
  }

  private comma(at: number): void {
    const list = this.open.at(-1);
    if (list === undefined) throw this.wrong("unexpected comma");
    if (!list.isArray && ++list.keys >= MAX_KEYS)
      throw new BadJsonError(`${this.what} has an object of more than ${MAX_KEYS} keys`);
    if (list.afterChild) this.skipTo(list, at);
    else if (at - this.readTill >= PIECE) this.readTo(at);
    list.element = at + 1;
  }

  /** Behind a child that was read by pieces comes nothing but a comma, or the end. */
  private skipTo(list: Open, at: number): void {
    if (!isBlank(this.text, list.start, at)) throw this.wrong("a comma is missing");
    list.afterChild = false;
    list.start = at + 1;
  }

  /** Reads all elements that are complete, up to the comma here. */
  private readTo(at: number): void {
    const { open, text } = this;
    open.forEach((list, depth) => {
      const child = open[depth + 1];
      if (list.childKey !== undefined) return; // it waits for its child since an earlier piece
      if (child === undefined) this.add(list, at);
      else {
        if (list.element > list.start) this.add(list, list.element - 1);
        list.value ??= list.isArray ? [] : {};
        list.childKey = this.keyOf(list, text.slice(list.element, child.from));
      }
      list.start = at + 1;
    });
    this.readTill = at + 1;
  }

  /** Adds the elements between `start` and here. */
  private add(list: Open, to: number): void {
    const elements = this.text.slice(list.start, to);
    if (list.isArray) {
      const more = this.parse(`[${elements}]`) as unknown[];
      if (more.length === 0) throw this.wrong("unexpected comma");
      list.value ??= [];
      for (const element of more) (list.value as unknown[]).push(element);
      return;
    }
    const more = this.parse(`{${elements}}`) as Record<string, unknown>;
    const keys = Object.keys(more);
    if (keys.length === 0) throw this.wrong("unexpected comma");
    list.value ??= {};
    for (const key of keys) setKey(list.value as Record<string, unknown>, key, more[key]);
  }

  /** The key of a child, from the text before its bracket; the empty string in an array. */
  private keyOf({ isArray }: Open, before: string): string {
    if (isArray && before.trim() !== "") throw this.wrong("a comma is missing");
    return isArray ? "" : (Object.keys(this.parse(`{${before}0}`))[0] ?? "");
  }

  /** Gives the value, if it was read by pieces. */
  private close(at: number): Container | undefined {
    const { open, text } = this;
    const list = open.pop();
    if (list === undefined || list.isArray !== (text.charCodeAt(at) === ARRAY_END))
      throw this.wrong(`unexpected '${text[at]}'`);
    if (list.value === undefined) return undefined;
    if (list.afterChild) this.skipTo(list, at);
    else this.add(list, at);
    makePrintable(list.value);
    const parent = open.at(-1);
    if (parent !== undefined) {
      if (parent.isArray) (parent.value as unknown[]).push(list.value);
      else setKey(parent.value as Record<string, unknown>, parent.childKey ?? "", list.value);
      parent.childKey = undefined;
      parent.afterChild = true;
      parent.start = at + 1;
    }
    return list.value;
  }

  private parse(text: string): object {
    const value = parseText(text, this.what) as object;
    refuseDepth(value, this.what);
    return value;
  }

  private wrong(how: string): BadJsonError {
    return new BadJsonError(`${this.what} is not valid JSON: ${how}`);
  }
}

function opened(from: number, isArray: boolean): Open {
  const start = from + 1;
  return { isArray, from, start, element: start, keys: 0, value: undefined, childKey: undefined, afterChild: false };
}

/** As `JSON.parse` sets it: a key `__proto__` is one like any other. */
function setKey(object: Record<string, unknown>, key: string, value: unknown): void {
  if (key !== "__proto__") object[key] = value;
  else Object.defineProperty(object, key, { value, writable: true, enumerable: true, configurable: true });
}

function isBlank(text: string, from: number, to: number): boolean {
  for (let at = from; at < to; at++) {
    const code = text.charCodeAt(at);
    if (code !== 0x20 && code !== 0x0a && code !== 0x0d && code !== 0x09) return false;
  }
  return true;
}
