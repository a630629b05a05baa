/** What threads share is kept apart by model, and by part of a request. */
import type { PolicyContext } from "../policy.ts";

export const scopeOf = ({ model, leg }: PolicyContext): string => (leg === "regular" ? model : `${model}\n${leg}`);
