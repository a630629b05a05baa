import { afterEach, describe, expect, test } from "bun:test";
import { type MetricFamily, metricsText } from "../../../src/telemetry/metrics.ts";
import { type MetricsListener, startMetricsListener } from "../../../src/telemetry/metrics-listener.ts";

const family = (more: Partial<MetricFamily> = {}): MetricFamily => ({
  name: "collie_things_total",
  type: "counter",
  help: "Things.",
  samples: [{ labels: {}, value: 1 }],
  ...more,
});

describe("the text", () => {
  test("has help, type and one line a value", () => {
    const samples = [
      { labels: { model: "org/a", level: "l0" }, value: 12 },
      { labels: { model: "b", level: "l1" }, value: 0.5 },
    ];
    expect(metricsText([family({ samples }), family({ name: "collie_up", type: "gauge", help: "Up." })])).toBe(
      [
        "# HELP collie_things_total Things.",
        "# TYPE collie_things_total counter",
        'collie_things_total{model="org/a",level="l0"} 12',
        'collie_things_total{model="b",level="l1"} 0.5',
        "# HELP collie_up Up.",
        "# TYPE collie_up gauge",
        "collie_up 1",
        "",
      ].join("\n"),
    );
    expect(metricsText([])).toBe("");
  });

  test("escapes what would end a label or a line", () => {
    const text = metricsText([family({ help: "a\\b\nc", samples: [{ labels: { model: 'x"} 1\n\\' }, value: 1 }] })]);
    expect(text).toContain("# HELP collie_things_total a\\\\b\\nc\n");
    expect(text).toContain('collie_things_total{model="x\\"} 1\\n\\\\"} 1\n');
    expect(text.trimEnd().split("\n").length).toBe(3);
  });

  test.each([
    [Number.NaN, "NaN"],
    [Number.POSITIVE_INFINITY, "+Inf"],
    [Number.NEGATIVE_INFINITY, "-Inf"],
    [2 ** 53, "9007199254740992"],
    [1e21, "1e+21"],
  ])("%d", (value, written) =>
    expect(metricsText([family({ samples: [{ labels: {}, value }] })])).toEndWith(`collie_things_total ${written}\n`),
  );
});

describe("the listener", () => {
  const open: MetricsListener[] = [];
  const start = (collect: () => readonly MetricFamily[], port = 0): MetricsListener => {
    const listener = startMetricsListener("127.0.0.1", port, collect);
    open.push(listener);
    return listener;
  };
  afterEach(async () => {
    for (const listener of open.splice(0)) await listener.stop();
  });

  test("answers GET /metrics with what there is now, and nothing else", async () => {
    let value = 1;
    const { port } = start(() => [family({ samples: [{ labels: {}, value }] })]);
    const url = `http://127.0.0.1:${port}`;
    const first = await fetch(`${url}/metrics`);
    expect(first.status).toBe(200);
    expect(first.headers.get("content-type")).toBe("text/plain; version=0.0.4; charset=utf-8");
    expect(await first.text()).toContain("collie_things_total 1\n");
    value = 2;
    expect(await (await fetch(`${url}/metrics?x=1`)).text()).toContain("collie_things_total 2\n");
    expect((await fetch(`${url}/metrics`, { method: "POST" })).status).toBe(405);
    expect((await fetch(`${url}/`)).status).toBe(404);
    expect((await fetch(`${url}/v1/models`)).status).toBe(404);
  });

  test("a collector that throws is an error of the server, without its message", async () => {
    const { port } = start(() => {
      throw new Error("inner secrets");
    });
    const response = await fetch(`http://127.0.0.1:${port}/metrics`);
    expect(response.status).toBe(500);
    expect(await response.text()).not.toContain("secrets");
  });

  test("a port that is taken is an error that names it", () => {
    const { port } = start(() => []);
    expect(() => start(() => [], port)).toThrow(`127.0.0.1:${port}: the address is in use`);
  });

  test("a stopped one answers no more", async () => {
    const listener = start(() => []);
    await listener.stop();
    await expect(fetch(`http://127.0.0.1:${listener.port}/metrics`)).rejects.toThrow();
  });
});
