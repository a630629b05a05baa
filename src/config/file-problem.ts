/** Why a file could not be read, without its path: `no such file`. */
export function fileProblem(error: unknown): string {
  const code = error instanceof Error && "code" in error ? String(error.code) : "";
  if (code === "ENOENT") return "no such file";
  if (code === "EACCES") return "may not be read by this user";
  if (code === "EISDIR") return "is a folder";
  return error instanceof Error ? error.message : String(error);
}
