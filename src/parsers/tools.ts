import { choicesOf, type Kinds, kindsOf, parameterSchema } from "./schema.ts";

/** A declared tool. `parameters`: its JSON schema. */
export interface ToolSchema {
  readonly name: string;
  readonly parameters?: unknown;
}

/** The declared tools, as the parsers ask for them. */
export class ToolIndex {
  private readonly byName = new Map<string, ToolSchema>();

  constructor(tools: readonly ToolSchema[]) {
    for (const tool of tools) this.byName.set(tool.name, tool);
  }

  has(name: string): boolean {
    return this.byName.has(name);
  }

  get isEmpty(): boolean {
    return this.byName.size === 0;
  }

  names(): IterableIterator<string> {
    return this.byName.keys();
  }

  /** The schema of a tool's arguments; undefined where none is declared. */
  schema(tool: string): unknown {
    return this.byName.get(tool)?.parameters;
  }

  /** The types that a parameter may have; 0 where nothing says so. */
  kinds(tool: string, parameter: string): Kinds {
    const parameters = this.schema(tool);
    return kindsOf(parameterSchema(parameters, parameter), parameters);
  }

  /** The strings that the schema names as values of a parameter; none where any may be. */
  choices(tool: string, parameter: string): readonly string[] {
    const parameters = this.schema(tool);
    return choicesOf(parameterSchema(parameters, parameter), parameters);
  }
}
