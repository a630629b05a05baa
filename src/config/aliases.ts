/** `alias=model` as the two names; the check of `--model-alias` has seen to the form. */
export function parseAlias(pair: string): readonly [alias: string, model: string] {
  const at = pair.indexOf("=");
  return [pair.slice(0, at), pair.slice(at + 1)];
}

/** The first alias that names two models, which would answer from either. */
export function doubleAlias(pairs: readonly string[]): string | undefined {
  const models = new Map<string, string>();
  for (const [alias, model] of pairs.map(parseAlias)) {
    if ((models.get(alias) ?? model) !== model) return alias;
    models.set(alias, model);
  }
  return undefined;
}
