import { spawn } from "node:child_process";
import { version } from "../../package.json" with { type: "json" };
import type { Environment } from "../config/given.ts";
import { resolveOptions } from "../config/resolve.ts";
import { demoOptions } from "../config/serve-options.ts";
import { ownCommand } from "../program.ts";
import { ENGINE_READY } from "./engine.ts";
import { serve } from "./serve.ts";

const ENGINE_START_MS = 60_000;

interface ChildEngine {
  readonly url: string;
  readonly ended: Promise<number>;
  stop(): Promise<void>;
}

/** Starts a simulated engine in a process of its own, which ends with this one. */
function startEngine(env: Environment): Promise<ChildEngine> {
  const [command, ...args] = ownCommand();
  const child = spawn(command, [...args, "engine", "--port", "0", "--exit-with-stdin"], {
    stdio: ["pipe", "pipe", "inherit"],
    // Nothing of the gateway's settings belongs to the engine.
    env: Object.fromEntries(
      ["PATH", "HOME", "XDG_CACHE_HOME", "CACHE_DIRECTORY", "TMPDIR"].flatMap((k) => (env[k] ? [[k, env[k]]] : [])),
    ),
    detached: true, // Ctrl-C goes to the gateway, which finishes its streams before it ends the engine
  });
  const ended = new Promise<number>((resolve) => {
    child.on("exit", (code) => resolve(code ?? 1));
    child.on("error", () => resolve(1));
  });
  return new Promise((resolve, reject) => {
    const timer = setTimeout(() => reject(new Error("the simulated engine did not start in time")), ENGINE_START_MS);
    let output = "";
    child.stdout.on("data", (data: Buffer) => {
      output += data.toString();
      const url = ENGINE_READY.exec(output)?.[1];
      if (url === undefined) return;
      clearTimeout(timer);
      const stop = async () => {
        child.stdin.end();
        await ended;
      };
      resolve({ url, ended, stop });
    });
    ended.then((code) => reject(new Error(`the simulated engine ended with status ${code}`)));
  });
}

function curlLine(url: string, model: string, apiKey: string | undefined): string {
  const body = JSON.stringify({ model, messages: [{ role: "user", content: "Hello" }], stream: true });
  const key = apiKey === undefined ? "" : " -H 'Authorization: Bearer YOUR_KEY'";
  return `curl -N ${url}/v1/chat/completions -H 'Content-Type: application/json'${key} -d '${body}'`;
}

/** `collie demo`: the gateway with a simulated engine behind it, ready for a first request. */
export async function run(args: readonly string[], env: Environment): Promise<number> {
  const { values, warnings } = resolveOptions(demoOptions, { args, env });
  for (const warning of warnings) process.stderr.write(`collie: ${warning}\n`);
  const logLevel =
    args.some((arg) => arg.startsWith("--log-level")) || env["COLLIE_LOG_LEVEL"] ? values.logLevel : "warn";
  let engine: ChildEngine;
  try {
    engine = await startEngine(env);
  } catch (error) {
    process.stderr.write(`collie: ${(error as Error).message}\n`);
    return 1;
  }
  let served = false;
  const crashed = engine.ended.then((code) => {
    if (!served) process.stderr.write(`collie: the simulated engine ended with status ${code}\n`);
    return 1;
  });
  const serving = serve({ ...values, logLevel, workerUrls: [engine.url] }, env, {
    onReady(url, model) {
      process.stdout.write(
        `collie ${version} ready on ${url}, model ${model} on a simulated engine. Try:\n\n  ${curlLine(url, model, values.apiKey)}\n\n`,
      );
    },
  });
  const status = await Promise.race([serving, crashed]);
  served = true;
  await engine.stop();
  return status;
}
