import type { RequestRecord, StatsReport } from "./stats.ts";

export interface StatsServer {
  readonly port: number;
  stop(): Promise<void>;
}

/** What the server shows and sets. */
export interface StatsSource {
  report(): StatsReport;
  requests(): readonly RequestRecord[];
  setAlive(alive: boolean): void;
}

/**
 * Serves JSON on the loopback address: `/stats`, `/requests` (`?ids=1` adds the prompts' token ids, `?last=N` limits), and
 * `POST /alive?value=false` to let the engine core die (`true` revives it).
 */
export function serveStats(port: number, source: StatsSource): StatsServer {
  const server = Bun.serve({
    hostname: "127.0.0.1",
    port,
    fetch(request) {
      const url = new URL(request.url);
      const path = `${request.method} ${url.pathname}`;
      if (path === "GET /stats") return Response.json(source.report());
      if (path === "GET /requests") return Response.json(requestList(source.requests(), url.searchParams));
      if (path === "POST /alive") {
        source.setAlive(url.searchParams.get("value") !== "false");
        return Response.json({ alive: source.report().alive });
      }
      return new Response("try GET /stats, GET /requests or POST /alive?value=false\n", { status: 404 });
    },
  });
  return { port: server.port ?? port, stop: () => server.stop(true) };
}

function requestList(all: readonly RequestRecord[], query: URLSearchParams): unknown[] {
  const last = Number(query.get("last") ?? "0");
  const records = last > 0 ? all.slice(-last) : all;
  return records.map(({ promptIds, ...rest }) =>
    query.get("ids") === "1" ? { ...rest, promptIds: [...promptIds] } : rest,
  );
}
