/** What serving threads are told of a worker that does a part of the work. */
import { expect, test } from "bun:test";
import { resolveOptions } from "../../../src/config/resolve.ts";
import { serveOptions } from "../../../src/config/serve-options.ts";
import { sourcesOf } from "../../../src/fleet/discovery/index.ts";
import { parseSpec } from "../../../src/fleet/spec-json.ts";
import { A, B, lifeWorld } from "./life-world.ts";

const told = ({ workers }: ReturnType<typeof lifeWorld>) =>
  workers().map(({ url, role, bootstrapPort, labels }) => ({ url, role, bootstrapPort, labels }));

test("roles and ports of the settings", async () => {
  const world = lifeWorld();
  const args = ["--worker-urls", "grpc://10.0.0.3:1", "--prefill", A, "9000", "--decode", B];
  const config = resolveOptions(serveOptions, { args, env: {} }).values;
  world.sources.start(sourcesOf(config, world.clock, world.log), new AbortController().signal);
  await world.clock.pass(0);
  expect(told(world)).toEqual([
    { url: "grpc://10.0.0.3:1", role: "regular", bootstrapPort: undefined, labels: {} },
    { url: A, role: "prefill", bootstrapPort: 9000, labels: {} },
    { url: B, role: "decode", bootstrapPort: undefined, labels: {} },
  ]);
});

test("roles and connectors of the workers' API", async () => {
  const world = lifeWorld();
  const body = {
    url: A,
    worker_type: "prefill",
    bootstrap_port: 8999,
    kv_connector: "MooncakeConnector",
    kv_engine_id: "abc",
    labels: { zone: "a" },
  };
  world.sources.sink("api").replace([{ key: "1", spec: parseSpec(body) }]);
  await world.clock.pass(0);
  const labels = { kv_connector: "MooncakeConnector", kv_engine_id: "abc", zone: "a" };
  expect(told(world)).toEqual([{ url: A, role: "prefill", bootstrapPort: 8999, labels }]);
});
