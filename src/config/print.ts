import { variableOf } from "./environment.ts";
import type { Source } from "./given.ts";
import type { Option, OptionTable } from "./option.ts";
import type { Resolved } from "./resolve.ts";

/** Options by heading, in the order of the table. */
export function optionGroups(options: Iterable<Option>): Map<string, Option[]> {
  const groups = new Map<string, Option[]>();
  for (const option of options) groups.set(option.group, [...(groups.get(option.group) ?? []), option]);
  return groups;
}

const scalar = (value: unknown): string => (Bun.YAML.stringify(value) ?? "null").trimEnd();

/** A value as one line of YAML. */
export function yamlValue(value: unknown): string {
  if (!Array.isArray(value)) return scalar(value);
  return value.length === 0 ? "[]" : `[${value.map((item) => JSON.stringify(item)).join(", ")}]`;
}

function sourceText(source: Source): string {
  if (source.kind === "default") return "default";
  // A file's source is `collie.yaml:3: port`: the key is on this line already.
  return source.kind === "file" ? source.name.replace(/: [^:]*$/, "") : source.name;
}

/**
 * Effective settings as YAML that can be used as a settings file; a comment behind each tells where it comes from.
 * Secrets and settings without a value are commented out.
 */
export function printOptions<T extends OptionTable>(table: T, resolved: Resolved<T>): string {
  const byFlag = new Map<string, string>(Object.entries(table).map(([property, option]) => [option.flag, property]));
  const lines: string[] = [];
  for (const [group, options] of optionGroups(Object.values(table))) {
    lines.push(...(lines.length > 0 ? [""] : []), `# ${group}`);
    for (const option of options) {
      const property = byFlag.get(option.flag) as keyof T & string;
      const value: unknown = resolved.values[property];
      if (value === undefined) lines.push(`# ${option.flag}:  # not set (${variableOf(option.flag)})`);
      else if (option.secret) lines.push(`# ${option.flag}: (hidden)  # ${sourceText(resolved.sources[property])}`);
      else lines.push(`${option.flag}: ${yamlValue(value)}  # ${sourceText(resolved.sources[property])}`);
    }
  }
  return `${lines.join("\n")}\n`;
}
