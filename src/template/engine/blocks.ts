/** Blocks: named parts of a template that see the context only. Templates can't be extended, so each is printed where it stands. */

import { ChatTemplateError } from "../errors.ts";
import type { Block } from "./ast.ts";
import { builtin, PyFunction } from "./calls.ts";
import { type Frame, peeker } from "./frames.ts";
import { type Context, captureCall, type Run, runtime, write } from "./runtime.ts";
import { PyObject, type Value } from "./values.ts";

/** Name to what prints the block; filled while the template is compiled. */
export type Blocks = Map<string, Run>;

function runBlock(blocks: Blocks, name: string, context: Context): string {
  const outer = runtime.context;
  runtime.context = context;
  const text = captureCall(blocks.get(name) as Run, [undefined]);
  runtime.context = outer;
  return text;
}

/** Prints a block at its place. */
export function callBlock({ name, scoped, required }: Block, frame: Frame, blocks: Blocks): Run {
  if (required)
    return () => {
      throw new ChatTemplateError(`Required block '${name}' not found`);
    };
  const visible = scoped ? [...frame.symbols.visible().keys()].map((key) => [key, peeker(frame, key)] as const) : [];
  return (cells) => {
    const { vars, given } = runtime.context;
    let { context } = runtime;
    if (scoped) {
      const all = new Map([...given, ...vars]);
      for (const [key, peek] of visible) {
        const value = peek(cells);
        if (value !== undefined) all.set(key, value);
      }
      context = { vars: new Map(), given: all };
    }
    write(runBlock(blocks, name, context));
    return 0;
  };
}

/** The variable `self`: gives blocks by name. */
export class SelfReference extends PyObject {
  readonly typeName = "TemplateReference";
  constructor(private readonly blocks: Blocks) {
    super();
  }
  override attribute(name: string): Value | undefined {
    if (!this.blocks.has(name)) return undefined;
    const { context } = runtime;
    return new PyFunction(builtin(`${name}()`, () => runBlock(this.blocks, name, context)));
  }
}
