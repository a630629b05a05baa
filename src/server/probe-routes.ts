import { Elysia } from "elysia";
import type { ServerContext } from "./context.ts";

const detail = (summary: string) => ({ detail: { tags: ["Probes"], summary } });

/** Routes that tell how the gateway is. */
export function probeRoutes(context: Pick<ServerContext, "fleet" | "draining">) {
  return (
    new Elysia({ name: "collie-probes", normalize: false })
      // Claude Code asks whether anybody is there.
      .head("/", () => new Response(null), detail("The server answers"))
      .get("/health", () => "OK", detail("The process is alive"))
      .get("/liveness", () => "OK", detail("The process is alive"))
      .get("/readiness", () => readiness(context), detail("Requests can be served"))
  );
}

function readiness({ fleet, draining }: Pick<ServerContext, "fleet" | "draining">): Response {
  const healthy = fleet.readyWorkers();
  const total = fleet.workerCount;
  const reason = draining() ? "draining" : healthy === 0 ? "insufficient healthy workers" : undefined;
  if (reason !== undefined)
    return Response.json(
      { status: "not ready", reason, healthy_workers: healthy, total_workers: total },
      { status: 503 },
    );
  return Response.json({ status: "ready", healthy_workers: healthy, total_workers: total });
}
