/** What an operator may say of a worker. Names and defaults are those of SMG's worker API, in camel case; `undefined` = ask the engine, or take the setting of the gateway. */
export interface WorkerSpec {
  /** `grpc(s)://host:port`, `http(s)://host:port`, or `host:port`: then both are tried. */
  readonly url: string;
  /** Names that clients use for its model, the first of them its id. */
  readonly models?: readonly string[] | undefined;
  readonly workerType?: "regular" | "prefill" | "decode" | "encode" | undefined;
  /** Dialect, where it need not be asked. */
  readonly runtime?: string | undefined;
  readonly labels?: Readonly<Record<string, string>> | undefined;
  /** Larger is preferred; 50 unless told. */
  readonly priority?: number | undefined;
  /** Relative cost; 1 unless told. */
  readonly cost?: number | undefined;
  /** Sent to an HTTP worker as its bearer token. Never shown. */
  readonly apiKey?: string | undefined;
  readonly bootstrapPort?: number | undefined;
  readonly health?: WorkerHealth | undefined;
  /** What else SMG's API takes, under its names: kept and shown, and nothing goes by it. */
  readonly further?: Readonly<Record<string, unknown>> | undefined;
}

/** Per-worker health settings; absent ones are the gateway's. */
export interface WorkerHealth {
  readonly timeoutSecs?: number | undefined;
  readonly checkIntervalSecs?: number | undefined;
  readonly successThreshold?: number | undefined;
  readonly failureThreshold?: number | undefined;
  readonly endpoint?: string | undefined;
  readonly disable?: boolean | undefined;
}
