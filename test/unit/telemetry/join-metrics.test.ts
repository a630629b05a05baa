import { expect, test } from "bun:test";
import { joinMetrics } from "../../../src/telemetry/join-metrics.ts";

const joined = (...texts: string[]) =>
  joinMetrics(
    texts.map((text, i) => ({ from: `http://w${i}:8000`, text })),
    "worker_addr",
  );

test("each metric is in one piece, with the comments of the first page that has it", () => {
  const a = `# HELP vllm:running Requests.\n# TYPE vllm:running gauge\nvllm:running{model="m"} 2\nup 1\n`;
  const b = `up 0 1700000000000\n# HELP vllm:running In other words.\n# TYPE vllm:running gauge\nvllm:running 3\n`;
  expect(joined(a, b)).toBe(
    [
      "# HELP vllm:running Requests.",
      "# TYPE vllm:running gauge",
      'vllm:running{worker_addr="http://w0:8000",model="m"} 2',
      'vllm:running{worker_addr="http://w1:8000"} 3',
      'up{worker_addr="http://w0:8000"} 1',
      'up{worker_addr="http://w1:8000"} 0 1700000000000',
      "",
    ].join("\n"),
  );
});

test("the parts of a histogram stay with it", () => {
  const page = `# TYPE t histogram\nt_bucket{le="0.1"} 1\nt_bucket{le="+Inf"} 2\nt_sum 0.5\nt_count 2\n`;
  const lines = joined(page, page).trim().split("\n");
  expect(lines).toHaveLength(9);
  expect(lines.slice(1, 3)).toEqual([
    't_bucket{worker_addr="http://w0:8000",le="0.1"} 1',
    't_bucket{worker_addr="http://w0:8000",le="+Inf"} 2',
  ]);
  expect(lines.filter((line) => line.startsWith("#"))).toEqual(["# TYPE t histogram"]);
});

test("values of labels may hold anything", () => {
  const labels = String.raw`path="/a{b}, \"c\" \\",empty="",`;
  expect(joined(`m{${labels}} NaN\r\n`)).toBe(`m{worker_addr="http://w0:8000",${labels.slice(0, -1)}} NaN\n`);
  expect(joinMetrics([{ from: 'a"b\\c', text: "m 1" }], "w")).toBe('m{w="a\\"b\\\\c"} 1\n');
});

test("what is no metric is left out, and so is what OpenMetrics adds", () => {
  const page = `<html>\n# EOF\n# a comment\nm_total 5 # {trace_id="x"} 1.0\n# TYPE none gauge\n{} 1\n`;
  expect(joined(page, "", "not found")).toBe('m_total{worker_addr="http://w0:8000"} 5\n');
});

test("a metric whose name another one begins with is none of its parts", () => {
  expect(joined("# TYPE a gauge\na 1\nab 2\n", "ab 3\n")).toBe(
    [
      "# TYPE a gauge",
      'a{worker_addr="http://w0:8000"} 1',
      'ab{worker_addr="http://w0:8000"} 2',
      'ab{worker_addr="http://w1:8000"} 3',
      "",
    ].join("\n"),
  );
});
