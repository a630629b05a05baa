/** Switches of reasoning that requests send as variables. */
import { isInt, textOf, truthy, type Value } from "../engine/values.ts";

type Variables = ReadonlyMap<string, Value>;

/** Efforts that mean: no reasoning. */
const OFF: readonly unknown[] = ["none", "minimal"];

/** A level as text, or a number; undefined when not given. */
export function effortOf(variables: Variables, ...names: readonly string[]): string | number | undefined {
  for (const name of names) {
    const value = variables.get(name) ?? null;
    if (value === null) continue;
    return textOf(value) ?? (isInt(value) ? Number(value) : String(value));
  }
  return undefined;
}

/** Whether the model shall reason: its own keys first, then an effort that means none, then the model's default. */
export function thinkingOf(variables: Variables, byDefault: boolean): boolean {
  const mode = variables.get("thinking_mode");
  if (mode === "thinking" || mode === "chat") return mode === "thinking";
  const given = ["thinking", "enable_thinking"].map((name) => variables.get(name) ?? null).filter((v) => v !== null);
  if (given.length > 0) return given.some(truthy);
  return OFF.includes(variables.get("reasoning_effort")) ? false : byDefault;
}

/** An effort without those that `thinkingOf` understands as off. */
export function levelOf(variables: Variables, ...names: readonly string[]): string | number | undefined {
  const effort = effortOf(variables, ...names);
  return OFF.includes(effort) ? undefined : effort;
}
