import { readFileSync } from "node:fs";
import { fileProblem } from "./file-problem.ts";
import { type GivenValues, quoted } from "./given.ts";
import { nearest } from "./nearest.ts";
import type { Option } from "./option.ts";

/** Lines of the top-level keys, from 1. Values never start in the first column, so a plain scan finds them. */
function linesOfKeys(text: string): Map<string, number[]> {
  const lines = new Map<string, number[]>();
  for (const [index, line] of text.split("\n").entries()) {
    const key = /^(?:([^\s#"'[{:-][^\s:]*)|"([^"\\]*)"|'([^']*)')\s*:(?:\s|$)/.exec(line);
    const name = key?.[1] ?? key?.[2] ?? key?.[3];
    if (name !== undefined) lines.set(name, [...(lines.get(name) ?? []), index + 1]);
  }
  return lines;
}

/**
 * Reads a YAML file whose top-level keys are flag names, e.g. `worker-urls: [grpc://10.0.0.5:50051]`.
 * Whatever can't be read is described in `problems` as `FILE:LINE: key: ...`.
 */
export function readConfigFile(options: Iterable<Option>, path: string, problems: string[]): GivenValues {
  const given: GivenValues = new Map();
  let text: string;
  try {
    text = readFileSync(path, "utf8");
  } catch (error) {
    problems.push(`${path}: ${fileProblem(error)}`);
    return given;
  }
  let document: unknown;
  try {
    document = Bun.YAML.parse(text);
  } catch (error) {
    // The line that Bun puts on the error is one of this source file, not of the YAML.
    problems.push(
      `${path}: is not YAML: ${error instanceof Error ? error.message.replace(/^YAML Parse error: /, "") : error}`,
    );
    return given;
  }
  if (document === null || document === undefined) return given;
  if (typeof document !== "object" || Array.isArray(document)) {
    problems.push(`${path}: must hold one setting a line, such as "port: 30000"`);
    return given;
  }

  const lines = linesOfKeys(text);
  const known = new Map<string, Option>();
  for (const option of options) for (const key of [option.flag, ...(option.fileKeys ?? [])]) known.set(key, option);
  for (const [key, value] of Object.entries(document)) {
    const at = lines.get(key);
    const line = at?.at(-1);
    const name = `${path}${line === undefined ? "" : `:${line}`}: ${/^[\w-]+$/.test(key) ? key : quoted(key)}`;
    const option = known.get(key);
    if (option === undefined) {
      const alias = [...known.values()].find((candidate) => candidate.aliases?.includes(key));
      const meant = alias?.flag ?? nearest(key, known.keys());
      problems.push(`${name}: there is no such setting${meant === undefined ? "" : `; did you mean ${meant}?`}`);
    } else if (at !== undefined && at.length > 1) {
      problems.push(`${name}: is given twice (also on line ${at[0]})`);
    } else if (given.has(option.flag)) {
      problems.push(`${name}: is given twice, also as ${given.get(option.flag)?.source.name.split(" ").at(-1)}`);
    } else if (value === null || value === undefined) {
      problems.push(`${name}: has no value; delete the line to use the default`);
    } else {
      given.set(option.flag, { source: { kind: "file", name }, value });
    }
  }
  return given;
}
