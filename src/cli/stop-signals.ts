import { constants } from "node:os";

/**
 * SIGTERM, SIGINT and SIGHUP (the terminal went away): the first asks for an orderly stop, the second ends the process at once.
 * SIGUSR1 and SIGUSR2, which log rotation and the like send, do nothing.
 */
export function whenAskedToStop(): { readonly first: Promise<string> } {
  let resolve!: (signal: string) => void;
  const first = new Promise<string>((r) => {
    resolve = r;
  });
  let seen = false;
  const onSignal = (signal: NodeJS.Signals) => {
    if (seen) process.exit(128 + constants.signals[signal]);
    seen = true;
    resolve(signal);
  };
  for (const signal of ["SIGTERM", "SIGINT", "SIGHUP"] as const) process.on(signal, () => onSignal(signal));
  for (const signal of ["SIGUSR1", "SIGUSR2"] as const) process.on(signal, () => {});
  return { first };
}
