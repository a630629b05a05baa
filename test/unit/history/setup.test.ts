import { describe, expect, test } from "bun:test";
import { HistorySetupError } from "../../../src/history/errors.ts";
import { parseHistoryUrl, shownHistoryUrl } from "../../../src/history/location.ts";
import { namesOf, parseSchema } from "../../../src/history/schema.ts";

const messageOf = (act: () => unknown): string => {
  try {
    act();
  } catch (error) {
    if (error instanceof HistorySetupError) return error.message;
    throw error;
  }
  return "";
};

describe("the history's URL", () => {
  test("names each store", () => {
    const read: [string, unknown][] = [
      ["none", { type: "none" }],
      ["memory:", { type: "memory" }],
      ["sqlite:///var/lib/collie/history.db", { type: "sqlite", path: "/var/lib/collie/history.db" }],
      ["sqlite:state/a%20b.db", { type: "sqlite", path: "state/a b.db" }],
      ["postgres://u:p@h:5432/d", { type: "postgres", url: "postgres://u:p@h:5432/d" }],
      ["postgresql://h/d", { type: "postgres", url: "postgresql://h/d" }],
      ["redis://h", { type: "redis", url: "redis://h" }],
      ["rediss://h", { type: "redis", url: "rediss://h" }],
      ["valkey://:p@h:1", { type: "redis", url: "redis://:p@h:1" }],
    ];
    for (const [url, location] of read) expect<unknown>(parseHistoryUrl(url)).toEqual(location);
  });

  test("is refused without being repeated", () => {
    for (const url of ["mysql://u:hunter2@h", "postgres://u:hunter2@[h", "hunter2", "", "sqlite:", "sqlite://%"]) {
      const message = messageOf(() => parseHistoryUrl(url));
      expect(message).not.toBe("");
      expect(message).not.toContain("hunter2");
    }
  });

  test("is shown without user, password and options", () => {
    expect(shownHistoryUrl("postgres://u:hunter2@h:5432/d?password=hunter2")).toBe("postgres://h:5432/d");
    expect(shownHistoryUrl("redis://:hunter2@h:1/0")).toBe("redis://h:1/0");
    expect(shownHistoryUrl("sqlite:///a/b")).toBe("sqlite:///a/b");
  });
});

describe("the schema setting", () => {
  test("renames tables and columns as SMG writes them", () => {
    const names = namesOf(
      parseSchema({ owner: "Admin", responses: { table: "Answers", columns: { model: "Model_Name" } } }),
    );
    expect(names.table("responses")).toBe('"admin"."Answers"');
    expect(names.table("conversations")).toBe('"admin"."conversations"');
    expect(names.column("responses", "model")).toBe('"model_name"');
    expect(namesOf(parseSchema({ responses: { table: "Answers" } })).table("responses")).toBe('"answers"');
  });

  test("is refused where a name is none or a key has no meaning", () => {
    const wrong: [unknown, string][] = [
      [{ responses: { table: 'x"; DROP TABLE y' } }, "responses.table"],
      [{ responses: { table: "x".repeat(64) } }, "responses.table"],
      [{ owner: "a b" }, "owner"],
      [{ answers: {} }, "answers"],
      [{ responses: { columns: { modell: "m" } } }, "modell"],
      [{ responses: { columns: { model: "id" } } }, "two columns"],
      [{ responses: { skip_columns: ["model"] } }, "skip_columns"],
      [{ conversations: { extra_columns: { a: {} } } }, "extra_columns"],
      ["responses", "object"],
    ];
    for (const [setting, part] of wrong) expect(messageOf(() => parseSchema(setting))).toContain(part);
    expect(parseSchema({ version: 3, auto_migrate: true, responses: { table: "a", skip_columns: [] } })).toEqual({
      responses: { table: "a" },
    });
  });
});
