import type { OptionTable } from "../config/option.ts";
import { demoOptions, serveOptions } from "../config/serve-options.ts";
import { simulatorOptions } from "../simulator/options.ts";
import type { Command } from "./command.ts";
import { tokenizeOptions } from "./tokenize-options.ts";

const printOption = {
  print: { flag: "print", type: "boolean", group: "Output", help: "Print every setting with its source." },
} as const satisfies OptionTable;

/** Every command, in the order of `collie --help`. */
export const commands: readonly Command[] = [
  {
    name: "serve",
    aliases: ["launch", "start"],
    summary: "Serve client APIs from the engines given by --worker-urls.",
    usage: "[flags]",
    options: serveOptions,
    load: () => import("./serve.ts"),
  },
  {
    name: "demo",
    summary: "Start a simulated engine and the gateway before it, to look around.",
    usage: "[flags of serve]",
    options: demoOptions,
    load: () => import("./demo.ts"),
  },
  {
    name: "engine",
    summary: "Start a simulated engine.",
    usage: "[flags]",
    options: simulatorOptions,
    load: () => import("./engine.ts"),
  },
  {
    name: "tokenize",
    summary: "Show the tokens of a text, or turn lines of text into token ids and back.",
    usage: "--model-path MODEL [flags] [TEXT...]",
    details:
      "The text is the arguments with a blank between them, else standard input. A terminal gets coloured pieces, anything else JSON. `--` ends the flags.",
    options: tokenizeOptions,
    load: () => import("./tokenize.ts"),
  },
  {
    name: "config",
    summary: "Check the settings of `serve`, or print them with their sources.",
    usage: "[--print] [flags of serve]",
    options: { ...printOption, ...serveOptions },
    load: () => import("./config.ts"),
  },
  {
    name: "systemd",
    summary: "Print a systemd unit for `serve`.",
    usage: "[flags of serve]",
    details:
      "The flags become part of the unit. Keep secrets out of them: name a file (--api-key=@/path) or use the environment file.",
    options: serveOptions,
    load: () => import("./systemd.ts"),
  },
];
