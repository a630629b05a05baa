// Writes the tables of docs/configuration.md from the option tables:   node scripts/bun.mjs run scripts/config-docs.ts
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { commands } from "../src/cli/commands.ts";
import { defaultText, valueName } from "../src/cli/help.ts";
import type { OptionTable } from "../src/config/option.ts";
import { optionGroups } from "../src/config/print.ts";

/** The page that holds the tables. */
export const configurationPage = join(import.meta.dir, "..", "docs", "configuration.md");

const cell = (text: string) => text.replaceAll("|", "\\|");
const code = (text: string) => `\`${cell(text)}\``;

function markdownTable(table: OptionTable): string {
  const lines: string[] = [];
  for (const [group, options] of optionGroups(Object.values(table))) {
    lines.push(`### ${group}`, "", "| Flag | Value | Default | Meaning |", "|---|---|---|---|");
    for (const option of options) {
      const aliases = option.aliases?.map((alias) => `, ${code(`--${alias}`)}`).join("") ?? "";
      const value = option.type === "boolean" ? "" : code(valueName(option));
      const byDefault = option.type === "boolean" ? String(option.default ?? false) : defaultText(option);
      const help = option.secret ? `${option.help} Secret.` : option.help;
      lines.push(
        `| ${code(`--${option.flag}`)}${aliases} | ${value} | ${byDefault === undefined ? "" : code(byDefault)} | ${cell(help)} |`,
      );
    }
    lines.push("");
  }
  return lines.join("\n");
}

/**
 * The page with its tables made new. They stand between `<!-- settings of serve -->` and `<!-- end -->`.
 * @throws Error for a mark that names no command with settings
 */
export function withTables(page: string): string {
  return page.replace(
    /(<!-- settings of (\S+) -->\n)[\s\S]*?(<!-- end -->)/g,
    (_, begin: string, name: string, end: string) => {
      const options = commands.find((command) => command.name === name)?.options;
      if (options === undefined) throw new Error(`there is no command ${name} with settings`);
      return `${begin}\n${markdownTable(options)}\n${end}`;
    },
  );
}

if (import.meta.main) writeFileSync(configurationPage, withTables(readFileSync(configurationPage, "utf8")));
