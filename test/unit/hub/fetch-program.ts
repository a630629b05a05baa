/** Fetches a repository in a process of its own and prints names and SHA-256 of what it got as JSON.   bun fetch-program.ts SOURCE */
import { createHash } from "node:crypto";
import { fetchModelFiles } from "../../../src/hub/model-files.ts";

const files = await fetchModelFiles(process.argv[2] ?? "", { environment: process.env });
const digests = [...files].map(([name, bytes]) => [name, createHash("sha256").update(bytes).digest("hex")]);
process.stdout.write(JSON.stringify(Object.fromEntries(digests)));
