/** Templates compiled once, and rendered with variables. */
import { ChatTemplateError, TemplateLimitError } from "../errors.ts";
import { type Block, childrenOf, type Expression, type Statement } from "./ast.ts";
import { type Blocks, SelfReference } from "./blocks.ts";
import { bodyCompiler } from "./compile.ts";
import { entered, type Frame, rootFrame, withSteps, writer } from "./frames.ts";
import { GLOBALS } from "./globals.ts";
import type { Style } from "./json.ts";
import { writtenAhead } from "./json-steps.ts";
import { jsonStyles } from "./json-styles.ts";
import { syntaxError } from "./lexer.ts";
import { budget, refill } from "./limits.ts";
import { parse } from "./parse.ts";
import { type Cells, type Context, type Run, runtime } from "./runtime.ts";
import { undeclared } from "./symbols.ts";
import { Undefined, type Value } from "./values.ts";

export interface CompiledTemplate {
  /**
   * The text for these variables. `now`: the clock of `strftime_now`, in local time; absent: that of the moment it is first asked.
   * Throws a ChatTemplateError; of the class TemplateRaisedError when the template refuses by itself.
   */
  render(variables: ReadonlyMap<string, Value>, now?: Date): string;
  /** The same in steps, each short where the work is in loops over many items. `large`: what `tojson` may be asked for. */
  renderSteps(variables: ReadonlyMap<string, Value>, now?: Date, large?: Iterable<Value>): Generator<void, string>;
}

const MAX_SOURCE = 1 << 20;

function blocksOf(nodes: Iterable<Statement | Expression>, found: Block[]): Block[] {
  for (const node of nodes) {
    if (node.type === "block") found.push(node);
    blocksOf(childrenOf(node), found);
  }
  return found;
}

/** Compiles a template. Throws a ChatTemplateError with the line of what is wrong. */
export function compileTemplate(source: string): CompiledTemplate {
  refill();
  try {
    return compiled(source);
  } catch (error) {
    throw shallow(error);
  }
}

function compiled(source: string): CompiledTemplate {
  if (source.length > MAX_SOURCE) throw new ChatTemplateError(`a template of more than ${MAX_SOURCE} characters`);
  const tree = parse(source);
  const blocks: Blocks = new Map();
  const body = bodyCompiler(blocks);
  const part = (nodes: readonly Statement[], frame: Frame): Run => {
    const names = frame.toplevel ? ["self"] : ["self", "super"];
    const special = [...undeclared(nodes, names)];
    for (const name of special) frame.symbols.parameter(name);
    frame.symbols.visitAll(nodes);
    const setters = special.map((name) => [name, writer(frame, name)] as const);
    const run = entered(frame, body(nodes, frame));
    const setSpecial = (cells: Cells): void => {
      for (const [name, set] of setters)
        set(cells, name === "self" ? new SelfReference(blocks) : new Undefined("there is no parent block"));
    };
    const whole: Run = (cells) => {
      setSpecial(cells);
      return run(cells);
    };
    return withSteps(whole, run, setSpecial);
  };
  const styles = jsonStyles(tree);
  const found = blocksOf(tree, []);
  for (const { name, line } of found) {
    if (blocks.has(name)) syntaxError(`block '${name}' defined twice`, line);
    blocks.set(name, () => 0);
  }
  const run = part(tree, rootFrame(true));
  for (const block of found) blocks.set(block.name, part(block.body, rootFrame(false)));
  return {
    render: (variables, now) => render(run, variables, now),
    *renderSteps(variables, now, large = []) {
      const written = styles.length === 0 ? undefined : yield* writtenAhead(large, styles);
      return yield* renderSteps(run, variables, now, written);
    },
  };
}

const NO_CONTEXT: Context = { vars: new Map(), given: new Map() };

function begin(variables: ReadonlyMap<string, Value>, now: Date | undefined, written?: readonly Style[]): void {
  refill();
  const given = new Map(GLOBALS);
  for (const [name, value] of variables) given.set(name, value);
  runtime.out = "";
  runtime.line = 0;
  runtime.now = now;
  runtime.written = written;
  runtime.context = { vars: new Map(), given };
}

function end(): void {
  runtime.out = "";
  runtime.context = NO_CONTEXT;
  runtime.written = undefined;
}

function withLine(error: unknown): unknown {
  const known = shallow(error);
  if (known instanceof ChatTemplateError && runtime.line > 0) known.line ??= runtime.line;
  return known;
}

function render(
  run: Run,
  variables: ReadonlyMap<string, Value>,
  now: Date | undefined,
  written?: readonly Style[],
): string {
  begin(variables, now, written);
  try {
    run([undefined]);
    return runtime.out;
  } catch (error) {
    throw withLine(error);
  } finally {
    end();
  }
}

/** How long a template runs before others have their turn. */
const STEP_MS = 3;

function* renderSteps(
  run: Run,
  variables: ReadonlyMap<string, Value>,
  now: Date | undefined,
  written: readonly Style[] | undefined,
): Generator<void, string> {
  const steps = run.steps?.([undefined]);
  if (steps === undefined) return render(run, variables, now, written);
  begin(variables, now, written);
  for (;;) {
    let state: readonly [typeof runtime, typeof budget];
    try {
      for (const until = performance.now() + STEP_MS; performance.now() < until; )
        if (steps.next().done === true) return runtime.out;
      state = [{ ...runtime }, { ...budget }];
    } catch (error) {
      throw withLine(error);
    } finally {
      end();
    }
    yield; // other templates may run now, and there is one runtime and one budget for the thread
    Object.assign(runtime, state[0]);
    Object.assign(budget, state[1]);
  }
}

/** The engine's own stack may end before the limits on depth are reached. */
function shallow(error: unknown): unknown {
  if (error instanceof RangeError && /call stack/i.test(error.message))
    return new ChatTemplateError("the template is nested too deeply", { cause: error });
  if (error instanceof RangeError)
    return new TemplateLimitError("the template makes a value that is too large", { cause: error });
  return error;
}
