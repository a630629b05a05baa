import { expect, test } from "bun:test";
import { ClientClosedError, EngineFailureError, InvalidRequestError, NoWorkersError } from "../../../src/errors.ts";
import { RequestMetrics } from "../../../src/server/request-metrics.ts";
import { metricsText } from "../../../src/telemetry/metrics.ts";
import { familiesOf, MetricRegistry } from "../../../src/telemetry/registry.ts";
import { world } from "../fleet/dispatch/world.ts";
import { MODEL } from "./gateway.ts";

const { fleet } = world(1);

function counted(count: (metrics: RequestMetrics) => void): string[] {
  const registry = new MetricRegistry();
  count(new RequestMetrics(registry));
  return metricsText(familiesOf(registry.counted())).split("\n");
}
const ROUTER = `router_type="grpc",backend_type="regular",connection_mode="grpc",model="${MODEL}",endpoint="chat"`;
const TOKENS = `router_type="grpc",backend_type="regular",model="${MODEL}",endpoint="chat"`;

test("a request, its time and its tokens are counted under the id of its model", () => {
  const lines = counted((metrics) => {
    const meter = metrics.begin({ endpoint: "chat", model: "demo", isStream: true }, fleet, performance.now());
    const generation = meter.generation(MODEL);
    generation.begun();
    generation.ended(100, 5);
    meter.ended();
  });
  for (const line of [
    `smg_router_requests_total{${ROUTER},streaming="true"} 1`,
    `smg_router_request_duration_seconds_count{${ROUTER}} 1`,
    `smg_router_ttft_seconds_count{${TOKENS}} 1`,
    `smg_router_tpot_seconds_count{${TOKENS}} 1`,
    `smg_router_generation_duration_seconds_count{${TOKENS}} 1`,
    `smg_router_tokens_total{${TOKENS},token_type="input"} 100`,
    `smg_router_tokens_total{${TOKENS},token_type="output"} 5`,
  ])
    expect(lines).toContain(line);
});

test("failures are counted once each, by their kind; clients that leave are none", () => {
  const lines = counted((metrics) => {
    const fail = (error: Error) => {
      const meter = metrics.begin({ endpoint: "chat", model: MODEL, isStream: false }, fleet, 0);
      meter.failed(error);
      meter.failed(new TypeError("too late"));
      meter.ended();
    };
    for (const error of [
      new NoWorkersError(MODEL),
      new InvalidRequestError("no"),
      new EngineFailureError(504, "engine_timeout", "no"),
      new EngineFailureError(503, "engine_unavailable", "no"),
      new TypeError("a defect"),
    ])
      fail(error);
    metrics.begin({ endpoint: "chat", model: MODEL, isStream: false }, fleet, 0).failed(new ClientClosedError());
  });
  const failures = lines.filter((line) => line.startsWith("smg_router_request_errors_total{"));
  expect(failures.map((line) => line.slice(line.indexOf("error_type=")))).toEqual(
    ["no_workers", "validation_error", "timeout", "backend_error", "internal_error"].map(
      (type) => `error_type="${type}"} 1`,
    ),
  );
});

test("clients cannot make metrics by names of models", () => {
  const lines = counted((metrics) => {
    for (const model of ["a", "b", "c"]) metrics.begin({ endpoint: "chat", model, isStream: false }, fleet, 0);
  });
  const requests = lines.filter((line) => line.startsWith("smg_router_requests_total{"));
  expect(requests).toEqual([expect.stringMatching(/model="unknown".* 3$/)]);
});
