import { readFileSync } from "node:fs";
import { fileProblem } from "./file-problem.ts";
import { quoted } from "./given.ts";
import type { Option } from "./option.ts";

/** A checked value, or what is wrong with the given one. */
export type Checked = { readonly value: string | number | boolean | readonly string[] } | { readonly problem: string };

const words = new Map([
  ...["true", "yes", "on", "1"].map((word) => [word, true] as const),
  ...["false", "no", "off", "0"].map((word) => [word, false] as const),
]);

function shown(value: unknown): string {
  if (typeof value === "string") return quoted(value);
  return typeof value === "object" ? "a list or a group" : String(value);
}

function checkNumber(option: Option & { type: "integer" | "number" }, given: unknown): Checked {
  const integer = option.type === "integer";
  const form = integer ? /^[+-]?\d+$/ : /^[+-]?(\d+(\.\d*)?|\.\d+)(e[+-]?\d+)?$/i;
  const value = typeof given === "string" && form.test(given) ? Number(given) : given;
  if (typeof value !== "number" || !(integer ? Number.isInteger(value) : Number.isFinite(value)))
    return { problem: `${shown(given)} is not ${integer ? "an integer" : "a number"}` };
  if (option.min !== undefined && value < option.min) return { problem: `${value} is below ${option.min}` };
  const max = option.max ?? (integer ? Number.MAX_SAFE_INTEGER : undefined);
  if (max !== undefined && value > max) return { problem: `${value} is above ${max}` };
  return { value };
}

/** `@path` -> the file's text without the line end at its end; `@@x` -> `@x`. */
function readSecret(text: string): Checked {
  if (!text.startsWith("@")) return { value: text };
  if (text.startsWith("@@")) return { value: text.slice(1) };
  const path = text.slice(1);
  try {
    const value = readFileSync(path, "utf8").replace(/\r?\n$/, "");
    return value.trim() === "" ? { problem: `the file ${quoted(path)} is empty` } : { value };
  } catch (error) {
    return { problem: `the file ${quoted(path)}: ${fileProblem(error)}` };
  }
}

function checkString(option: Option & { type: "string" | "strings" }, given: unknown): Checked {
  if (typeof given !== "string")
    return {
      problem: `${option.secret ? "the value" : shown(given)} is not text${typeof given === "object" ? "" : "; put it in quotes"}`,
    };
  if (given.trim() === "") return { problem: "is empty" };
  if (given.includes("\0")) return { problem: "has a zero byte" };
  const read = option.secret ? readSecret(given) : { value: given };
  if ("problem" in read) return read;
  const wrong = option.check?.(String(read.value));
  if (wrong !== undefined) return { problem: `${option.secret ? "the value" : quoted(given)} ${wrong}` };
  return read;
}

function checkList(option: Option & { type: "strings" }, given: unknown): Checked {
  const items = Array.isArray(given) ? given : [given];
  const value: string[] = [];
  const problems: string[] = [];
  for (const item of items) {
    const isGroup = typeof item === "object" && item !== null && !Array.isArray(item);
    const checked = checkString(option, isGroup ? (option.ofGroup?.(item) ?? item) : item);
    if ("problem" in checked) problems.push(checked.problem);
    else value.push(String(checked.value));
  }
  return problems.length > 0 ? { problem: problems.join("; ") } : { value: Object.freeze(value) };
}

/** Checks a value that was given as text (flag, environment) or as YAML against its option. */
export function checkValue(option: Option, given: unknown): Checked {
  switch (option.type) {
    case "boolean": {
      const value = typeof given === "string" ? words.get(given.toLowerCase()) : given;
      return typeof value === "boolean" ? { value } : { problem: `${shown(given)} is neither true nor false` };
    }
    case "integer":
    case "number":
      return checkNumber(option, given);
    case "enum":
      if (typeof given === "string" && option.values.includes(given)) return { value: given };
      return { problem: `${shown(given)} is not one of ${option.values.join(", ")}` };
    case "string":
      return checkString(option, given);
    case "strings":
      return checkList(option, given);
  }
}
