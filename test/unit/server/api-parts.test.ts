/** Every route is found by the part that it is loaded with. */
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { PART_NAMES, partOf } from "../../../src/server/api-parts.ts";
import { type Gateway, startGateway } from "./gateway.ts";

let gateway: Gateway;
beforeAll(() => {
  gateway = startGateway();
});
afterAll(() => gateway.stop());

/** A path of a route, and one that no route has and that differs from it in the end alone. */
const pathOf = (route: string): string => route.replaceAll(/:[a-z_]+/g, "x").replace(/\*$/, "x/y");

test("every route of every part is answered by its own app, also before anything was asked", async () => {
  const routes = (await gateway.routes()).filter(({ path }) => path !== "/" && !path.startsWith("/swagger"));
  expect(routes.length).toBeGreaterThan(50);
  const fresh = startGateway();
  try {
    for (const { method, path } of routes) {
      // one that the path has not: what is known of the path says which ones are allowed
      const known = routes.filter((other) => other.path === path).map((other) => other.method);
      const other = ["PATCH", "PUT", "DELETE", "POST", "GET"].find((name) => !known.includes(name));
      const answer = await fetch(fresh.url + pathOf(path), { method: other ?? "" });
      expect([path, answer.status, answer.headers.get("allow")?.split(", ")]).toEqual([
        path,
        405,
        expect.arrayContaining([method]),
      ]);
    }
  } finally {
    await fresh.stop();
  }
});

describe("paths", () => {
  test.each([
    ["/v1/chat/completions", undefined],
    ["/v1/models", undefined],
    ["/v1/models/tokenize", undefined],
    ["/readiness", undefined],
    ["/", undefined],
    ["", undefined],
    ["/v1", undefined],
    ["/toString", undefined],
    ["/v1/completions", "completions"],
    ["/generate", "completions"],
    ["/v1/responses/resp_1/cancel", "responses"],
    ["/v1beta/models", "interactions"],
    ["/v1alpha/interactions", "interactions"],
    ["/rerank", "pooling"],
    ["/v1/rerank", "pooling"],
    ["/swagger/json", "document"],
  ] as const)("%s: %s", (path, part) => {
    expect(partOf(path)).toBe(part);
  });
});

test("requests that come while a part is loaded wait for it, and all of them are answered", async () => {
  const answers = await Promise.all(
    Array.from({ length: 20 }, () => fetch(`${gateway.url}/v1/responses/resp_none`).then(({ status }) => status)),
  );
  expect(answers).toEqual(Array.from({ length: 20 }, () => 404));
  expect(PART_NAMES.length).toBeGreaterThan(5);
});
