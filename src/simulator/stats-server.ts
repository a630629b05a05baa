import type { RequestRecord, StatsReport } from "./stats.ts";

export interface StatsServer {
  readonly port: number;
  stop(): Promise<void>;
}

/** Serves `/stats` and `/requests` (`?ids=1` adds the prompts' token ids, `?last=N` limits) as JSON on the loopback address. */
export function serveStats(
  port: number,
  report: () => StatsReport,
  requests: () => readonly RequestRecord[],
): StatsServer {
  const server = Bun.serve({
    hostname: "127.0.0.1",
    port,
    fetch(request) {
      const url = new URL(request.url);
      if (url.pathname === "/stats") return Response.json(report());
      if (url.pathname !== "/requests") return new Response("try /stats or /requests\n", { status: 404 });
      const last = Number(url.searchParams.get("last") ?? "0");
      const withIds = url.searchParams.get("ids") === "1";
      const records = last > 0 ? requests().slice(-last) : requests();
      return Response.json(
        records.map(({ promptIds, ...rest }) => (withIds ? { ...rest, promptIds: [...promptIds] } : rest)),
      );
    },
  });
  return { port: server.port ?? port, stop: () => server.stop(true) };
}
