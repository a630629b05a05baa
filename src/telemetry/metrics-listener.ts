import { METRICS_TYPE, type MetricFamily, metricsText } from "./metrics.ts";

export interface MetricsListener {
  readonly hostname: string;
  readonly port: number;
  stop(): Promise<void>;
}

/**
 * Answers `GET /metrics` with what `collect` gives, on a port of its own. Throws an Error that names the address if it cannot be had.
 */
export function startMetricsListener(
  hostname: string,
  port: number,
  collect: () => readonly MetricFamily[] | Promise<readonly MetricFamily[]>,
): MetricsListener {
  try {
    const server = Bun.serve({
      hostname,
      port,
      reusePort: false, // said aloud: a port of this process would be shared otherwise
      development: false,
      routes: {
        "/metrics": {
          GET: async () => new Response(metricsText(await collect()), { headers: { "content-type": METRICS_TYPE } }),
        },
      },
      fetch: ({ url }) =>
        new Response(
          null,
          new URL(url).pathname === "/metrics" ? { status: 405, headers: { allow: "GET" } } : { status: 404 },
        ),
      error: () => new Response(null, { status: 500 }),
    });
    return {
      hostname: server.hostname ?? hostname,
      port: server.port ?? port,
      stop: () => server.stop(true),
    };
  } catch (error) {
    const { code, message } = error as { code?: string; message: string };
    const reason = code === "EADDRINUSE" ? "the address is in use; choose another with --prometheus-port" : message;
    throw new Error(`cannot listen for metrics on ${hostname}:${port}: ${reason}`, { cause: error });
  }
}
