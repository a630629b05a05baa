import { look, peek, readWhile, type Step, skipSpace, take, until } from "../input.ts";
import { escapeJson } from "../json.ts";
import { CODE_START, type MarkerSet } from "../markers.ts";
import type { Parsing } from "../parsing.ts";
import { choicesOf, itemSchema, Kind, type Kinds, kindsOf, parameterSchema } from "../schema.ts";
import { ArgumentValue } from "../values.ts";
import { attributesOf, readValue } from "./value-reading.ts";

/** Stands before every tag. */
const NAMESPACE = "]<]minimax[>[";
const OPEN = "<tool_call>";
const CLOSE = "</tool_call>";
/** Name of the tags of a list's items. */
const ITEM = "item";
const CLOSE_TAG = 62;
const OPEN_TAG = 60;
const SLASH = 47;
const NEWLINE = 10;
const MAX_TAG = 512;
const MAX_DEPTH = 64;
/** The tag of a parameter that the text ended in, from its name on. */
const HALF_KEY = /<(?:parameter name="?)?([^\s<>"/][^<>"]*)$/;
/** A tag that the text ended in, without more of a name than belongs to the format. */
const HALF_TAG = /^\s*(?:\]<\]minimax\[>\[\s*(?:<\/?[a-z]{0,9}(?: ?[a-z]{0,4}=?"?)?)?)?$/;

export const MINIMAX_M3_MARKERS = [NAMESPACE, OPEN, CLOSE];

/** How far a call or a value of it got; `broken` and `cut`: the call has been left. */
type End = "done" | "broken" | "cut";

/** A value's place: its schema, and the document that references in the schema point into. */
interface Place {
  readonly schema: unknown;
  readonly root: unknown;
}

/**
 * Calls of MiniMax M3: tags behind a token of their own. A parameter is a tag with its name; inside, tags are the members of an
 * object, or, by the schema or the name `item`, the items of a list.
 */
export function* minimaxM3(p: Parsing): Step<void> {
  const { input, out } = p;
  const namespace = p.set(NAMESPACE);
  const openers = p.set(OPEN);
  const closers = p.set(CLOSE);
  const inBlock = p.set("<invoke ", CLOSE);
  const values = new Values(p, namespace);
  let closerIsDue = false;
  while ((yield* until(input, namespace, p.text)) >= 0) {
    input.record(namespace.markers[0]!);
    yield* skipSpace(input);
    if (closerIsDue && (yield* take(input, closers)) >= 0) {
      input.forget();
      out.dropSpace();
      closerIsDue = false;
    } else if ((yield* take(input, openers)) < 0) p.giveBack();
    else closerIsDue = yield* block();
  }

  /** Reads the calls of a block; true: its closer may still come. */
  function* block(): Step<boolean> {
    for (let any = false; ; any = true) {
      yield* skipSpace(input);
      const isTag = (yield* take(input, namespace)) >= 0;
      if (isTag) yield* skipSpace(input);
      const hit = isTag ? yield* take(input, inBlock) : -1;
      if (hit === 1 && any) {
        input.forget();
        return false;
      }
      const tag = hit === 0 ? yield* readTag(p) : undefined;
      const name = attributesOf(tag ?? "")["name"]?.trim() ?? "";
      if (name === "") {
        p.giveBack();
        return any;
      }
      p.start(name);
      const schema = p.tools.schema(p.special.plain(name));
      out.arguments("{");
      const end = yield* values.members({ schema, root: schema }, "invoke", 0);
      if (end !== "done") return true;
      out.arguments("}");
      out.end();
      input.record();
    }
  }
}

const isTagText = (c: number): boolean => c !== CLOSE_TAG && c !== OPEN_TAG && c !== NEWLINE && c !== CODE_START;

/** The rest of a tag up to `>`, which is read too; undefined when it is none. */
function* readTag(p: Parsing): Step<string | undefined> {
  const text = yield* readWhile(p.input, isTagText, MAX_TAG);
  if (text === undefined || (yield* peek(p.input)) !== CLOSE_TAG) return undefined;
  p.input.at++;
  return text;
}

type Shape = "list" | "object" | "empty list" | "empty object";

class Values {
  private readonly tag: MarkerSet;
  /** The block's own closer ends a call as well. */
  private readonly blockEnd: MarkerSet;

  constructor(
    private readonly p: Parsing,
    private readonly namespace: MarkerSet,
  ) {
    this.tag = p.set("<");
    this.blockEnd = p.set(CLOSE);
  }

  /** Reads the tags in a call, an object or a list, and the closer of that, named `name`. */
  *members({ schema, root }: Place, name: string, depth: number, isList = false): Step<End> {
    const { p } = this;
    const { input, out } = p;
    for (let count = 0; ; count++) {
      input.record();
      yield* skipSpace(input);
      if ((yield* take(input, this.namespace)) < 0) return this.leave();
      yield* skipSpace(input);
      if (depth === 0 && (yield* look(input, this.blockEnd)) >= 0) {
        input.rewind(0);
        return "done";
      }
      if ((yield* take(input, this.tag)) !== 0) return this.leave();
      const tag = yield* readTag(p);
      if (tag?.charCodeAt(0) === SLASH) {
        if (tag.slice(1).trim() !== name) return this.leave();
        input.forget();
        return "done";
      }
      if (tag === undefined && input.isAtEnd) return this.cutTag(count > 0, isList);
      const named = tag === undefined ? undefined : attributesOf(tag)["name"];
      const isNamed = named !== undefined && tag!.startsWith("parameter ");
      const key = isNamed ? named : (tag ?? "").trim();
      if (key === "" || tag === undefined) return this.leave();
      input.forget();
      const comma = count > 0 ? ", " : "";
      out.arguments(isList ? comma : `${comma}${JSON.stringify(p.special.plain(key))}: `);
      const child = isList ? itemSchema(schema, root) : parameterSchema(schema, key, root);
      const end = yield* this.value({ schema: child, root }, isNamed ? "parameter" : key, depth + 1);
      if (end !== "done") return end;
    }
  }

  /** The begin of a parameter's name that the text ends in belongs to the arguments. */
  private cutTag(begun: boolean, isList: boolean): End {
    const { input, out, special } = this.p;
    const half = HALF_KEY.exec(special.plain(input.seen))?.[1];
    if (half === undefined || isList) return this.leave();
    input.forget();
    out.arguments(`${begun ? ", " : ""}"${escapeJson(half)}`);
    return this.leave();
  }

  /** Reads a value, and the closer of its tag. */
  private *value(place: Place, name: string, depth: number): Step<End> {
    const { p } = this;
    const { input, out } = p;
    const kinds = kindsOf(place.schema, place.root);
    if (kinds !== Kind.string) {
      input.record();
      yield* skipSpace(input);
      const isTag = (yield* take(input, this.namespace)) >= 0;
      if (isTag) yield* skipSpace(input);
      const isOpener = isTag && (yield* peek(input)) === OPEN_TAG;
      const shape = isOpener ? yield* this.shape(kinds, name) : undefined;
      if (shape === "cut") return this.leave();
      input.rewind(0);
      if (shape === "empty list" || shape === "empty object") {
        const end = yield* this.members(place, name, depth);
        if (end === "done") out.arguments(shape === "empty list" ? "[]" : "{}");
        return end;
      }
      if (shape !== undefined) {
        if (depth > MAX_DEPTH) return this.leave();
        const isList = shape === "list";
        out.arguments(isList ? "[" : "{");
        const end = yield* this.members(place, name, depth, isList);
        if (end === "done") out.arguments(isList ? "]" : "}");
        return end;
      }
    }
    const closer = p.set(`${NAMESPACE}</${name}>`);
    const choices = choicesOf(place.schema, place.root);
    return yield* readValue(p, new ArgumentValue(kinds, p.arguments, choices), {
      markers: closer,
      closers: 1,
      next: this.namespace,
    });
  }

  /** What the tag that is next makes of a value: undefined for text, `cut` where nothing tells. */
  private *shape(kinds: Kinds, name: string): Step<Shape | "cut" | undefined> {
    const { input } = this.p;
    input.at++;
    const isCloser = (yield* peek(input)) === SLASH;
    const tag = (yield* readTag(this.p))?.trim();
    const isList = (kinds & Kind.array) !== 0;
    const isObject = (kinds & Kind.object) !== 0;
    if (isCloser) {
      if (tag?.slice(1).trim() !== name || (kinds & Kind.string) !== 0) return undefined;
      return isList ? "empty list" : isObject ? "empty object" : undefined;
    }
    if (tag === undefined) return input.ended && input.at >= input.text.length ? "cut" : undefined;
    if (isList !== isObject) return isList ? "list" : "object";
    return tag === ITEM ? "list" : "object";
  }

  private leave(): End {
    return this.p.leave(HALF_TAG) ? "cut" : "broken";
  }
}
