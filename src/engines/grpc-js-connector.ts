/** Brings a grpc-js client to READY, at once and for a bounded time, instead of grpc-js's own backoff. */
import { isIP } from "node:net";
import { checkServerIdentity } from "node:tls";
import { type ChannelCredentials, Client, type ClientOptions, connectivityState, credentials } from "@grpc/grpc-js";
import type { ChannelOptions } from "./channel.ts";
import { GrpcError, GrpcStatus } from "./grpc-error.ts";

type Waiter = (client: Client | undefined, error?: GrpcError) => void;

/** Name for TLS towards an IP address: Bun refuses an address as server name, the certificate is checked against the address. */
const NAME_FOR_ADDRESS = "engine.invalid";

export class GrpcJsConnector {
  private client: Client | undefined;
  private waiters: Waiter[] | undefined;
  private closed = false;

  constructor(
    private readonly target: string,
    private readonly options: ChannelOptions,
  ) {}

  /** Calls back with a connected client: at once if there is one, else when connecting has succeeded or failed. */
  withClient(waiter: Waiter): void {
    if (this.closed) {
      queueMicrotask(() => waiter(undefined, new GrpcError(GrpcStatus.UNAVAILABLE, "the channel is closed")));
      return;
    }
    if (this.client?.getChannel().getConnectivityState(true) === connectivityState.READY) {
      waiter(this.client);
      return;
    }
    if (this.waiters !== undefined) {
      this.waiters.push(waiter);
      return;
    }
    this.waiters = [waiter];
    try {
      this.connect();
    } catch {
      // A target that is no address, or certificates that can't be read.
      this.settle(undefined, "the connection can't be set up");
    }
  }

  close(): void {
    this.closed = true;
    this.client?.close();
    this.settle(undefined, "the channel is closed");
  }

  private settle(client: Client | undefined, problem: string): void {
    const waiters = this.waiters ?? [];
    this.waiters = undefined;
    for (const waiter of waiters)
      waiter(client, client === undefined ? new GrpcError(GrpcStatus.UNAVAILABLE, problem) : undefined);
  }

  private connect(): void {
    // A client that failed keeps its backoff; a new one with a pool of its own tries at once.
    this.client?.close();
    this.client = undefined;
    const client = new Client(this.target, this.credentials(), this.clientOptions());
    this.client = client;
    const channel = client.getChannel();
    const until = Date.now() + this.options.connectTimeoutMs;
    const look = (): void => {
      if (this.closed) return;
      const state = channel.getConnectivityState(true);
      if (state === connectivityState.READY) this.settle(client, "");
      else if (state === connectivityState.TRANSIENT_FAILURE || state === connectivityState.SHUTDOWN)
        this.settle(undefined, "cannot connect");
      else
        channel.watchConnectivityState(state, until, (error) => {
          if (error === undefined) look();
          else if (!this.closed) this.settle(undefined, "connect timeout");
        });
    };
    look();
  }

  private get host(): string {
    return this.target.slice(0, this.target.lastIndexOf(":")).replace(/^\[|\]$/g, "");
  }

  private credentials(): ChannelCredentials {
    const { tls } = this.options;
    if (tls === undefined) return credentials.createInsecure();
    const pem = (text: string | undefined): Buffer | null => (text === undefined ? null : Buffer.from(text));
    const verify =
      isIP(this.host) === 0
        ? {}
        : {
            checkServerIdentity: (_name: string, certificate: Parameters<typeof checkServerIdentity>[1]) =>
              checkServerIdentity(this.host, certificate),
          };
    return credentials.createSsl(pem(tls.ca), pem(tls.key), pem(tls.cert), verify);
  }

  private clientOptions(): ClientOptions {
    const { maxReceiveBytes, keepaliveMs, keepaliveTimeoutMs, tls } = this.options;
    return {
      "grpc.max_receive_message_length": maxReceiveBytes,
      "grpc.max_send_message_length": -1,
      "grpc.use_local_subchannel_pool": 1,
      "grpc.enable_retries": 0,
      "grpc.service_config_disable_resolution": 1,
      "grpc.primary_user_agent": "collie",
      ...(keepaliveMs > 0
        ? {
            "grpc.keepalive_time_ms": keepaliveMs,
            "grpc.keepalive_timeout_ms": keepaliveTimeoutMs,
            "grpc.keepalive_permit_without_calls": 1,
          }
        : {}),
      ...(tls !== undefined && isIP(this.host) !== 0 ? { "grpc.ssl_target_name_override": NAME_FOR_ADDRESS } : {}),
    };
  }
}
