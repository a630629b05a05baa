/** Which blocks that engines tell of can serve a prompt at once: those in the memory of their own devices, of the whole prompt. */

/** By the engines' own words for where a block lies; none: where it always lay before there were words for it. */
export function isDevice(medium: string): boolean {
  const word = medium.toUpperCase();
  return word === "" || word === "GPU" || word === "DEVICE" || word.startsWith("CUDA");
}

/** Of hybrid models, the groups of layers that keep a window or a state only say nothing of the prompt as a whole. */
export function isWholePrompt(specKind: string): boolean {
  return specKind === "" || /full|mla|sink/.test(specKind);
}
