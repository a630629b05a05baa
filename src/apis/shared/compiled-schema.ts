import type { Static, TSchema } from "@sinclair/typebox";
import { type TypeCheck, TypeCompiler } from "@sinclair/typebox/compiler";

/** The check of a schema, compiled when it is first asked for: compiling takes milliseconds, which a start has no time for. */
export function compiledSchema<T extends TSchema>(
  schema: T,
): Pick<TypeCheck<T>, "Errors"> & { Check(value: unknown): value is Static<T> } {
  let compiled: TypeCheck<T> | undefined;
  const check = (): TypeCheck<T> => {
    compiled ??= TypeCompiler.Compile(schema);
    return compiled;
  };
  return {
    Check: (value: unknown): value is Static<T> => check().Check(value),
    Errors: (value) => check().Errors(value),
  };
}
