/** What the gateway believes and shows when it talks to workers over TLS. */
import { createPrivateKey, X509Certificate } from "node:crypto";
import { readFileSync } from "node:fs";
import type { ServeConfig } from "../config/serve-options.ts";
import type { EngineOptions } from "../engines/create.ts";

type Settings = Pick<ServeConfig, "workerCaCert" | "workerClientCert" | "workerClientKey">;

/** PEM texts, read now; undefined: nothing is set. Throws what reading files throws. */
export function workerTls({ workerCaCert, workerClientCert, workerClientKey }: Settings): EngineOptions["tls"] {
  const ca = workerCaCert.map(textOf).join("\n");
  const tls = {
    ...(ca !== "" && { ca }),
    ...(workerClientCert !== undefined && { cert: textOf(workerClientCert) }),
    ...(workerClientKey !== undefined && { key: textOf(workerClientKey) }),
  };
  return Object.keys(tls).length > 0 ? tls : undefined;
}

/** What is wrong with the files, one line each: with a bad one no worker could be reached, and none would say why. */
export function workerTlsProblems({ workerCaCert, workerClientCert, workerClientKey }: Settings): string[] {
  const problems: string[] = [];
  const look = <T>(flag: string, path: string, read: (text: string) => T, what: string): T | undefined => {
    try {
      return read(textOf(path));
    } catch (error) {
      const { code, syscall } = error as NodeJS.ErrnoException;
      const problem = syscall === undefined ? `holds no ${what} in PEM` : `cannot be read (${code})`;
      problems.push(`--${flag}: ${JSON.stringify(path)} ${problem}`);
      return undefined;
    }
  };
  for (const path of workerCaCert) look("worker-ca-cert", path, certificatesOf, "certificate");
  if ((workerClientCert === undefined) !== (workerClientKey === undefined))
    problems.push("--worker-client-cert and --worker-client-key: need each other");
  const own =
    workerClientCert === undefined
      ? undefined
      : look("worker-client-cert", workerClientCert, certificatesOf, "certificate");
  const key =
    workerClientKey === undefined ? undefined : look("worker-client-key", workerClientKey, createPrivateKey, "key");
  if (own?.[0] !== undefined && key !== undefined && !own[0].checkPrivateKey(key))
    problems.push("--worker-client-key: is not the key of --worker-client-cert");
  return problems;
}

const textOf = (path: string): string => readFileSync(path, "utf8");

const CERTIFICATE = /-----BEGIN CERTIFICATE-----[^-]*-----END CERTIFICATE-----/g;

/** Throws for a text that holds none, or one that is damaged. */
function certificatesOf(text: string): X509Certificate[] {
  const found = text.match(CERTIFICATE) ?? [];
  if (found.length === 0) throw new Error("no certificate");
  return found.map((pem) => new X509Certificate(pem));
}
