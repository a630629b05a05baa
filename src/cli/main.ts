import { version } from "../../package.json" with { type: "json" };
import { ConfigError } from "../config/config-error.ts";
import type { Environment } from "../config/given.ts";
import { nearest } from "../config/nearest.ts";
import type { Command } from "./command.ts";
import { commands as allCommands } from "./commands.ts";
import { commandHelp, overviewHelp } from "./help.ts";

const usageStatus = 2;

function find(commands: readonly Command[], name: string): Command | undefined {
  return commands.find((command) => command.name === name || command.aliases?.includes(name));
}

function complain(text: string): number {
  process.stderr.write(`collie: ${text.replaceAll("\n", "\ncollie: ")}\n`);
  return usageStatus;
}

function unknownCommand(commands: readonly Command[], name: string): number {
  const names = commands
    .filter((command) => !command.hidden)
    .flatMap(({ name, aliases }) => [name, ...(aliases ?? [])]);
  const meant = nearest(name, [...names, "help", "version"]);
  const hint = meant === undefined ? "`collie help` lists the commands" : `did you mean ${meant}?`;
  return complain(`there is no command ${JSON.stringify(name)}; ${hint}`);
}

function help(commands: readonly Command[], name: string | undefined): number {
  const command = name === undefined ? undefined : find(commands, name);
  if (name !== undefined && command === undefined) return unknownCommand(commands, name);
  process.stdout.write(command === undefined ? overviewHelp(commands, version) : commandHelp(command));
  return 0;
}

/**
 * Runs the command that the arguments name. Mistakes of the operator go to stderr and give 2; other errors are thrown.
 * @param argv the arguments without the program, `process.argv.slice(2)`
 * @returns the exit status
 */
export async function runCli(
  argv: readonly string[],
  env: Environment,
  commands: readonly Command[] = allCommands,
): Promise<number> {
  const [first, ...rest] = argv;
  if (first === undefined) {
    process.stderr.write(overviewHelp(commands, version));
    return usageStatus;
  }
  if (first === "help" || first === "--help" || first === "-h") return help(commands, rest[0]);
  if (first === "version" || first === "--version" || first === "-V") {
    process.stdout.write(`collie ${version}\n`);
    return 0;
  }
  // SMG takes the flags of its gateway without a command, too.
  const bare = first.startsWith("--");
  const command = find(commands, bare ? "serve" : first);
  if (command === undefined) return unknownCommand(commands, first);
  const args = bare ? argv : rest;
  if (args.includes("--help") || args.includes("-h")) return help(commands, command.name);
  try {
    return await (await command.load()).run(args, env);
  } catch (error) {
    if (error instanceof ConfigError) return complain(error.message);
    throw error;
  }
}
