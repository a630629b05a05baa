import { existsSync } from "node:fs";
import { resolve } from "node:path";
import { ConfigError } from "../config/config-error.ts";
import { readConfigFile } from "../config/config-file.ts";
import { readFlags } from "../config/flags.ts";
import type { Environment } from "../config/given.ts";
import type { Option } from "../config/option.ts";
import { configOption, resolveOptions } from "../config/resolve.ts";
import { serveOptions } from "../config/serve-options.ts";
import { checkValue } from "../config/value.ts";
import { type Credential, systemdUnit, type Word } from "./systemd-unit.ts";

const defaultConfigPath = "/etc/collie/collie.yaml";

/** The words that start this program: the compiled binary, or Bun and the main file when it runs from source. */
function thisProgram(): string[] {
  return Bun.main.includes("$bunfs") ? [process.execPath] : [process.execPath, "run", resolve(Bun.main)];
}

/** A given flag as arguments again, in one canonical spelling. */
function flagWords(option: Option, value: unknown): string[] {
  if (typeof value === "boolean") return [value ? `--${option.flag}` : `--no-${option.flag}`];
  const values = Array.isArray(value) ? value.map(String) : [String(value)];
  return values.map((one) => `--${option.flag}=${one}`);
}

function graceSeconds(fromFlags: number, given: boolean, configPath: string): number {
  if (given || !existsSync(configPath)) return fromFlags;
  const option = serveOptions.shutdownGracePeriodSecs;
  // Other mistakes in the file are for `collie config` to tell.
  const inFile = readConfigFile([option], configPath, []).get(option.flag);
  const checked = inFile === undefined ? undefined : checkValue(option, inFile.value);
  return checked !== undefined && "value" in checked ? Number(checked.value) : fromFlags;
}

/**
 * The unit for `collie serve` with the given flags. A secret named as `@FILE` becomes a credential that systemd reads.
 * @throws ConfigError for wrong flags, and for a secret in clear: everybody may read a unit
 */
export function unitFor(args: readonly string[], program: readonly string[]): string {
  const problems: string[] = [];
  const options: Option[] = [...Object.values(serveOptions), configOption];
  const given = readFlags(options, args, problems);
  const words: Word[] = [];
  const plain: string[] = [];
  const credentials: Credential[] = [];
  let configPath = defaultConfigPath;
  for (const option of options) {
    const value = given.get(option.flag)?.value;
    if (value === undefined) continue;
    if (option === configOption) configPath = resolve(String(value));
    else if (option.secret) {
      const text = String(value);
      if (/^@[^@]/.test(text)) {
        credentials.push({ name: option.flag, path: resolve(text.slice(1)) });
        words.push({ credential: option.flag, prefix: `--${option.flag}=@` });
      } else problems.push(`--${option.flag}: everybody may read a unit; name a file (--${option.flag}=@/path)`);
    } else {
      const spelt = flagWords(option, value);
      plain.push(...spelt);
      words.push(...spelt);
    }
  }
  if (problems.length > 0) throw new ConfigError(problems);
  const { values } = resolveOptions(serveOptions, { args: plain, env: {} });
  return systemdUnit({
    command: [...program, "serve", "--config", configPath, ...words],
    credentials,
    graceSeconds: graceSeconds(values.shutdownGracePeriodSecs, given.has("shutdown-grace-period-secs"), configPath),
    configPath,
  });
}

/** `collie systemd`: prints a unit on stdout. */
export async function run(args: readonly string[], _env: Environment): Promise<number> {
  const program = thisProgram();
  process.stdout.write(unitFor(args, program));
  if (/^\/(home|root|run\/user|tmp|var\/tmp)\//.test(program[0] ?? ""))
    process.stderr.write(`collie: a service can't see ${program[0]}; move the program to /usr/local/bin first\n`);
  return 0;
}
