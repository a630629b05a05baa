// Runs a command with the pinned Bun, installing the locked dependencies first when they are missing or out of date.
// Needs only Node and npm, or only Bun:   node scripts/bun.mjs run src/main.ts demo
import { spawn, spawnSync } from "node:child_process";
import { copyFileSync, existsSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { constants } from "node:os";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";

const root = dirname(dirname(fileURLToPath(import.meta.url)));
const lock = join(root, "package-lock.json");
const installed = join(root, "node_modules", ".installed-lock.json");
/** Holds the process that installs: two at once would delete each other's files. */
const installing = join(root, ".cache", "installing.pid");

/** The pinned Bun's executable inside node_modules, or undefined when it is not installed. */
function pinnedBun() {
  const scope = join(root, "node_modules", "@oven");
  if (!existsSync(scope)) return undefined;
  for (const name of readdirSync(scope)) {
    const file = join(scope, name, "bin", process.platform === "win32" ? "bun.exe" : "bun");
    if (name.startsWith("bun-") && existsSync(file)) return file;
  }
  return undefined;
}

function upToDate() {
  return existsSync(installed) && readFileSync(installed).equals(readFileSync(lock)) && pinnedBun() !== undefined;
}

function install() {
  const byBun = process.versions.bun !== undefined && spawnSync("npm", ["--version"], { stdio: "ignore" }).status !== 0;
  const [command, args] = byBun
    ? [process.execPath, ["install", "--no-save"]]
    : [process.platform === "win32" ? "npm.cmd" : "npm", ["ci", "--loglevel=error"]];
  console.error("collie: installing dependencies ...");
  const { status, error } = spawnSync(command, args, { cwd: root, stdio: ["ignore", 2, 2] });
  if (error || status !== 0) {
    console.error(`collie: '${command} ${args.join(" ")}' failed${error ? `: ${error.message}` : ""}`);
    rmSync(installing, { force: true });
    process.exit(1);
  }
  copyFileSync(lock, installed);
  if (pinnedBun() === undefined) {
    console.error(`collie: the registry has no Bun for ${process.platform} ${process.arch}`);
    rmSync(installing, { force: true });
    process.exit(1);
  }
}

const pause = (ms) => Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, ms);

/** Takes the right to install; false if another process has it. One that has ended has it no more. */
function claimInstall() {
  mkdirSync(dirname(installing), { recursive: true });
  try {
    writeFileSync(installing, String(process.pid), { flag: "wx" });
    return true;
  } catch (error) {
    if (error.code !== "EEXIST") throw error;
  }
  pause(200); // it has written its number by now, if it lives
  if (existsSync(installing) && !isAlive(Number(readFileSync(installing, "utf8")))) rmSync(installing, { force: true });
  return false;
}

function isAlive(pid) {
  if (!(pid > 0)) return false;
  try {
    process.kill(pid, 0);
    return true;
  } catch (error) {
    return error.code === "EPERM";
  }
}

while (!upToDate()) {
  if (!claimInstall()) continue;
  try {
    if (!upToDate()) install();
  } finally {
    rmSync(installing, { force: true });
  }
}
const child = spawn(pinnedBun(), process.argv.slice(2), { stdio: "inherit" });
for (const signal of ["SIGINT", "SIGTERM", "SIGHUP"]) process.on(signal, () => child.kill(signal));
child.on("exit", (code, signal) => process.exit(code ?? 128 + (constants.signals[signal] ?? 0)));
