/** The list of models in Anthropic's shape, which only requests with its version header get. */
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { check, error, modelInfo, modelPage } from "../../../support/schemas/messages.ts";
import { type Gateway, modelEntry, startGateway } from "../../server/gateway.ts";

const NAMES = Array.from({ length: 25 }, (_, i) => `org/model-${i}`);
let gateway: Gateway;
beforeAll(() => {
  gateway = startGateway(
    [],
    undefined,
    NAMES.map((id, i) => modelEntry({ id, aliases: i === 0 ? ["first"] : [], contextLength: i === 1 ? 0 : 4096 })),
  );
});
afterAll(() => gateway.stop());

type Page = {
  data: { id: string; max_input_tokens: number | null }[];
  has_more: boolean;
  first_id: string;
  last_id: string;
};
const ALL = [NAMES[0]!, "first", ...NAMES.slice(1)];

async function get(path: string, version: string | null = "2023-06-01"): Promise<{ status: number; body: unknown }> {
  const response = await fetch(`${gateway.url}/v1/models${path}`, {
    headers: version === null ? {} : { "anthropic-version": version },
  });
  expect(response.headers.get("x-request-id")).not.toBeNull();
  expect(response.headers.has("request-id")).toBe(version !== null);
  return { status: response.status, body: await response.json() };
}

async function page(query: string): Promise<Page> {
  const { body } = await get(query);
  check(modelPage, body);
  return body as Page;
}

describe("the list", () => {
  test("has pages of 20, from both ends", async () => {
    const first = await page("");
    expect(first.data.map(({ id }) => id)).toEqual(ALL.slice(0, 20));
    expect([first.has_more, first.first_id, first.last_id]).toEqual([true, ALL[0]!, ALL[19]!]);
    const rest = await page(`?after_id=${encodeURIComponent(first.last_id)}`);
    expect([rest.data.map(({ id }) => id), rest.has_more]).toEqual([ALL.slice(20), false]);
    const back = await page(`?limit=5&before_id=${encodeURIComponent(ALL[20]!)}`);
    expect([back.data.map(({ id }) => id), back.has_more]).toEqual([ALL.slice(15, 20), true]);
    const start = await page(`?before_id=${encodeURIComponent(ALL[2]!)}&beta=true`);
    expect([start.data.map(({ id }) => id), start.has_more]).toEqual([ALL.slice(0, 2), false]);
    expect((await page("?limit=1000")).data).toHaveLength(26);
  });

  test("tells the context where it is known", async () => {
    const { data } = await page("?limit=3");
    expect(data.map(({ max_input_tokens: tokens }) => tokens)).toEqual([4096, 4096, null]);
  });

  test("is OpenAI's without the header", async () => {
    const { body } = await get("", null);
    expect((body as { object: string; data: unknown[] }).object).toBe("list");
    expect((body as { data: unknown[] }).data).toHaveLength(26);
  });

  test.each(["?limit=0", "?limit=1001", "?limit=x", "?after_id=unknown", "?after_id=first&before_id=first"])(
    "refuses %s",
    async (query) => {
      const { status, body } = await get(query);
      check(error, body);
      expect(status).toBe(400);
    },
  );
});

test("one model, by any of its names", async () => {
  for (const version of ["2023-06-01", "2026-10-21", "2099-01-01"]) {
    const { body } = await get("/org/model-0", version);
    check(modelInfo, body);
    expect((body as { id: string }).id).toBe("org/model-0");
  }
  expect(((await get("/first")).body as { id: string }).id).toBe("first");
  expect(((await get("/first", null)).body as { object: string }).object).toBe("model");
  const { status, body } = await get("/un/known");
  check(error, body);
  expect([status, (body as { error: { type: string } }).error.type]).toEqual([404, "not_found_error"]);
});
