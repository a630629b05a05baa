import { ConfigError } from "./config-error.ts";
import { readConfigFile } from "./config-file.ts";
import { readEnvironment, variableOf } from "./environment.ts";
import { readFlags } from "./flags.ts";
import type { Environment, Given, GivenValues, Source } from "./given.ts";
import type { Option, OptionTable, ValuesOf } from "./option.ts";
import { checkValue } from "./value.ts";

export { ConfigError } from "./config-error.ts";
export type { Environment, Source } from "./given.ts";

/** The flag that every command with settings has besides those of its table. Not a key of the file. */
export const configOption = {
  flag: "config",
  type: "string",
  group: "Settings",
  help: "YAML file with settings; its keys are the names of the flags.",
} as const satisfies Option;

/** Effective settings of one start. */
export interface Resolved<T extends OptionTable> {
  /** Frozen, lists too. */
  readonly values: ValuesOf<T>;
  readonly sources: { readonly [K in keyof T]: Source };
  /** The settings file that was read, as it was named. */
  readonly file: string | undefined;
  /** Things that look like mistakes but change nothing, one line each. */
  readonly warnings: readonly string[];
}

const byDefault: Source = Object.freeze({ kind: "default", name: "" });

function defaultOf(option: Option): unknown {
  if (option.type === "boolean") return option.default ?? false;
  if (option.type === "strings") return Object.freeze([...(option.default ?? [])]);
  return option.default;
}

function fileNamed(flags: GivenValues, env: Environment, otherwise: string | undefined): string | undefined {
  const flag = flags.get(configOption.flag)?.value;
  if (typeof flag === "string") return flag;
  return env[variableOf(configOption.flag)] || otherwise;
}

/**
 * Finds the value of every setting: flag, else environment (`COLLIE_...`), else file, else default.
 * @param input.args the command's arguments, without the command
 * @param input.file settings file to read when neither `--config` nor `COLLIE_CONFIG` names one
 * @throws ConfigError with every problem of every source, also of values that another source overrides
 */
export function resolveOptions<const T extends OptionTable>(
  table: T,
  input: { readonly args: readonly string[]; readonly env: Environment; readonly file?: string },
): Resolved<T> {
  const problems: string[] = [];
  const warnings: string[] = [];
  const options = Object.values(table);
  const flags = readFlags([...options, configOption], input.args, problems);
  const variables = readEnvironment([...options, configOption], input.env, problems, warnings);
  const file = fileNamed(flags, input.env, input.file);
  if (file === "") problems.push("--config: is empty");
  const settings: GivenValues = file ? readConfigFile(options, file, problems) : new Map();

  const values: Record<string, unknown> = {};
  const sources: Record<string, Source> = {};
  for (const [property, option] of Object.entries(table)) {
    values[property] = defaultOf(option);
    sources[property] = byDefault;
    const given = [settings, variables, flags].map((source) => source.get(option.flag));
    for (const { source, value } of given.filter((one): one is Given => one !== undefined)) {
      const checked = checkValue(option, value);
      if ("problem" in checked) problems.push(`${source.name}: ${checked.problem}`);
      else values[property] = checked.value;
      sources[property] = Object.freeze(source);
    }
  }
  if (problems.length > 0) throw new ConfigError(problems);
  // The loop has built exactly what the table describes; the type can't follow it there.
  return {
    values: Object.freeze(values) as ValuesOf<T>,
    sources: Object.freeze(sources) as Resolved<T>["sources"],
    file,
    warnings,
  };
}
