import { HistoryUnavailableError } from "../../history/errors.ts";

const ATTEMPTS = 6;
const FIRST_PAUSE_MS = 100;

/**
 * Writes to the history, again and again for some seconds while it is away. `attempt` counts from 1: of a write that got no answer it isn't
 * known whether it was made. Rejects with what the last attempt did, and at once with any other error.
 */
export async function retryStore<T>(write: (attempt: number) => Promise<T>): Promise<T> {
  for (let attempt = 1; ; attempt++) {
    try {
      return await write(attempt);
    } catch (error) {
      if (!(error instanceof HistoryUnavailableError) || attempt === ATTEMPTS) throw error;
      await Bun.sleep(FIRST_PAUSE_MS * 2 ** attempt);
    }
  }
}
