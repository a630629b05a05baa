import type { Environment } from "../config/given.ts";
import type { OptionTable } from "../config/option.ts";

/** What a command's file exports: runs until the command is done and gives the exit status. */
export interface CommandModule {
  run(args: readonly string[], env: Environment): Promise<number>;
}

/** One command of the program. */
export interface Command {
  readonly name: string;
  readonly aliases?: readonly string[];
  /** One line for the list of commands. */
  readonly summary: string;
  /** What follows the name in the usage line. */
  readonly usage: string;
  /** Its settings, for `--help`. */
  readonly options?: OptionTable;
  /** Said below the usage line in `--help`. */
  readonly details?: string;
  /** Not shown: a role that the program starts itself in. */
  readonly hidden?: boolean;
  /** Its code is loaded only when it runs, so that the others start fast. */
  readonly load: () => Promise<CommandModule>;
}
