import { sendDatagram } from "./datagram.ts";

/** Where the functions here look and complain; both have the process's own as default. */
export interface NotifyContext {
  readonly env?: Readonly<Record<string, string | undefined>>;
  /** False ends the watchdog's pings: the service needs to be started anew. */
  readonly alive?: () => boolean;
  /** Told when systemd can't be reached; the service goes on. */
  readonly warn?: (message: string) => void;
}

/** Gives false when systemd could not be told. */
function send(state: string, wait: boolean, { env = process.env, warn = defaultWarn }: NotifyContext): boolean {
  const address = env["NOTIFY_SOCKET"];
  if (!address) return true;
  const problem = sendDatagram(address, state, wait);
  if (problem !== undefined) warn(`systemd can't be told ${JSON.stringify(state)}: ${problem}`);
  return problem === undefined;
}

function defaultWarn(message: string): void {
  process.stderr.write(`collie: ${message}\n`);
}

/**
 * Tells systemd that the service serves (sd_notify(3)). Does nothing outside a `Type=notify` service.
 * @param status one line for `systemctl status`
 */
export function notifyReady(status = "", context: NotifyContext = {}): void {
  const line = status.replace(/[\r\n]+/g, " ");
  send(line === "" ? "READY=1" : `READY=1\nSTATUS=${line}`, true, context);
}

/** Tells systemd that the service has begun to stop. */
export function notifyStopping(context: NotifyContext = {}): void {
  send("STOPPING=1", true, context);
}

/**
 * Pings systemd's watchdog from the event loop at half of `$WATCHDOG_USEC`, so that a stuck loop ends in a restart.
 * Does nothing when the unit has no WatchdogSec. The timer doesn't keep the process alive.
 * @returns stops the pings
 */
export function startWatchdog(context: NotifyContext = {}): () => void {
  const env = context.env ?? process.env;
  const period = Number(env["WATCHDOG_USEC"] ?? 0) / 1000;
  const pid = env["WATCHDOG_PID"];
  if (!env["NOTIFY_SOCKET"] || !(period > 0) || (pid && pid !== String(process.pid))) return () => {};
  const quiet: NotifyContext = { ...context, warn: () => {} };
  let reached = true;
  const ping = () => {
    if (context.alive?.() === false) return;
    // Warned about once per outage, not at every ping.
    reached = send("WATCHDOG=1", false, reached ? context : quiet);
  };
  ping();
  const timer = setInterval(ping, Math.max(1, Math.floor(period / 2)));
  timer.unref();
  return () => clearInterval(timer);
}
