/** What the API document says of the workers' API, and of the fleet's. Bodies that name workers are checked by the fleet's own reader. */
import { type Static, Type as t } from "@sinclair/typebox";

const labels = t.Record(t.String(), t.String());
const whole = t.Optional(t.Integer({ minimum: 1 }));

const health = t.Object({
  timeout_secs: whole,
  check_interval_secs: whole,
  success_threshold: whole,
  failure_threshold: whole,
  disable_health_check: t.Optional(t.Boolean()),
  endpoint: t.Optional(t.String({ description: "Path that is asked of an HTTP worker" })),
});

const patched = {
  priority: t.Optional(t.Number({ default: 50 })),
  cost: t.Optional(t.Number({ default: 1 })),
  labels: t.Optional(labels),
  api_key: t.Optional(t.String({ description: "Key that an HTTP worker wants; never shown" })),
  health: t.Optional(health),
};

const spec = {
  url: t.String({ description: "grpc(s)://host:port, http(s)://host:port, or host:port: then both are tried" }),
  models: t.Optional(
    t.Array(t.Union([t.String(), t.Object({ id: t.String(), aliases: t.Optional(t.Array(t.String())) })]), {
      description: "What clients call its model; without them the engine is asked",
    }),
  ),
  worker_type: t.Optional(t.String({ description: "regular, prefill, decode or encode", default: "regular" })),
  connection_mode: t.Optional(t.String({ description: "http or grpc, where the URL has no scheme" })),
  runtime_type: t.Optional(
    t.String({ description: "vllm, sglang, trtllm, tokenspeed or mlx; else the engine is asked" }),
  ),
  bootstrap_port: t.Optional(t.Integer()),
};

/** Documents `POST /workers` and `PUT /workers/{id}`. */
export const workerSpecDocument = t.Object({ ...spec, ...patched });
/** Documents `PATCH /workers/{id}`. */
export const workerPatchDocument = t.Object(patched);

/** A body of which the fleet's reader says what is wrong. */
export const anyObject = t.Object({}, { additionalProperties: true });

const job = t.Object({
  job_type: t.String({ description: "AddWorker, UpdateWorker or RemoveWorker" }),
  worker_url: t.String(),
  status: t.String({ description: "pending, processing or failed" }),
  message: t.Optional(t.String({ description: "Why it is not done" })),
  timestamp: t.Integer({ description: "Unix time of the last change, in seconds" }),
});

export const workerObjectSchema = t.Object({
  id: t.String(),
  ...spec,
  ...patched,
  model_id: t.Optional(t.String()),
  is_healthy: t.Boolean(),
  status: t.String({ description: "pending, ready, not_ready, failed or draining" }),
  load: t.Integer({ description: "Requests in flight" }),
  job_status: t.Optional(job),
});

const count = t.Integer();
export const workerListSchema = t.Object({
  workers: t.Array(workerObjectSchema),
  total: count,
  stats: t.Object({ prefill_count: count, decode_count: count, regular_count: count }),
});

export const acceptedSchema = t.Object({
  status: t.Literal("accepted"),
  worker_id: t.String(),
  url: t.Optional(t.String()),
  location: t.Optional(t.String()),
  message: t.String(),
});

const outcomes = {
  status: t.String({ description: "success or partial_success" }),
  message: t.String(),
  total_workers: count,
  successful: t.Optional(t.Array(t.String())),
  failed: t.Optional(t.Array(t.Object({ worker: t.String(), error: t.String() }))),
};
export const flushSchema = t.Object({
  ...outcomes,
  workers_flushed: count,
  total_http_workers: count,
  total_grpc_workers: count,
  total_zmq_workers_skipped: count,
});
export const profiledSchema = t.Object({ ...outcomes, workers_profiled: count });

export const loadsSchema = t.Object({
  workers: t.Array(
    t.Object({
      worker: t.String(),
      load: t.Number({ description: "Tokens in use; -1 = unknown" }),
      details: t.Optional(t.Object({ timestamp: t.String(), dp_rank_count: count, loads: t.Array(t.Object({})) })),
    }),
  ),
});

const url = t.Optional(t.String({ description: "The worker; all of them without" }));
export const startProfileRequest = t.Object(
  {
    url,
    output_dir: t.Optional(t.String()),
    start_step: t.Optional(t.Integer({ minimum: 0 })),
    num_steps: t.Optional(t.Integer({ minimum: 1 })),
    activities: t.Optional(t.Array(t.String())),
    with_stack: t.Optional(t.Boolean()),
    record_shapes: t.Optional(t.Boolean()),
    profile_by_stage: t.Optional(t.Boolean()),
  },
  { additionalProperties: true },
);
export type StartProfileRequest = Static<typeof startProfileRequest>;
export const stopProfileRequest = t.Object({ url }, { additionalProperties: true });
export type StopProfileRequest = Static<typeof stopProfileRequest>;
