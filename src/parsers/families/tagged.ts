import { endsInMarker, type Input, peek, readWhile, type Step, skipSpace, take, until, untilCloser } from "../input.ts";
import { escapeJson, jsonValue, OPEN_OBJECT } from "../json.ts";
import { CODE_START, type MarkerSet } from "../markers.ts";
import type { Parsing } from "../parsing.ts";
import { Kind } from "../schema.ts";
import { ArgumentValue } from "../values.ts";
import { attributesOf, readValue, type ValueEnds } from "./value-reading.ts";

/** Calls as tags: a block, calls in it, parameters in them. */
export interface TaggedFamily {
  readonly open: readonly string[];
  readonly close: readonly string[];
  /** Opener of a call up to its name. */
  readonly call: string;
  readonly callClose: string;
  readonly parameter: string;
  readonly parameterClose: string;
  /** Names stand in attributes, `name="…"`, instead of behind `=`. */
  readonly attributes?: boolean;
  /** A call may stand without the block around it. */
  readonly bareCalls?: boolean;
  /** The template puts one newline on each side of a value. */
  readonly newlines?: boolean;
  /** Further end markers that may follow the block. */
  readonly tail?: readonly string[];
  /** What may stand around a call in a block. */
  readonly fillers?: readonly string[];
  /** The text before the block ends with these, by the template. */
  readonly before?: string;
  /** Values may stand between `<![CDATA[` and `]]>`. */
  readonly cdata?: boolean;
  /** The body of a call may be one JSON object. */
  readonly jsonBody?: boolean;
}

const OPEN_TAG = 60;
const CLOSE_TAG = 62;
/** The bar in markers of DeepSeek, which no name has. */
const MARKER_BAR = 0xff5c;
const NEWLINE = 10;
const MAX_TAG = 512;
const CDATA = ["<![CDATA[", "]]>"] as const;

/** The program of such a family. */
export function tagged(family: TaggedFamily): (p: Parsing) => Step<void> {
  return function* run(p) {
    const { input } = p;
    const { before = "" } = family;
    const openers = [...(before === "" ? [] : family.open.map((tag) => before + tag)), ...family.open];
    const bare = family.bareCalls === true ? [family.call] : [];
    const outside = p.set(...openers, ...bare);
    const behindCall = p.set(...openers, ...bare, ...family.close, ...(family.fillers ?? []));
    const block = new Block(p, family);
    let closerIsDue = false;
    for (;;) {
      const set: MarkerSet = closerIsDue ? behindCall : outside;
      const hit = yield* until(input, set, p.text);
      if (hit < 0) return;
      if (hit >= openers.length + bare.length) continue;
      const isBare = hit >= openers.length;
      input.record(set.markers[hit]!);
      closerIsDue = yield* block.read(isBare);
    }
  };
}

/** The values of a call: how far it got. */
type CallEnd = "done" | "broken" | "cut";

class Block {
  private readonly inBlock: MarkerSet;
  private readonly inCall: MarkerSet;
  private readonly ends: ValueEnds;
  private readonly closers: MarkerSet;

  constructor(
    private readonly p: Parsing,
    private readonly f: TaggedFamily,
  ) {
    const newline = f.newlines === true ? "\n" : "";
    const { close, fillers = [] } = f;
    this.inBlock = p.set(f.call, ...close, ...fillers);
    this.inCall = p.set(f.parameter, f.callClose, ...close);
    this.closers = p.set(...close, ...(f.tail ?? []));
    const variants = (end: string) => (newline === "" ? [end] : [newline + end, end]);
    this.ends = {
      markers: p.set(...variants(f.parameterClose), ...variants(f.callClose)),
      closers: variants(f.parameterClose).length,
      next: this.inCall,
      forcedNext: p.set(...close, ...fillers),
    };
  }

  /** Reads calls to the end of the block; true: its closer may still come. */
  *read(isBare: boolean): Step<boolean> {
    const { p, f } = this;
    const { input } = p;
    let calls = 0;
    let hit = isBare ? 0 : -1;
    for (;;) {
      if (hit < 0) {
        yield* skipSpace(input);
        hit = yield* take(input, this.inBlock);
      }
      if (hit === 0) {
        const tag = yield* tagText(input);
        const name = tag === undefined ? "" : (this.names(tag)["name"] ?? tag).trim();
        if (name === "") break;
        const end = yield* this.call(name);
        if (end !== "done") return end === "broken";
        calls++;
        input.record();
        hit = -1;
      } else if (hit > f.close.length) hit = -1;
      else if (hit > 0 && calls > 0) {
        yield* p.skipMarkers(this.closers);
        return false;
      } else break;
    }
    p.giveBack();
    return calls > 0;
  }

  /** The attributes of a tag; where the name stands by itself, as `name`. */
  private names(tag: string): Readonly<Record<string, string>> {
    if (this.f.attributes === true) return { name: tag, ...attributesOf(`name="${tag}`) };
    return { name: /^\s*(["']?)(.*?)\1\s*$/s.exec(tag)?.[2] ?? tag };
  }

  private *call(name: string): Step<CallEnd> {
    const { p, f } = this;
    const { input, out } = p;
    p.start(name);
    // What is missing to a whole JSON object.
    let missing = "{}";
    for (;;) {
      input.record();
      const c = yield* skipSpace(input);
      if (c === OPEN_OBJECT && f.jsonBody === true && missing === "{}") {
        missing = "";
        input.forget();
        const outcome = yield* jsonValue(input, p.arguments);
        if (outcome === "done") continue;
        out.leave();
        return outcome;
      }
      const hit = yield* take(input, this.inCall);
      if (hit === 0 && missing !== "") {
        const tag = yield* tagText(input);
        if (tag === undefined) return this.leaveTag(missing === "}");
        input.forget();
        const end = yield* this.value(name, this.names(tag), missing === "}");
        if (end !== "done") return end;
        missing = "}";
      } else if (hit > 0) {
        // The block's own closer ends the call as well.
        input.forget();
        out.arguments(missing);
        out.end();
        return "done";
      } else return this.leave();
    }
  }

  private leave(): CallEnd {
    return this.p.leave() ? "cut" : "broken";
  }

  /** As `leave`, in the tag of a parameter: the begin of a name that the text ends in belongs to the arguments. */
  private leaveTag(begun: boolean): CallEnd {
    const { p, f } = this;
    const { input } = p;
    if (!input.isAtEnd) return this.leave();
    const [, half = ""] = p.special.plain(input.recorded()).split(f.parameter);
    const [key, ...rest] = half.split(f.attributes === true ? '"' : "\0");
    if (half !== "") p.arguments(`${begun ? ", " : "{"}"${escapeJson(key!)}${rest.length > 0 ? '"' : ""}`);
    return this.leave();
  }

  /** Reads a value between the marks of XML for text that is no markup, if that is what comes. */
  private *quotedValue(value: ArgumentValue): Step<CallEnd> {
    const { p } = this;
    const { input, out } = p;
    input.record();
    yield* skipSpace(input);
    const opener = p.set(CDATA[0]);
    const isQuoted = (yield* take(input, opener)) >= 0;
    if (!isQuoted && !endsInMarker(input, opener)) {
      input.rewind(0);
      return "done";
    }
    input.forget();
    const closer = p.set(CDATA[1]);
    const end = isQuoted ? yield* untilCloser(input, closer, (text) => value.push(p.special.plain(text))) : -1;
    if (end < 0) {
      input.at = input.text.length;
      value.cut();
      out.leave();
      return "cut";
    }
    yield* skipSpace(input);
    return "done";
  }

  /** Reads one parameter's value and its closer. */
  private *value(tool: string, tag: Readonly<Record<string, string>>, begun: boolean): Step<CallEnd> {
    const { p, f } = this;
    const { input, out } = p;
    const key = tag["name"] ?? "";
    out.arguments(`${begun ? ", " : "{"}${JSON.stringify(p.special.plain(key))}: `);
    const declared = tag["string"];
    const kinds = declared === undefined ? p.tools.kinds(tool, key) : declared === "true" ? Kind.string : 0;
    if (f.newlines === true && (yield* peek(input)) === NEWLINE) input.at++;
    const value = new ArgumentValue(kinds, p.arguments, p.tools.choices(tool, key));
    if (f.cdata === true && (yield* this.quotedValue(value)) === "cut") return "cut";
    return yield* readValue(p, value, this.ends);
  }
}

const isTagText = (c: number): boolean =>
  c !== CLOSE_TAG && c !== NEWLINE && c !== OPEN_TAG && c !== MARKER_BAR && c !== CODE_START;

/** The rest of a tag up to `>`, which is read too; undefined when it is none. */
function* tagText(input: Input): Step<string | undefined> {
  const text = yield* readWhile(input, isTagText, MAX_TAG);
  if (text === undefined || (yield* peek(input)) !== CLOSE_TAG) return undefined;
  input.at++;
  return text;
}
