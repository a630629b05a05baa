import type { OptionTable } from "../config/option.ts";
import { demoOptions, serveOptions } from "../config/serve-options.ts";
import { simulatorOptions } from "../simulator/options.ts";
import type { Command } from "./command.ts";
import { explainOptions } from "./explain-options.ts";
import { parseOptions } from "./parse-options.ts";
import { renderOptions } from "./render-options.ts";
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
    name: "explain",
    summary: "Ask a gateway which worker a prompt would go to, and draw why.",
    usage: "[--model MODEL] [--prompt TEXT | --file FILE | --chat FILE] [flags]",
    details:
      "Nothing is sent to a worker, and the next choice stays as it would have been. Draws who has which blocks of the prompt in its cache, what each worker has to do, its score (the least is best) and the choice with its reason. Exit status: 0 when there is an answer, 1 when the gateway cannot be asked, refuses or cannot be understood, 2 for wrong flags.",
    options: explainOptions,
    load: () => import("./explain.ts"),
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
    name: "render",
    summary:
      "Turn lines of conversations into prompts, as transformers makes them or, with --messages chat, Chat Completions.",
    usage: "--model-path MODEL [flags] < LINES",
    details:
      'Reads a JSON object a line from standard input: what a prompt comes from ({"messages": [...], "tools": [...], "chat_template_kwargs": {...}, ...}), and "clock", the local time that the template sees ("2026-01-31T12:00:00"). Prints a line for each: {"text": "...", "ids": [...], "ends_in_reasoning": false}, or {"error": {"code": "...", "message": "..."}}.',
    options: renderOptions,
    load: () => import("./render.ts"),
  },
  {
    name: "parse",
    summary: "Take what a model wrote apart: content, reasoning and tool calls, line by line.",
    usage: "[--model-path MODEL] [--tool-call-parser NAME] [--reasoning-parser NAME] < LINES",
    details:
      'Reads a JSON object a line from standard input: {"chunks": ["...", "..."]} or, with a model, {"ids": [[...], [...]]}; and "tools", "tool_choice", "starts_in_reasoning", "finish_reason" where they matter. Calls are looked for unless tool_choice is none. Prints a line for each: {"content": "...", "reasoning": "...", "tool_calls": [{"index": 0, "id": "...", "name": "...", "arguments": "..."}], "finish_reason": "...", "events": [...]}, or {"error": {"code": "...", "message": "..."}}. An event says with which chunk it came; those behind the last one came at the end.',
    options: parseOptions,
    load: () => import("./parse.ts"),
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
