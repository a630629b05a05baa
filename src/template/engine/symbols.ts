/**
 * Which variable a name means, found before a template runs, by Jinja's rules: a name that is only read comes from around or from the
 * context, looked up once when its scope is entered; one that is set belongs to the scope that sets it and begins with the outer value.
 */

import { type Body, childrenOf, type Expression, type Statement } from "./ast.ts";
import { charge } from "./limits.ts";

/** How a variable gets its value when its scope is entered. */
export type Load =
  | { readonly kind: "parameter" | "undefined" }
  /** From the context, under this name. */
  | { readonly kind: "resolve"; readonly name: string }
  /** From this variable of an outer scope. */
  | { readonly kind: "alias"; readonly variable: Variable };

/** Scopes of equal depth share variables of equal names: they never live at the same time. */
export interface Variable {
  readonly level: number;
  readonly name: string;
}
const keyOf = ({ level, name }: Variable): string => `${level} ${name}`;

export class Symbols {
  readonly level: number;
  private refs = new Map<string, Variable>();
  private loadsByKey = new Map<string, readonly [Variable, Load]>();
  private stores = new Set<string>();

  constructor(
    private readonly parent: Symbols | undefined,
    level?: number,
  ) {
    this.level = level ?? (parent === undefined ? 0 : parent.level + 1);
  }

  get loads(): Iterable<readonly [Variable, Load]> {
    return this.loadsByKey.values();
  }

  find(name: string): Variable | undefined {
    return this.refs.get(name) ?? this.parent?.find(name);
  }

  /** Variables that are set here or around, by name. */
  visible(): Map<string, Variable> {
    const found = this.parent?.visible() ?? new Map<string, Variable>();
    for (const name of this.stores) found.set(name, this.find(name) as Variable);
    return found;
  }

  private define(name: string, load: Load): void {
    const variable = { level: this.level, name };
    this.refs.set(name, variable);
    this.loadsByKey.set(keyOf(variable), [variable, load]);
  }

  store(name: string): void {
    this.stores.add(name);
    if (this.refs.has(name)) return;
    const outer = this.parent?.find(name);
    this.define(name, outer === undefined ? { kind: "undefined" } : { kind: "alias", variable: outer });
  }

  parameter(name: string): void {
    this.stores.add(name);
    this.define(name, { kind: "parameter" });
  }

  load(name: string): void {
    if (this.find(name) === undefined) this.define(name, { kind: "resolve", name });
  }

  private copy(): Symbols {
    charge(this.refs.size * 8);
    const copy = new Symbols(this.parent, this.level);
    copy.refs = new Map(this.refs);
    copy.loadsByKey = new Map(this.loadsByKey);
    copy.stores = new Set(this.stores);
    return copy;
  }

  /** Takes over what the branches of an `if` did. What only some of them set may keep its value from before. */
  private merge(branches: readonly Symbols[]): void {
    const stored = new Set(branches.flatMap((branch) => [...branch.stores]).filter((name) => !this.stores.has(name)));
    for (const branch of branches) {
      for (const [name, variable] of branch.refs) this.refs.set(name, variable);
      for (const [key, load] of branch.loadsByKey) this.loadsByKey.set(key, load);
      for (const name of branch.stores) this.stores.add(name);
    }
    for (const name of stored) {
      const variable = this.find(name) as Variable;
      const outer = this.parent?.find(name);
      const load: Load = outer === undefined ? { kind: "resolve", name } : { kind: "alias", variable: outer };
      this.loadsByKey.set(keyOf(variable), [variable, load]);
    }
  }

  visitAll(nodes: Iterable<Statement | Expression>): void {
    for (const node of nodes) this.visit(node);
  }

  /** Notes the names of a statement, as far as they are of this scope. */
  visit(node: Statement | Expression): void {
    switch (node.type) {
      case "name":
        if (node.context === "load") this.load(node.name);
        else if (node.context === "store") this.store(node.name);
        else this.parameter(node.name);
        break;
      case "namespace":
        this.load(node.name);
        break;
      case "if":
        this.visit(node.test);
        this.merge([node.body, node.elifs, node.otherwise].map((nodes) => this.branch(nodes)));
        break;
      case "macro":
        this.store(node.name);
        break;
      case "for":
        this.visit(node.over);
        break;
      case "callBlock":
        this.visit(node.call);
        break;
      case "filterBlock":
        this.visit(node.filter);
        break;
      case "with":
        this.visitAll(node.values);
        break;
      case "assign":
        this.visit(node.value);
        this.visit(node.target);
        break;
      case "assignBlock":
        this.visit(node.target);
        if (node.filter !== undefined) this.visit(node.filter);
        break;
      case "loader":
        for (const name of node.stores) this.store(name);
        break;
      case "scope":
      case "generation":
      case "block":
        break;
      default:
        this.visitAll(childrenOf(node));
    }
  }

  private branch(nodes: Body): Symbols {
    const copy = this.copy();
    copy.visitAll(nodes);
    return copy;
  }

  /** Names of a target whose values a loop gives. */
  parameters(target: Expression): void {
    if (target.type === "name") this.parameter(target.name);
    else if (target.type === "tuple") for (const item of target.items) this.parameters(item);
  }
}

/** Which of the names are read before they are set, blocks aside. */
export function undeclared(nodes: Iterable<Statement | Expression>, names: readonly string[]): Set<string> {
  const wanted = new Set(names);
  const found = new Set<string>();
  const visit = (node: Statement | Expression): void => {
    if (node.type === "block") return;
    if (node.type === "name") {
      if (node.context === "load" && wanted.has(node.name)) found.add(node.name);
      else wanted.delete(node.name);
    } else for (const child of childrenOf(node)) visit(child);
  };
  for (const node of nodes) {
    if (found.size === wanted.size && found.size > 0) break;
    visit(node);
  }
  return found;
}
