import type { Environment, GivenValues } from "./given.ts";
import { nearest } from "./nearest.ts";
import type { Option } from "./option.ts";

const prefix = "COLLIE_";

/** The environment variable of a setting: `worker-urls` -> `COLLIE_WORKER_URLS`. */
export function variableOf(flag: string): string {
  return prefix + flag.toUpperCase().replaceAll("-", "_");
}

/**
 * Kubernetes describes each Service of the namespace to each pod; a Service called `collie` gives `COLLIE_PORT=tcp://10.0.0.1:80`
 * and its kin (https://kubernetes.io/docs/concepts/services-networking/service/#environment-variables).
 */
const serviceLinkName = /_(SERVICE_HOST|SERVICE_PORT(_[A-Z0-9_]+)?|PORT(_\d+_(TCP|UDP|SCTP)(_(PROTO|PORT|ADDR))?)?)$/;
const serviceLinkUrl = /^(tcp|udp|sctp):\/\//;

/**
 * Reads the settings from `COLLIE_*`. An empty variable counts as not set, except for a secret: a gateway that was meant to be
 * locked must not start open. Variables that name no setting are described in `warnings`.
 */
export function readEnvironment(
  options: Iterable<Option>,
  env: Environment,
  problems: string[],
  warnings: string[],
): GivenValues {
  const known = new Map<string, Option>();
  for (const option of options) known.set(variableOf(option.flag), option);
  const given: GivenValues = new Map();
  for (const [name, text] of Object.entries(env)) {
    if (!name.startsWith(prefix) || text === undefined) continue;
    const option = known.get(name);
    if (option === undefined) {
      if (serviceLinkName.test(name)) continue;
      const meant = nearest(name, known.keys());
      warnings.push(`${name}: names no setting, ignored${meant === undefined ? "" : `; did you mean ${meant}?`}`);
      continue;
    }
    if (name.endsWith("_PORT") && serviceLinkUrl.test(text)) {
      warnings.push(
        `${name}: ignored, it was set by Kubernetes for a Service; enableServiceLinks: false keeps it away`,
      );
      continue;
    }
    if (text.trim() === "") {
      if (option.secret) problems.push(`${name}: is empty; unset it, or give the secret`);
      continue;
    }
    const value = option.type === "strings" ? text.split(/[\s,]+/).filter((item) => item !== "") : text.trim();
    given.set(option.flag, { source: { kind: "environment", name }, value });
  }
  return given;
}
