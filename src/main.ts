import { runCli } from "./cli/main.ts";

process.exitCode = await runCli(process.argv.slice(2), process.env);
// Workers and connections must not keep a finished command alive.
process.exit();
