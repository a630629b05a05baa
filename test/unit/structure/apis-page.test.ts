import { describe, expect, test } from "bun:test";
import { readFileSync } from "node:fs";
import {
  apisPage,
  type Covered,
  coveredByPage,
  coveredBySources,
  passedTests,
  withTables,
} from "../../../scripts/apis-docs.ts";

const page = readFileSync(apisPage, "utf8");
const names = (covered: readonly Covered[]) =>
  covered.map(({ api, feature, client }) => `${api} | ${feature} | ${client}`).sort();

describe("the page of the APIs", () => {
  test("shows the tests that there are (else run scripts/apis-docs.ts with the tests' results)", () => {
    expect(names(coveredByPage(page))).toEqual([...new Set(names(coveredBySources()))]);
  });

  test("no two tests show the same", () => {
    const all = names(coveredBySources());
    expect(all.filter((name, at) => all[at - 1] === name)).toEqual([]);
  });
});

describe("the script", () => {
  const covered: Covered[] = [
    { api: "Messages", feature: "stream", client: "@anthropic-ai/sdk" },
    { api: "Messages", feature: "text", client: "@anthropic-ai/sdk" },
    { api: "Messages", feature: "text", client: "ai + @ai-sdk/anthropic" },
    { api: "Responses", feature: "background & <more>", client: "openai" },
  ];

  test("tables say what was put into them", () => {
    const made = withTables("# x\n<!-- clients -->\nold\n<!-- end -->\nbehind\n", covered);
    expect(names(coveredByPage(made))).toEqual(names(covered));
    expect(made).toContain("| text | yes | yes |\n| stream | yes |  |");
    expect(made).toEndWith("<!-- end -->\nbehind\n");
    expect(made).toContain("|\n\nThe clients: ");
    expect(withTables(made, covered)).toBe(made);
    expect(() => withTables("# x", covered)).toThrow("no place");
  });

  test("only what has passed counts", () => {
    const junit = `<testsuite><testcase name="A &amp; &lt;b&gt; | c | d" time="1" />
      <testcase name="failed" time="1"><failure type="x" /></testcase><testcase name="left" ><skipped /></testcase>
      <testcase name="last" assertions="3"></testcase></testsuite>`;
    expect([...passedTests(junit)]).toEqual(["A & <b> | c | d", "last"]);
  });
});
