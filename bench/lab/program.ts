import { StartError } from "./processes.ts";

type KindOfError = abstract new (...args: never[]) => Error;

/** Ends the process with the status that `main` gives. What this machine lacks is told in a line, and the status is 1 then. */
export async function runProgram(main: () => Promise<number>, ...lacks: readonly KindOfError[]): Promise<never> {
  try {
    process.exit(await main());
  } catch (error) {
    const known = [StartError, ...lacks].find((kind) => error instanceof kind);
    if (known === undefined) throw error;
    console.error((error as Error).message);
    process.exit(1);
  }
}
