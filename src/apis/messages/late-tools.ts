/**
 * Tools that a conversation brings in as it goes on: those that were declared with `defer_loading` and then found by a search of the client's
 * (`tool_reference` in a result), and those of `tool_addition`. The model is told of them where they come in, so that the prompt up to
 * there stays as it was.
 */
import type { ToolDefinition } from "../../generation/conversation.ts";

/** A tool of the request. */
export interface DeclaredTool {
  readonly definition: ToolDefinition;
  /** The list of tools that the prompt begins with leaves it out. */
  readonly isDeferred: boolean;
  /** What tells the model of it: the text of one JSON object. */
  text(): string;
}

export class LateTools {
  private readonly byName: Map<string, DeclaredTool>;
  private readonly told = new Set<string>();

  constructor(declared: readonly DeclaredTool[]) {
    this.byName = new Map(declared.map((tool) => [tool.definition.name, tool]));
  }

  /** A tool that a message defines. Of one name the last counts. */
  define(tool: DeclaredTool): void {
    this.byName.set(tool.definition.name, { ...tool, isDeferred: true });
  }

  /** From now on the model knows these tools: the text that says so, as clients announce it (`<functions>`). */
  tell(names: readonly string[]): string {
    const deferred = names.flatMap((name) => {
      const tool = this.byName.get(name);
      return tool?.isDeferred === true ? [tool] : [];
    });
    for (const { definition } of deferred) this.told.add(definition.name);
    const functions = deferred.map((tool) => `<function>${tool.text()}</function>`);
    const others = names.filter((name) => this.byName.get(name)?.isDeferred !== true);
    return [
      ...(functions.length === 0 ? [] : ["<functions>", ...functions, "</functions>"]),
      ...others.map((name) => `Tool found: ${name}`),
    ].join("\n");
  }

  /** All that may be called. Where none is listed, those that were told of are, as templates explain calls beside their list. */
  get tools(): readonly ToolDefinition[] {
    const all = [...this.byName.values()];
    const listed = all.filter(({ isDeferred }) => !isDeferred).map(({ definition }) => definition);
    const late = all.filter(({ definition, isDeferred }) => isDeferred && this.told.has(definition.name));
    return [
      ...listed,
      ...late.map(({ definition }) =>
        listed.length === 0 ? definition : { ...definition, toldInside: true as const },
      ),
    ];
  }
}
