/** Templates of strangers: each ends soon, with an error that is a template's, and gets nothing of the host. */
import { describe, expect, test } from "bun:test";
import { compileTemplate } from "../../../src/template/engine/template.ts";
import { ChatTemplateError, TemplateLimitError } from "../../../src/template/errors.ts";
import { plainValue } from "../../../src/template/plain-value.ts";
import { processorMs } from "../../support/processor-time.ts";

const now = new Date("2026-03-05T04:07:09");
function render(template: string, variables: Record<string, unknown> = {}): string {
  const values = Object.entries(variables).map(([name, value]) => [name, plainValue(value)] as const);
  return compileTemplate(template).render(new Map(values), now);
}
/** Far above what each needs on an idle machine. */
const MOST_MS = 8000;

function ends(template: string): unknown {
  const started = processorMs();
  let error: unknown;
  try {
    render(template);
  } catch (thrown) {
    error = thrown;
  }
  expect(processorMs() - started).toBeLessThan(MOST_MS);
  return error;
}
/** Rounds of a template that makes `ns.s` larger and larger. */
const growing = (start: string, step: string): string =>
  `{% set ns = namespace(s=${start}) %}{% for i in range(10000) %}{% set ns.s = ${step} %}{% endfor %}{{ ns.s | length }}`;
const nested = (count: number, end: string): string =>
  `{% set ns = namespace(s=[1], t=[1]) %}{% for i in range(${count}) %}{% set ns.s = [ns.s, ns.s] %}{% set ns.t = [ns.t, ns.t] %}{% endfor %}${end}`;

describe("is stopped", () => {
  test.each([
    ["a macro that calls itself", "{% macro f(x) %}{{ f(x) }}{% endmacro %}{{ f(1) }}"],
    [
      "two macros that call each other, through filters and loops",
      "{% macro f() %}{{ g() }}{% endmacro %}{% macro g() %}{% for i in [1] %}{% filter upper %}{{ f() }}{% endfilter %}{% endfor %}{% endmacro %}{{ f() }}",
    ],
    ["a block that prints itself", "{% block a %}{{ self.a() }}{% endblock %}"],
    ["a loop that recurs on itself", "{% for x in [1] recursive %}{{ loop([1]) }}{% endfor %}"],
    [
      "a macro that calls itself twice",
      "{% macro f(n) %}{% if n %}{{ f(n-1) }}{{ f(n-1) }}{% endif %}{% endmacro %}{{ f(60) }}",
    ],
    ["loops in loops", "{% for a in range(100000) %}{% for b in range(100000) %}{% endfor %}{% endfor %}"],
    [
      "loops with long expressions",
      `{% for a in range(100000) %}{% for b in range(100000) %}{{ ${"1 + ".repeat(390)}1 }}{% endfor %}{% endfor %}`,
    ],
    ["much output", `{% for a in range(100000) %}{% for b in range(1000) %}${"x".repeat(200)}{% endfor %}{% endfor %}`],
    ["a repeated string", "{{ 'x' * 10**9 }}"],
    ["a repeated list", "{{ [1] * 10**9 }}"],
    ["a string that doubles by ~", growing("'x'", "ns.s ~ ns.s")],
    ["a string that doubles by join", growing("'x'", "[ns.s, ns.s] | join")],
    ["a string that doubles by replace", growing("'x'", "ns.s.replace('x', 'xx')")],
    ["a string that doubles by format", growing("'x'", "'{0}{0}'.format(ns.s)")],
    ["a string that doubles by %", growing("'x'", "'%s%s' % (ns.s, ns.s)")],
    ["a string that grows by tojson", growing("'\"'", "ns.s | tojson")],
    ["a list that doubles", growing("[1]", "ns.s + ns.s")],
    ["a printed list of 2 ** 60 lists", nested(60, "{{ ns.s }}")],
    ["the same as JSON", nested(60, "{{ ns.s | tojson }}")],
    ["two such lists compared", nested(60, "{{ ns.s == ns.t }}{{ ns.s < ns.t }}")],
    [
      "a list of 100,000 levels",
      "{% set ns = namespace(s=[]) %}{% for i in range(100000) %}{% set ns.s = [ns.s] %}{% endfor %}{{ ns.s }}",
    ],
    ["a large range as a list, often", "{% for i in range(100000) %}{{ range(100000) | sort | first }}{% endfor %}"],
    [
      "searching a long list",
      "{% set l = range(100000) | list %}{% for i in l %}{{ -1 in l }}{{ l.count(5) }}{% endfor %}",
    ],
    [
      "searching a long text",
      "{% set s = 'a' * 10000000 %}{% for i in range(100000) %}{{ s.find('b') }}{{ s.count('b') }}{{ s is upper }}{% endfor %}",
    ],
    [
      "comparing long texts",
      "{% set s = 'a' * 10000000 %}{% set t = 'a' * 10000000 %}{% for i in range(100000) %}{{ s == t }}{{ s < t }}{% endfor %}",
    ],
    ["breaking a long word", "{{ ('x' * 1000000) | wordwrap(1) | length }}"],
    ["wide fields", "{{ 'x'.center(10**10) }}"],
    ["wide dates", "{{ strftime_now('%999d' * 1000000) }}"],
  ])("%s", (_, template) => {
    expect(ends(template)).toBeInstanceOf(TemplateLimitError);
  });

  test.each([
    ["a range that is too large", "{{ range(10**9) }}"],
    ["a power", "{{ 10 ** (10 ** 9) }}"],
    [
      "a tower of products",
      "{% set ns = namespace(n=3) %}{% for i in range(100) %}{% set ns.n = ns.n * ns.n %}{% endfor %}",
    ],
    ["a width of %", "{{ '%1000000000d' % 1 }}{{ '%*d' % (10**12, 1) }}"],
    ["a precision of %", "{{ '%.1000000000f' % 1 }}"],
    ["a width of format", "{{ '{:1000000000}'.format(1) }}"],
    ["a grouped width of format", "{{ '{:0100000000,}'.format(1) }}"],
    ["formats in formats", "{{ ('{0:' * 1000).format(1) }}"],
    ["parentheses", `{{ ${"(".repeat(100000)}1${")".repeat(100000)} }}`],
    ["lists", `{{ ${"[".repeat(100000)}${"]".repeat(100000)} }}`],
    ["nots", `{{ ${"not ".repeat(100000)}1 }}`],
    ["signs", `{{ ${"-".repeat(100000)}1 }}`],
    ["sums", `{{ 1${" + 1".repeat(100000)} }}`],
    ["filters", `{{ x${"|trim".repeat(100000)} }}`],
    ["attributes", `{{ x${".a".repeat(100000)} }}`],
    ["calls", `{{ x${"()".repeat(100000)} }}`],
    ["conditions", `{{ ${"1 if 0 else ".repeat(50000)}1 }}`],
    ["tags", `${"{% if 1 %}".repeat(50000)}${"{% endif %}".repeat(50000)}`],
    ["targets", `{% set ${"(".repeat(50000)}a${")".repeat(50000)} = 1 %}`],
    [
      "variables in branches",
      Array.from({ length: 8000 }, (_, i) => `{% if a %}{% set v${i} = 1 %}{% endif %}`).join(""),
    ],
    ["raw without an end", "{% raw ".repeat(100000)],
    ["an open string", `{{ ${"'\\".repeat(400000)}`],
    ["a long number", `{{ ${"1".repeat(900000)} }}`],
    ["a long template", "x".repeat(2 ** 20 + 1)],
  ])("%s", (_, template) => {
    expect(ends(template)).toBeInstanceOf(ChatTemplateError);
  });

  test("nothing is left behind: the next template runs as ever", () => {
    expect(() => render("{% macro f() %}x{{ f() }}{% endmacro %}{{ f() }}")).toThrow(TemplateLimitError);
    expect(render("{{ 1 + 1 }}")).toBe("2");
  });

  test("a conversation of 2,000 messages and 4 MB is within the limits", () => {
    const messages = Array.from({ length: 2000 }, (_, i) => ({
      role: i % 2 ? "assistant" : "user",
      content: `${"word ".repeat(400)}${i}`,
    }));
    const template =
      "{% for m in messages %}<{{ m.role }}>{{ m.content | trim }}{% if m.content.split('</think>')[-1].startswith('x') %}{% endif %}{{ m | tojson }}{% endfor %}";
    expect(render(template, { messages }).length).toBeGreaterThan(8_000_000);
  });
});

describe("nothing of the host", () => {
  const names = [
    "constructor",
    "__proto__",
    "prototype",
    "toString",
    "valueOf",
    "hasOwnProperty",
    "__defineGetter__",
    "then",
    "size",
    "push",
  ];

  test.each(names)("%s is a plain missing name", (name) => {
    expect(render(`[{{ ${name} }}]`)).toBe("[]");
    for (const value of [
      "''",
      "[]",
      "{}",
      "1",
      "1.5",
      "none",
      "true",
      "(1,)",
      "range(2)",
      "namespace()",
      "dict",
      "range",
      "joiner()",
    ]) {
      expect(render(`[{{ (${value})['${name}'] }}]`)).toBe("[]");
      expect(render(`[{{ (${value}).${name} is defined }}]`)).toBe("[False]");
    }
  });

  test("such names are keys like others", () => {
    const variables = { d: JSON.parse('{"__proto__": 1, "constructor": {"prototype": 2}}') as unknown };
    expect(render("{{ d['__proto__'] }}{{ d.constructor.prototype }}{{ d | tojson }}", variables)).toBe(
      '12{"__proto__": 1, "constructor": {"prototype": 2}}',
    );
    expect(
      render("{% set constructor = 3 %}{{ constructor }}{% set ns = namespace(toString=4) %}{{ ns.toString }}"),
    ).toBe("34");
    expect(render("{% macro f() %}{{ kwargs }}{% endmacro %}{{ f(__proto__=1, constructor=2) }}")).toBe(
      "{'__proto__': 1, 'constructor': 2}",
    );
    expect(({} as Record<string, unknown>)["constructor"]).toBe(Object);
  });

  test.each([
    "{{ ''.__class__.__mro__ }}",
    "{{ [].append(1) }}",
    "{{ {}.update({}) }}",
    "{{ {}.pop('a') }}",
    "{{ [1].sort() }}",
    "{{ namespace(_x=1) }}",
    "{% set ns = namespace() %}{% set ns.__x = 1 %}",
    "{% include 'a' %}",
    "{% import 'a' as b %}",
    "{% extends 'a' %}",
    "{{ lipsum() }}",
  ])("%s is refused", (template) => {
    expect(() => render(template)).toThrow(ChatTemplateError);
  });

  test.each([() => 1, new Date(), Symbol("x"), new (class A {})(), new Uint8Array(1)])("%p is no variable", (value) => {
    expect(() => plainValue({ a: [value] })).toThrow(ChatTemplateError);
  });

  test("maps may hold plain data, which is converted; what is the engine's already stays the same object", () => {
    const own = new Map([["a", [1, new Map([["b", null]])]]]);
    expect(plainValue(own)).toBe(own as never);
    expect(render("{{ x | tojson }}", { x: new Map<string, unknown>([["a", [{ b: 1.5 }, undefined]]]) })).toBe(
      '{"a": [{"b": 1.5}, null]}',
    );
    expect(() => plainValue(new Map([[1, 2]]))).toThrow(ChatTemplateError);
  });

  test("a variable that holds itself is refused", () => {
    const cycle: unknown[] = [];
    cycle.push(cycle);
    expect(() => plainValue(cycle)).toThrow("levels deep");
  });
});
