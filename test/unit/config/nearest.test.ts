import { expect, test } from "bun:test";
import { nearest } from "../../../src/config/nearest.ts";

const known = ["host", "port", "worker-urls", "model-path", "log-level", "shutdown-grace-period-secs"];

test.each([
  ["prot", "port"],
  ["PORT", "port"],
  ["worker_urls", "worker-urls"],
  ["worker-url", "worker-urls"],
  ["modelpath", "model-path"],
  ["shutdown-grace-secs", undefined],
  ["shutdown-grace-perod-sec", "shutdown-grace-period-secs"],
  ["x", undefined],
  ["", undefined],
  ["kubernetes", undefined],
])("%j -> %j", (name, expected) => {
  expect(nearest(name, known)).toBe(expected as string);
});
