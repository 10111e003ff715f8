import type { SecureContextOptions } from "node:tls";
import { type Known, refuseForeign } from "../../core/input/known-options.js";
import { UsageError } from "../../errors.js";
import { type EngineUrl, refuseUnknownParams } from "../../url.js";

const PORT = 2379;

/** The options of `node:tls` for certificates. */
export interface EtcdTls extends Pick<SecureContextOptions, "ca" | "cert" | "key" | "passphrase"> {
  /** The name in the servers' certificates, if it differs from the host. */
  readonly servername?: string;
}

export interface EtcdEngineOptions {
  /** "host:port" or "host" of each member. Any member that answers is used. */
  readonly endpoints: readonly string[];
  /** The start of every key. With "" the keys of a resource are those that `etcdctl lock` uses. */
  readonly prefix?: string;
  readonly username?: string;
  readonly password?: string;
  /** True for TLS with the system's authorities. */
  readonly tls?: boolean | EtcdTls;
}

export const ETCD_DEFAULTS = { prefix: "holdfast/" } as const;

export interface Endpoint {
  readonly host: string;
  readonly port: number;
}

export interface EtcdTerms {
  readonly endpoints: readonly Endpoint[];
  readonly prefix: string;
  readonly user: { readonly name: string; readonly password: string } | null;
  readonly tls: EtcdTls | null;
}

const OPTIONS: Known<EtcdEngineOptions> = {
  ...{ endpoints: true, prefix: true, username: true, password: true, tls: true },
};

export function resolveEtcd(options: EtcdEngineOptions): EtcdTerms {
  refuseForeign(options, OPTIONS, "etcdEngine", { option: "endpoints" });
  const { endpoints, prefix = ETCD_DEFAULTS.prefix, username, password, tls = false } = options;
  if (!Array.isArray(endpoints) || endpoints.length === 0) {
    throw new UsageError('endpoints must be a list like ["127.0.0.1:2379"]');
  }
  if (typeof prefix !== "string" || !/^(|[^%\0]*[\x20-\x24\x26-\x7e])$/.test(prefix)) {
    throw new UsageError(
      `prefix is ${JSON.stringify(prefix)}; it must be a string without "%" that ends in ASCII`,
    );
  }
  if ((username === undefined) !== (password === undefined)) {
    throw new UsageError("username and password come together");
  }
  return Object.freeze({
    endpoints: Object.freeze(endpoints.map(endpoint)),
    prefix,
    user: username === undefined ? null : { name: username, password: password ?? "" },
    tls: tls === false ? null : tls === true ? {} : tls,
  });
}

export function termsFromUrl(url: EngineUrl): EtcdTerms {
  refuseUnknownParams(url, ["prefix", "tls"]);
  const { hosts, path, username, password, params } = url;
  if (hosts.length === 0 || (path !== "" && path !== "/")) {
    throw new UsageError('an etcd: URL looks like "etcd://127.0.0.1:2379,127.0.0.1:22379"');
  }
  const tls = params.get("tls") ?? "false";
  if (tls !== "true" && tls !== "false") {
    throw new UsageError(`tls is ${JSON.stringify(tls)}; it must be "true" or "false"`);
  }
  const prefix = params.get("prefix");
  return resolveEtcd({
    endpoints: hosts.map(({ host, port }) => `${bracketed(host)}:${port ?? PORT}`),
    tls: tls === "true",
    ...(prefix === undefined ? {} : { prefix }),
    ...(username === null ? {} : { username, password: password ?? "" }),
  });
}

function endpoint(text: unknown): Endpoint {
  const match = /^(\[[0-9a-f:.]+\]|[^:[\]/@]+)(?::(\d{1,5}))?$/i.exec(String(text));
  const port = Number(match?.[2] ?? PORT);
  if (!match?.[1] || port < 1 || port > 65_535) {
    throw new UsageError('an endpoint looks like "127.0.0.1:2379" or "[::1]:2379"');
  }
  return { host: match[1].replace(/^\[|\]$/g, ""), port };
}

function bracketed(host: string): string {
  return host.includes(":") ? `[${host}]` : host;
}
