/** What a running template has around it. Rendering is synchronous: there is one for the thread. */
import { TemplateTextLimitError } from "../errors.ts";
import type { Style } from "./json.ts";
import { charge, deeper, MAX_TEXT } from "./limits.ts";
import type { Value } from "./values.ts";

/** Variables of a template: those it set at its top level, and those it was given, the names that every template knows among them. */
export interface Context {
  readonly vars: Map<string, Value>;
  readonly given: ReadonlyMap<string, Value>;
}

/** Variables of one call of a function of a template; the first element is those around it. A hole: nothing set. */
export type Cells = [Cells | undefined, ...(Value | undefined)[]];

export type Evaluate = (cells: Cells) => Value;
/** What ends the run of a body early. */
export type Signal = 0 | typeof BREAK | typeof CONTINUE;
export interface Run {
  (cells: Cells): Signal;
  /** The same, giving way between the turns of the outermost loops; absent: there are none in it. */
  steps?: Steps;
}
export type Steps = (cells: Cells) => Generator<void, Signal>;
export const BREAK = 1;
export const CONTINUE = 2;

export const runtime: {
  out: string;
  line: number;
  context: Context;
  now: Date | undefined;
  /** What `tojson` finds written already, by its style. */
  written: readonly Style[] | undefined;
} = {
  out: "",
  line: 0,
  context: { vars: new Map(), given: new Map() },
  now: undefined,
  written: undefined,
};

export function write(text: string): void {
  runtime.out += text;
  if (runtime.out.length > MAX_TEXT)
    throw new TemplateTextLimitError(`the prompt has more than ${MAX_TEXT} characters`);
}

/** The value of a name in the context; undefined: there is none. */
export function resolve(name: string): Value | undefined {
  const { vars, given } = runtime.context;
  const set = vars.get(name);
  return set !== undefined ? set : given.get(name);
}

/** Runs a body and gives what it printed; undefined when it ended by `break` or `continue`, which `signal` tells then. */
export function capture(body: Run, cells: Cells): { text: string; signal: Signal } {
  const outer = runtime.out;
  runtime.out = "";
  const signal = body(cells);
  const text = runtime.out;
  runtime.out = outer;
  charge(text.length >> 6);
  return { text, signal };
}

/** Like `capture`, one level deeper: for functions of templates, which may call each other. */
export function captureCall(body: Run, cells: Cells): string {
  const { line } = runtime;
  const { text } = deeper(() => capture(body, cells));
  runtime.line = line;
  return text;
}
