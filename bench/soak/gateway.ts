/** The gateway of the soak, and what it tells of itself. */
import { join } from "node:path";
import { workFolder } from "../lab/paths.ts";
import { answers, freePort, type Running, start, untilTrue } from "../lab/processes.ts";
import type { SoakWorker } from "./workers.ts";

/** Time after which the gateway gives a request up: what stalled ends so. */
export const TIMEOUT_SECS = 20;

/**
 * Timers are short, so that what the gateway does about dead and frozen engines is done many times, and the cache of prompts is small, so
 * that it is full before the memory counts.
 */
const FLAGS =
  `--request-timeout-secs ${TIMEOUT_SECS} --first-token-timeout-secs 10 --inter-token-timeout-secs 10 ` +
  "--worker-stall-secs 3 --health-check-interval-secs 2 --health-check-timeout-secs 2 --health-success-threshold 1 " +
  "--cb-timeout-duration-secs 2 --cb-window-duration-secs 10 --drain-timeout-secs 10 " +
  "--tokenizer-cache-l0-max-entries 256 --log-level warn";

interface ListedWorker {
  readonly url: string;
  readonly is_healthy: boolean;
  readonly load: number;
}

export interface SoakGateway extends Running {
  readonly url: URL;
  /** Requests that are booked at workers, by its own board. */
  bookings(): Promise<number>;
  /** Workers that it gives no requests to now. */
  unhealthy(): Promise<readonly string[]>;
}

/** Starts it and waits until all of them serve. Throws StartError. */
export async function startSoakGateway(
  binary: string,
  workers: readonly SoakWorker[],
  threads: number,
): Promise<SoakGateway> {
  const port = freePort();
  const metricsPort = freePort();
  const url = new URL(`http://127.0.0.1:${port}`);
  const state = join(workFolder(), "soak-state");
  const places = ["--host", "127.0.0.1", "--port", String(port), "--prometheus-port", String(metricsPort)];
  const rest = ["--threads", String(threads), "--state-dir", state, ...FLAGS.split(" ")];
  const urls = workers.map((worker) => worker.url);
  const running = start("soak-gateway", [binary, "serve", ...places, "--worker-urls", ...urls, ...rest], undefined);
  const listed = async () => {
    const response = await fetch(new URL("/workers", url), { signal: AbortSignal.timeout(5000) });
    return ((await response.json()) as { workers: ListedWorker[] }).workers;
  };
  const unhealthy = async () => (await listed()).filter((worker) => !worker.is_healthy).map((worker) => worker.url);
  await untilTrue(running, "the gateway", () => answers(`${url}readiness`));
  await untilTrue(running, "the workers", async () => (await unhealthy()).length === 0);
  return {
    ...running,
    url,
    unhealthy,
    async bookings() {
      const text = await (await fetch(`http://127.0.0.1:${metricsPort}/metrics`)).text();
      return Number(/^collie_board_bookings (\d+)$/m.exec(text)?.[1]);
    },
  };
}
