/** Waits for what comes in its own time, however busy the machine is; throws when it has not come for so long that it never will. */
export async function until(
  condition: () => boolean | Promise<boolean>,
  what = condition.toString(),
  ms = 20_000,
): Promise<void> {
  for (const began = performance.now(); !(await condition()); await Bun.sleep(2))
    if (performance.now() - began > ms) throw new Error(`not in time: ${what}`);
}
