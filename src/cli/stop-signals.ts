/** SIGTERM and SIGINT: the first asks for an orderly stop, the second ends the process at once. */
export function whenAskedToStop(): { readonly first: Promise<string> } {
  let resolve!: (signal: string) => void;
  const first = new Promise<string>((r) => {
    resolve = r;
  });
  let seen = false;
  const onSignal = (signal: "SIGTERM" | "SIGINT") => {
    if (seen) process.exit(signal === "SIGINT" ? 130 : 143);
    seen = true;
    resolve(signal);
  };
  process.on("SIGTERM", () => onSignal("SIGTERM"));
  process.on("SIGINT", () => onSignal("SIGINT"));
  return { first };
}
