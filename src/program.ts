/** How the program finds its own parts: as one compiled file, or as sources run by Bun. */
const compiled = import.meta.path.startsWith("/$bunfs/") || import.meta.path.startsWith("B:\\~BUN\\");

/** Command line that starts this program again. */
export function ownCommand(): [string, ...string[]] {
  return compiled ? [process.execPath] : [process.execPath, new URL("./main.ts", import.meta.url).pathname];
}

/**
 * Where an entry point of its own is, such as a worker's, by its path below `src` without the ending. In the compiled file, entry
 * points lie by their paths from the root of the sources, whatever module asks.
 */
export function workerUrl(entry: string): URL {
  return compiled ? new URL(`./src/${entry}.js`, import.meta.url) : new URL(`./${entry}.ts`, import.meta.url);
}
