import { describe, expect, test } from "bun:test";
import type { Command } from "../../../src/cli/command.ts";
import { commands } from "../../../src/cli/commands.ts";
import { commandHelp, overviewHelp } from "../../../src/cli/help.ts";

const load = () => Promise.reject(new Error("help must not load a command"));
const example: Command = {
  name: "serve",
  aliases: ["launch"],
  summary: "Serve.",
  usage: "[flags]",
  load,
  options: {
    port: { flag: "port", type: "integer", default: 1, group: "Listener", help: "Port." },
    key: { flag: "key", type: "string", secret: true, group: "Security", help: "Key." },
    logLevel: { flag: "log-level", type: "enum", values: ["a", "b"], default: "a", group: "Listener", help: "Level." },
    off: { flag: "off", type: "boolean", group: "Security", help: "Off." },
    on: { flag: "on", type: "boolean", default: true, group: "Security", help: "On." },
    urls: { flag: "urls", aliases: ["u"], type: "strings", default: ["x", "y"], group: "Security", help: "Urls." },
    long: { flag: "a-flag-that-is-much-too-long-for-its-column", type: "string", group: "Security", help: "Long." },
  },
};

test("help of a command", () => {
  expect(commandHelp(example)).toBe(`Usage: collie serve [flags]

Serve.
Also called launch.

Settings:
  --config FILE    YAML file with settings; its keys are the names of the flags.

Listener:
  --port N         Port. [default: 1]
  --log-level a|b  Level. [default: a]

Security:
  --key TEXT       Key. [@FILE reads it from a file]
  --off            Off.
  --on[=false]     On. [default: true]
  --urls TEXT...   Urls. [default: x y; also: --u]
  --a-flag-that-is-much-too-long-for-its-column TEXT
                   Long.

Every flag is also an environment variable (COLLIE_LOG_LEVEL for --log-level) and a key of the file.
Flags win over the environment, the environment over the file.
`);
});

test("hidden commands are not listed", () => {
  const text = overviewHelp([example, { name: "inner", summary: "Inner.", usage: "", hidden: true, load }], "1.2.3");
  expect(text).toContain("collie 1.2.3:");
  expect(text).toContain("  serve           Serve. [also: launch]\n");
  expect(text).not.toContain("inner");
});

describe("the real texts", () => {
  const texts: [string, string][] = commands.map((command) => [command.name, commandHelp(command)]);
  texts.push(["overview", overviewHelp(commands, "0.0.0")]);

  test.each(texts)("%s fits 100 columns and has no trailing blanks", (_, text) => {
    for (const line of text.split("\n")) {
      expect(line.length).toBeLessThanOrEqual(100);
      expect(line).toBe(line.trimEnd());
    }
  });

  test("every flag is told once", () => {
    for (const command of commands)
      for (const { flag } of Object.values(command.options ?? {}))
        expect(
          commandHelp(command)
            .split("\n")
            .filter((line) => new RegExp(`^ {2}--${flag}( |\\[|$)`).test(line)),
        ).toHaveLength(1);
  });
});
