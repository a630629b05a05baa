import { look, type Step, skipSpace, take, until } from "../input.ts";
import { OPEN_LIST, OPEN_OBJECT } from "../json.ts";
import type { Parsing } from "../parsing.ts";

/** Reasoning between markers. */
export interface ThinkingFamily {
  readonly open: readonly string[];
  readonly close: readonly string[];
  /**
   * Openers that end reasoning without its closer and belong to what follows. `next`: only before one of these;
   * `drop`: belongs to no one.
   */
  readonly endedBy?: readonly { readonly marker: string; readonly next?: readonly string[]; readonly drop?: boolean }[];
  /** Markers of the template around visible text. */
  readonly drop?: readonly string[];
  /** Closers of visible text: met in reasoning that was only assumed, they show that it was visible text. */
  readonly textClosers?: readonly string[];
  /** The opener counts at the begin of the answer only. */
  readonly onlyAtStart?: boolean;
}

/** So much reasoning that was only assumed is held back until a marker shows what it is. */
const ASSUMED = 200;

/** The program of such a family. `isInCall`: the text so far ends inside a tool call, where markers are values. */
export function thinking(family: ThinkingFamily, isInCall: () => boolean): (p: Parsing) => Step<void> {
  const { open, close, endedBy = [], drop = [], textClosers = [], onlyAtStart = false } = family;
  return function* run(p) {
    const { input } = p;
    const openers = p.set(...open);
    const inText = p.set(...open, ...drop, ...textClosers);
    const inTextLater = onlyAtStart ? p.set(...drop) : inText;
    const closers = p.set(...close);
    const nexts = endedBy.map(({ next }) => (next === undefined ? undefined : p.set(...next)));
    const inReasoning = p.set(...close, ...textClosers, ...endedBy.map(({ marker }) => marker));
    const reasoning = new AssumedReasoning(p, textClosers.length > 0);
    const keeps = p.options.keepsMarkers === true;
    let isInside = yield* begins(p, p.options.startsInReasoning ? openers : closers, keeps);
    let atStart = true;
    for (;;) {
      if (!isInside) {
        const set = atStart ? inText : inTextLater;
        let written = false;
        const hit = yield* until(input, set, (text) => {
          written ||= text.trim() !== "";
          p.text(text);
        });
        if (hit < 0) return;
        if (written) atStart = false;
        const isOpener = set === inText && hit < open.length;
        if (isInCall() || (isOpener && onlyAtStart && !atStart)) p.text(set.markers[hit]!);
        else {
          isInside = isOpener;
          if (keeps && isOpener) p.reasoning(set.markers[hit]!);
          else if (keeps) p.out.marker(set.markers[hit]!);
        }
        continue;
      }
      const hit = yield* until(input, inReasoning, reasoning.push);
      if (hit < 0) {
        reasoning.end();
        return;
      }
      isInside = false;
      atStart = false;
      const ender = hit - close.length - textClosers.length;
      if (ender < 0) {
        if (hit < close.length) reasoning.settle();
        else reasoning.wasText();
        if (keeps) p.out.marker(inReasoning.markers[hit]!);
      } else {
        const next = nexts[ender];
        input.record(inReasoning.markers[hit]!);
        let isReal = next === undefined;
        if (next !== undefined) isReal = (yield* skipSpace(input)) < 0 || (yield* look(input, next)) >= 0;
        const text = input.recorded();
        if (isReal) {
          reasoning.settle();
          if (endedBy[ender]!.drop !== true || keeps) p.text(text);
        } else {
          isInside = true;
          reasoning.push(text);
        }
      }
    }
  };
}

/**
 * The begin of an answer. Inside reasoning an opener that the model writes nevertheless is dropped, with the space before it;
 * outside, a closer that comes before all text is dropped. `keeps`: neither is.
 */
function* begins(p: Parsing, markers: ReturnType<Parsing["set"]>, keeps: boolean): Step<boolean> {
  const { input } = p;
  const { startsInReasoning } = p.options;
  input.record();
  yield* skipSpace(input);
  const hit = yield* take(input, markers);
  if (hit < 0) input.rewind(0);
  else if (keeps && startsInReasoning) p.reasoning(input.recorded());
  else if (keeps) p.out.marker(input.recorded());
  else input.forget();
  return startsInReasoning;
}

/** Reasoning that was only assumed from the prompt: held back at first, where it may turn out to be the answer. */
class AssumedReasoning {
  private held = "";
  private isHeld: boolean;
  private looksLikeJson: boolean | undefined;
  private readonly isConstrained: boolean;

  constructor(
    private readonly p: Parsing,
    isDoubtful: boolean,
  ) {
    this.isConstrained = p.options.startsInReasoning && p.options.constrained === true;
    this.isHeld = p.options.startsInReasoning && (isDoubtful || this.isConstrained);
  }

  readonly push = (text: string): void => {
    if (!this.isHeld) {
      this.p.reasoning(text);
      return;
    }
    this.held += text;
    if (this.held.length > ASSUMED && !(this.looksLikeJson ??= this.beginsAsJson())) this.settle();
  };

  /** It is reasoning. */
  settle(): void {
    this.isHeld = false;
    this.p.reasoning(this.held);
    this.held = "";
  }

  /** It was visible text. */
  wasText(): void {
    this.isHeld = false;
    this.p.text(this.held);
    this.held = "";
  }

  /** The answer ended without a marker: under a grammar it was the answer. */
  end(): void {
    if (this.isHeld && this.isConstrained) this.wasText();
    else this.settle();
  }

  private beginsAsJson(): boolean {
    const first = this.held.trimStart().charCodeAt(0);
    return this.isConstrained && (first === OPEN_OBJECT || first === OPEN_LIST);
  }
}
