/** An argument, or one that ends in the path of a credential. */
export type Word = string | { readonly prefix: string; readonly credential: string };

/** A secret file that systemd, as root, reads for the service. */
export interface Credential {
  readonly name: string;
  /** Absolute. */
  readonly path: string;
}

/** What differs between two installations. */
export interface UnitSettings {
  readonly command: readonly Word[];
  readonly credentials: readonly Credential[];
  /** How long running requests may take after SIGTERM. */
  readonly graceSeconds: number;
  readonly configPath: string;
}

// biome-ignore lint/suspicious/noControlCharactersInRegex: they are what must be escaped
const controls = /[\x00-\x1f\x7f]/g;

/** Quotes an argument for ExecStart (systemd.service(5), "Command lines"). */
function execWord(word: Word): string {
  if (typeof word !== "string") return `${word.prefix}%d/${word.credential}`;
  const escaped = word.replaceAll("%", "%%").replaceAll("$", "$$$$");
  if (/^[\w@%+=:,./$[\]-]+$/.test(word)) return escaped;
  const inner = escaped
    .replace(/[\\"]/g, "\\$&")
    .replace(controls, (c) => `\\x${c.charCodeAt(0).toString(16).padStart(2, "0")}`);
  return `"${inner}"`;
}

/**
 * A hardened unit for `collie serve` (systemd.exec(5), systemd.service(5)).
 * MemoryDenyWriteExecute is missing on purpose: the JIT writes code and runs it.
 */
export function systemdUnit({ command, credentials, graceSeconds, configPath }: UnitSettings): string {
  return `# Collie as a systemd service. To install:
#   sudo install -m 755 collie /usr/local/bin/collie
#   sudo install -d -m 755 /etc/collie
#   sudo install -m 644 collie.yaml ${configPath}
#   sudo install -m 600 /dev/null /etc/collie/collie.env
#   /usr/local/bin/collie systemd | sudo tee /etc/systemd/system/collie.service
#   sudo systemctl daemon-reload && sudo systemctl enable --now collie
# Settings: \`collie help serve\` names them, \`collie config --config ${configPath} --print\` shows what they come to.
# Secrets: put the key into a file of root's (mode 600), add to [Service] in a drop-in (systemctl edit collie)
#   LoadCredential=api-key:/etc/collie/api-key
#   Environment=COLLIE_API_KEY=@%d/api-key
# Model files must be readable by everybody and lie outside /home, /root and /tmp.

[Unit]
Description=Collie model gateway
Wants=network-online.target
After=network-online.target
StartLimitIntervalSec=300
StartLimitBurst=10

[Service]
Type=notify
NotifyAccess=main
ExecStart=${command.map(execWord).join(" ")}
EnvironmentFile=-/etc/collie/collie.env
${credentials.map(({ name, path }) => `LoadCredential=${name}:${path.replaceAll("%", "%%")}\n`).join("")}WatchdogSec=30
TimeoutStartSec=300
# The grace period for running requests (shutdown-grace-period-secs) and 10 s.
TimeoutStopSec=${graceSeconds + 10}
KillMode=mixed
KillSignal=SIGTERM
Restart=on-failure
RestartSec=2

DynamicUser=yes
StateDirectory=collie
CacheDirectory=collie
UMask=0077
LimitNOFILE=1048576
TasksMax=4096
# MemoryMax=8G

ProtectSystem=strict
ProtectHome=yes
PrivateTmp=yes
PrivateDevices=yes
ProtectClock=yes
ProtectControlGroups=yes
ProtectHostname=yes
ProtectKernelLogs=yes
ProtectKernelModules=yes
ProtectKernelTunables=yes
ProtectProc=invisible
NoNewPrivileges=yes
# To listen below port 1024, use CAP_NET_BIND_SERVICE in the next two.
CapabilityBoundingSet=
AmbientCapabilities=
RestrictAddressFamilies=AF_INET AF_INET6 AF_UNIX AF_NETLINK
RestrictNamespaces=yes
RestrictRealtime=yes
RestrictSUIDSGID=yes
RemoveIPC=yes
LockPersonality=yes
SystemCallArchitectures=native
SystemCallFilter=@system-service
SystemCallErrorNumber=EPERM
# MemoryDenyWriteExecute can't be set: compiled JavaScript needs memory that is written and run.

[Install]
WantedBy=multi-user.target
`;
}
