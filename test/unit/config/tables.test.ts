import { describe, expect, test } from "bun:test";
import { commands } from "../../../src/cli/commands.ts";
import { variableOf } from "../../../src/config/environment.ts";
import type { Option } from "../../../src/config/option.ts";
import { configOption } from "../../../src/config/resolve.ts";
import { checkValue } from "../../../src/config/value.ts";

const camel = (flag: string) => flag.replace(/-(\w)/g, (_, letter: string) => letter.toUpperCase());

for (const command of commands.filter(({ options }) => options !== undefined))
  describe(`table of ${command.name}`, () => {
    const entries = Object.entries(command.options ?? {}) as [string, Option][];

    test("every property is its flag in camel case", () => {
      for (const [property, option] of entries) expect(property).toBe(camel(option.flag));
    });

    test("no two settings share a spelling, with --no-, --config and --help", () => {
      const names = entries.flatMap(([, option]) => {
        const own = [option.flag, ...(option.aliases ?? [])];
        return option.type === "boolean" ? [...own, ...own.map((name) => `no-${name}`)] : own;
      });
      names.push(configOption.flag, "help");
      expect(names.filter((name, index) => names.indexOf(name) !== index)).toEqual([]);
      for (const name of names) expect(name).toMatch(/^[a-z][a-z0-9]*(-[a-z0-9]+)*$/);
    });

    test("defaults pass their own checks, and help is a sentence", () => {
      for (const [, option] of entries) {
        if (option.default !== undefined) expect(checkValue(option, option.default)).toEqual({ value: option.default });
        expect(option.help).toMatch(/^[A-Z].*\.$/);
      }
    });

    test("headings are in one piece", () => {
      const headings = entries
        .map(([, option]) => option.group)
        .filter((group, index, all) => group !== all[index - 1]);
      expect(headings).toEqual([...new Set(headings)]);
    });
  });

test("the name of a variable", () => expect(variableOf("worker-urls")).toBe("COLLIE_WORKER_URLS"));
