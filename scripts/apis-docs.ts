/**
 * Writes the tables of docs/apis.md from the results of the tests with the vendors' clients:
 *   node scripts/bun.mjs test --reporter=junit --reporter-outfile=FILE test/e2e && node scripts/bun.mjs run scripts/apis-docs.ts FILE...
 * A test that did not pass, or did not run, is not on the page.
 */
import { readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import packageJson from "../package.json" with { type: "json" };
import { APIS, CASES } from "../test/e2e/support/covers.ts";

const root = join(import.meta.dir, "..");
/** The page that holds the tables. */
export const apisPage = join(root, "docs", "apis.md");

/** What a test shows. */
export interface Covered {
  readonly api: string;
  readonly feature: string;
  readonly client: string;
}

const nameOf = ({ api, feature, client }: Covered): string => `${api} | ${feature} | ${client}`;

/** The tests that the sources name. Throws Error for a call of `covers` without three literals. */
export function coveredBySources(folder: string = join(root, "test", "e2e")): Covered[] {
  return readdirSync(folder)
    .filter((name) => name.endsWith(".test.ts"))
    .flatMap((name) => {
      const text = readFileSync(join(folder, name), "utf8");
      const literal = /\bcovers\(\s*"([^"\\]+)",\s*"([^"\\]+)",\s*"([^"\\]+)",?\s*\)/g;
      const found = [...text.matchAll(literal)].map(([, api = "", feature = "", client = ""]) => ({
        api,
        feature,
        client,
      }));
      const calls = text.match(/\bcovers\(/g)?.length ?? 0;
      if (calls !== found.length) throw new Error(`${name}: a call of covers() without three literals`);
      return found;
    });
}

const ENTITIES: Readonly<Record<string, string>> = { lt: "<", gt: ">", quot: '"', apos: "'", amp: "&" };

/** Names of the tests that have passed, by a report in JUnit's form. */
export function passedTests(junit: string): Set<string> {
  const passed = new Set<string>();
  for (const [, attributes = "", body] of junit.matchAll(/<testcase\b([^>]*?)(?:\/>|>([\s\S]*?)<\/testcase>)/g)) {
    const name = /\bname="([^"]*)"/.exec(attributes)?.[1];
    if (name === undefined || /<(?:failure|error|skipped)\b/.test(body ?? "")) continue;
    passed.add(name.replaceAll(/&(lt|gt|quot|apos|amp);/g, (_, entity: string) => ENTITIES[entity] ?? ""));
  }
  return passed;
}

/** What a page's tables say. */
export function coveredByPage(page: string): Covered[] {
  const covered: Covered[] = [];
  let api = "";
  let clients: string[] = [];
  for (const line of page.slice(Math.max(0, page.indexOf(BEGIN))).split("\n")) {
    const heading = /^### (.+)$/.exec(line)?.[1];
    if (heading !== undefined) api = heading;
    if (!line.startsWith("| ") || line.startsWith("|---")) continue;
    const [feature = "", ...cells] = line
      .split("|")
      .slice(1, -1)
      .map((cell) => cell.trim());
    if (feature === "") clients = cells.map((cell) => cell.replaceAll("`", ""));
    else
      for (const [at, cell] of cells.entries())
        if (cell === "yes") covered.push({ api, feature, client: clients[at] ?? "" });
  }
  return covered;
}

const BEGIN = "<!-- clients -->\n";
const END = "<!-- end -->";

/** The page with tables of these tests, and the clients' versions. */
export function withTables(page: string, covered: readonly Covered[]): string {
  const from = page.indexOf(BEGIN) + BEGIN.length;
  const to = page.indexOf(END, from);
  if (from < BEGIN.length || to < 0) throw new Error("the page has no place for the tables");
  return `${page.slice(0, from)}\n${tables(covered)}\n${page.slice(to)}`;
}

function tables(covered: readonly Covered[]): string {
  const lines: string[] = [];
  for (const api of APIS) {
    const own = covered.filter((each) => each.api === api);
    if (own.length === 0) continue;
    const clients = [...new Set(own.map(({ client }) => client))].sort();
    const order = (feature: string) => [...CASES, feature].indexOf(feature);
    const features = [...new Set(own.map(({ feature }) => feature))].sort(
      (a, b) => order(a) - order(b) || a.localeCompare(b, "en"),
    );
    const names = new Set(own.map(nameOf));
    lines.push(`### ${api}`, "", `| | ${clients.map((client) => `\`${client}\``).join(" | ")} |`);
    lines.push(`|---${"|---".repeat(clients.length)}|`);
    for (const feature of features) {
      const cells = clients.map((client) => (names.has(nameOf({ api, feature, client })) ? "yes" : ""));
      lines.push(`| ${feature} | ${cells.join(" | ")} |`);
    }
    lines.push("");
  }
  return [...lines, clientVersions(covered)].join("\n");
}

const versions: Readonly<Record<string, string>> = packageJson.devDependencies;

function clientVersions(covered: readonly Covered[]): string {
  const packages = new Set(covered.flatMap(({ client }) => client.split(" + ")).filter((name) => name in versions));
  const all = [...packages].sort().map((name) => `\`${name}\` ${versions[name]}`);
  return all.length === 0 ? "" : `The clients: ${all.join(", ")}.\n`;
}

if (import.meta.main) {
  const passed = new Set(process.argv.slice(2).flatMap((file) => [...passedTests(readFileSync(file, "utf8"))]));
  const named = coveredBySources();
  const shown = named.filter((each) => passed.has(nameOf(each)));
  for (const each of named) if (!passed.has(nameOf(each))) console.error(`did not pass: ${nameOf(each)}`);
  writeFileSync(apisPage, withTables(readFileSync(apisPage, "utf8"), shown));
  if (shown.length < named.length) process.exitCode = 1;
}
