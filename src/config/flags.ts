import { type Given, type GivenValues, quoted } from "./given.ts";
import { nearest } from "./nearest.ts";
import type { Option } from "./option.ts";

interface Spelling {
  readonly option: Option;
  /** `--no-` in front of a boolean. */
  readonly negated: boolean;
}

function spellings(options: Iterable<Option>): Map<string, Spelling> {
  const all = new Map<string, Spelling>();
  for (const option of options)
    for (const name of [option.flag, ...(option.aliases ?? [])]) {
      all.set(name, { option, negated: false });
      if (option.type === "boolean") all.set(`no-${name}`, { option, negated: true });
    }
  return all;
}

const isFlag = (argument: string | undefined) => argument?.startsWith("--") === true;

/**
 * Reads `--name value`, `--name=value`, `--flag`, `--flag=false`, `--no-flag` and lists (`--name a b c`, repeatable).
 * Whatever can't be read is described in `problems`.
 */
export function readFlags(options: Iterable<Option>, args: readonly string[], problems: string[]): GivenValues {
  const known = spellings(options);
  const given: GivenValues = new Map();
  const add = (option: Option, name: string, value: string | boolean | readonly string[]) => {
    const before: Given | undefined = given.get(option.flag);
    if (before === undefined) given.set(option.flag, { source: { kind: "flag", name }, value });
    else if (Array.isArray(value) && Array.isArray(before.value))
      given.set(option.flag, { source: before.source, value: [...before.value, ...value] });
    else
      problems.push(`${name}: is given twice${before.source.name === name ? "" : ` (also as ${before.source.name})`}`);
  };

  /** The option that the argument before belongs to. */
  let last: Option | undefined;
  for (let i = 0; i < args.length; ) {
    const argument = args[i++] ?? "";
    if (!isFlag(argument)) {
      if (last?.secret) problems.push(`--${last.flag}: takes one value, and something follows it`);
      else {
        const hint = last?.type === "boolean" ? `; write ${args[i - 2]}=${argument}` : "";
        problems.push(`${quoted(argument)} is not expected here${hint}`);
      }
      last = undefined;
      continue;
    }
    const equals = argument.indexOf("=");
    const name = equals < 0 ? argument : argument.slice(0, equals);
    const inline = equals < 0 ? undefined : argument.slice(equals + 1);
    const spelling = known.get(name.slice(2));
    if (spelling === undefined) {
      const meant = nearest(name.slice(2), known.keys());
      problems.push(`${name}: there is no such flag${meant === undefined ? "" : `; did you mean --${meant}?`}`);
      last = undefined;
      // What follows belongs to the unknown flag, and may be a secret: it must not be shown.
      while (i < args.length && !isFlag(args[i])) i++;
      continue;
    }
    const { option, negated } = spelling;
    last = inline === undefined || option.secret ? option : undefined;
    if (option.type === "boolean") {
      if (negated && inline !== undefined) problems.push(`${name}: takes no value`);
      else add(option, name, negated ? false : (inline ?? true));
    } else if (option.type === "strings") {
      const values = inline === undefined ? [] : [inline];
      if (inline === undefined) while (i < args.length && !isFlag(args[i])) values.push(args[i++] ?? "");
      if (values.length === 0) problems.push(`${name}: needs a value`);
      else add(option, name, values);
    } else if (inline !== undefined) {
      add(option, name, inline);
    } else if (i >= args.length || isFlag(args[i])) {
      problems.push(
        `${name}: needs a value${i < args.length ? ` (a value that starts with dashes is written ${name}=VALUE)` : ""}`,
      );
    } else {
      add(option, name, args[i++] ?? "");
    }
  }
  return given;
}
