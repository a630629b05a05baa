import { variableOf } from "../config/environment.ts";
import type { Option } from "../config/option.ts";
import { optionGroups } from "../config/print.ts";
import { configOption } from "../config/resolve.ts";
import type { Command } from "./command.ts";

const width = 100;
const widestLabel = 38;

/** Breaks a text into lines of at most `room` characters. */
function wrap(text: string, room: number): string[] {
  const lines: string[] = [];
  let line = "";
  for (const word of text.split(" ")) {
    if (line !== "" && line.length + 1 + word.length > room) {
      lines.push(line);
      line = word;
    } else line = line === "" ? word : `${line} ${word}`;
  }
  return [...lines, line];
}

/** Two columns: labels, and wrapped texts beside them (below a label that is too long). */
function columns(rows: readonly (readonly [label: string, text: string])[], labelWidth: number): string[] {
  const lines: string[] = [];
  const indent = " ".repeat(labelWidth + 4);
  for (const [label, text] of rows) {
    const wrapped = wrap(text, width - labelWidth - 4);
    if (label.length > labelWidth) lines.push(...brokenLabel(label, indent));
    else lines.push(`  ${label.padEnd(labelWidth)}  ${wrapped.shift()}`);
    for (const line of wrapped) lines.push(indent + line);
  }
  return lines;
}

/** A label on lines of its own: many values go on below the first ones. */
function brokenLabel(label: string, indent: string): string[] {
  const [first = "", ...values] = label.split("|");
  const lines = [`  ${first}`];
  for (const value of values) {
    const last = lines.at(-1)!;
    if (last.length + value.length + 2 < width) lines[lines.length - 1] = `${last}|${value}`;
    else {
      lines[lines.length - 1] = `${last}|`;
      lines.push(indent + value);
    }
  }
  return lines;
}

/** What a flag takes: `N`, `TEXT`, `a|b`; empty for a boolean. */
export function valueName(option: Option): string {
  if (option.type === "boolean") return option.default ? "[=false]" : "";
  if (option.type === "enum") return option.values.join("|");
  if (option.type === "strings") return "TEXT...";
  if (option.flag === configOption.flag) return "FILE";
  return option.type === "string" ? "TEXT" : "N";
}

/** An option's default as the operator would type it; undefined when there is none worth telling. */
export function defaultText(option: Option): string | undefined {
  if (option.type === "boolean") return option.default ? "true" : undefined;
  if (option.type === "strings") return option.default?.length ? option.default.join(" ") : undefined;
  return option.default === undefined ? undefined : String(option.default);
}

function optionText(option: Option): string {
  const remarks: string[] = [];
  const byDefault = defaultText(option);
  if (byDefault !== undefined) remarks.push(`default: ${byDefault}`);
  if (option.aliases?.length) remarks.push(`also: ${option.aliases.map((alias) => `--${alias}`).join(", ")}`);
  if (option.secret) remarks.push("@FILE reads it from a file");
  return remarks.length === 0 ? option.help : `${option.help} [${remarks.join("; ")}]`;
}

/** `collie help`: the list of commands. */
export function overviewHelp(commands: readonly Command[], version: string): string {
  const shown = commands.filter((command) => !command.hidden);
  const rows: [string, string][] = shown.map(({ name, aliases, summary }) => [
    name,
    aliases ? `${summary} [also: ${aliases.join(", ")}]` : summary,
  ]);
  rows.push(["version", "Print the version."], ["help [COMMAND]", "Print this list, or a command's flags."]);
  const labelWidth = Math.max(...rows.map(([label]) => label.length));
  return [
    `collie ${version}: a model gateway for self-hosted LLM engines`,
    "",
    "Usage: collie COMMAND [flags]",
    "",
    "Commands:",
    ...columns(rows, labelWidth),
    "",
    "Flags without a command are flags of serve.",
    "",
  ].join("\n");
}

/** `collie help COMMAND`: usage, and the command's flags by group. */
export function commandHelp(command: Command): string {
  const lines = [`Usage: collie ${command.name} ${command.usage}`.trimEnd(), "", ...wrap(command.summary, width)];
  if (command.aliases) lines.push(`Also called ${command.aliases.join(", ")}.`);
  if (command.details) lines.push("", ...wrap(command.details, width));
  if (command.options) {
    const options: Option[] = [configOption, ...Object.values(command.options)];
    const label = (option: Option) =>
      option.type === "boolean" ? `--${option.flag}${valueName(option)}` : `--${option.flag} ${valueName(option)}`;
    const labels = options.map((option) => label(option).length).filter((length) => length <= widestLabel);
    for (const [group, members] of optionGroups(options)) {
      const rows = members.map((option) => [label(option), optionText(option)] as const);
      lines.push("", `${group}:`, ...columns(rows, Math.max(...labels)));
    }
    const sources = `Every flag is also an environment variable (${variableOf("log-level")} for --log-level) and a key of the file. Flags win over the environment, the environment over the file.`;
    lines.push("", ...wrap(sources, width));
  }
  return `${lines.join("\n")}\n`;
}
