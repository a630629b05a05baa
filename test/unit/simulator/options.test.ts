import { expect, test } from "bun:test";
import { parseSpeed, simulatorOptions } from "../../../src/simulator/options.ts";

test("every setting is named after its flag", () => {
  for (const [property, { flag }] of Object.entries(simulatorOptions))
    expect(property).toBe(flag.replace(/-([a-z])/g, (_, letter: string) => letter.toUpperCase()));
});

test("speeds", () => {
  expect(parseSpeed("instant")).toBe(0);
  expect(parseSpeed("2.5")).toBe(2.5);
  for (const bad of ["", " ", "fast", "-1", "Infinity"]) {
    expect(parseSpeed(bad)).toBeNaN();
    expect(simulatorOptions.speed.check(bad)).toContain("must be a number");
  }
  expect(simulatorOptions.speed.check("0")).toBeUndefined();
});
