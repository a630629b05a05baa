import { GatewayError } from "../errors.ts";
import { ChatTemplateError } from "../template/errors.ts";
import { LineTooLongError, OutputClosedError } from "./byte-streams.ts";
import { isTold } from "./model.ts";

/** Runs a filter's work to its exit status; failures that speak for themselves go to stderr as a line. Throws the others. */
export async function toldFailures(work: () => Promise<void>): Promise<number> {
  try {
    await work();
    return 0;
  } catch (error) {
    if (error instanceof OutputClosedError) return 0; // `head` has seen enough
    const told = [LineTooLongError, ChatTemplateError, GatewayError].some((kind) => error instanceof kind);
    if (!told && !isTold(error)) throw error;
    process.stderr.write(`collie: ${(error as Error).message}\n`);
    return 1;
  }
}
