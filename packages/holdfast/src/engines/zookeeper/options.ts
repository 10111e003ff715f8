import { readFileSync } from "node:fs";
import { type Known, refuseForeign } from "../../core/input/known-options.js";
import { UsageError } from "../../errors.js";
import { type EngineUrl, type Host, parseEngineUrl, refuseUnknownParams } from "../../url.js";
import type { LayoutName } from "./layout.js";
import { type Location, locationOf } from "./paths.js";
import type { TlsOptions } from "./wire/connection.js";
import type { AclKind } from "./wire/operations.js";

export interface ZookeeperEngineOptions {
  /** "h1:2181,h2,h3". The default port is 2181. */
  readonly hosts: string;
  /** The node below which all other nodes are. It is created if it is missing. */
  readonly chroot?: string;
  /** The start of every resource's path. A prefix that ends in "/" is a folder. */
  readonly prefix?: string;
  /** For ZooKeeper's digest scheme. */
  readonly username?: string;
  readonly password?: string;
  /**
   * Who may change our nodes: everybody, or clients with our credentials. "creator" if there are
   * any.
   */
  readonly acl?: AclKind;
  /** true, or options for Node's tls.connect. */
  readonly tls?: boolean | TlsOptions;
  /** The naming of nodes. With another library's names, its locks and ours exclude each other. */
  readonly layout?: LayoutName;
  /**
   * session: ephemeral nodes, which end with their session. ttl: records with a ttl that clients
   * judge. Locks of the two kinds do not exclude each other.
   */
  readonly hold?: HoldName;
}

export type HoldName = "session" | "ttl";

export const ZOOKEEPER_DEFAULTS = {
  chroot: "",
  prefix: "holdfast/",
  layout: "holdfast",
  hold: "session",
} as const;
/** Differs from the default, so that nobody mixes the two kinds by accident. */
const TTL_PREFIX = "holdfast-ttl/";

export interface ZookeeperTerms {
  readonly hosts: readonly Host[];
  readonly location: Location;
  readonly digest: string | null;
  readonly acl: AclKind;
  readonly tls: TlsOptions | null;
  readonly layout: LayoutName;
  readonly hold: HoldName;
}

const LAYOUT_NAMES: readonly string[] = ["holdfast", "kazoo", "curator"];
const PARAMS = [
  "prefix",
  "acl",
  "layout",
  "hold",
  "tls",
  "tlsCa",
  "tlsCert",
  "tlsKey",
  "tlsServername",
];

const OPTIONS: Known<ZookeeperEngineOptions> = {
  ...{ hosts: true, chroot: true, prefix: true, username: true, password: true },
  ...{ acl: true, tls: true, layout: true, hold: true },
};

export function resolveZookeeper(options: ZookeeperEngineOptions): ZookeeperTerms {
  refuseForeign(options, OPTIONS, "zookeeperEngine", { option: "hosts" });
  const usual = options.hold === "ttl" ? { prefix: TTL_PREFIX } : {};
  const all = { ...ZOOKEEPER_DEFAULTS, ...usual, ...defined(options) };
  const { chroot, prefix, layout, hold } = all;
  if (typeof options.hosts !== "string" || options.hosts === "") {
    throw new UsageError('hosts must name at least one server, like "127.0.0.1:2181"');
  }
  const { hosts } = parseEngineUrl(`zookeeper://${options.hosts}`);
  checkPath("chroot", chroot, /^(\/[^/]+)*$/, 'like "/app", without a "/" at the end');
  checkPath("prefix", prefix, /^([^/]+\/)*[^/]*$/, 'like "locks/", without a "/" at the start');
  if (!LAYOUT_NAMES.includes(layout)) {
    throw new UsageError(
      `layout is ${JSON.stringify(layout)}; it knows ${LAYOUT_NAMES.join(", ")}`,
    );
  }
  if (hold !== "session" && hold !== "ttl") {
    throw new UsageError(`hold is ${JSON.stringify(hold)}; it knows session, ttl`);
  }
  if (hold === "ttl" && layout !== "holdfast") {
    throw new UsageError(`layout "${layout}" is of sessions; hold "ttl" has a layout of its own`);
  }
  const { username, password } = options;
  if ((username === undefined) !== (password === undefined)) {
    throw new UsageError("username and password go together");
  }
  const digest = username === undefined ? null : `${username}:${password}`;
  const acl = options.acl ?? (digest === null ? "open" : "creator");
  if (acl !== "open" && acl !== "creator") {
    throw new UsageError(`acl is ${JSON.stringify(acl)}; it knows open, creator`);
  }
  if (acl === "creator" && digest === null) {
    throw new UsageError('acl "creator" needs a username and a password');
  }
  const tls = options.tls === true ? {} : options.tls || null;
  const location = locationOf(chroot, prefix);
  return Object.freeze({ hosts, location, digest, acl, tls, layout, hold });
}

export function optionsFromUrl(url: EngineUrl): ZookeeperEngineOptions {
  refuseUnknownParams(url, PARAMS);
  const { username, password, params } = url;
  if (url.hosts.length === 0) {
    throw new UsageError('zookeeper:// needs a host, like "zookeeper://127.0.0.1:2181"');
  }
  const hosts = url.hosts.map(({ host, port }) => {
    const name = host.includes(":") ? `[${host}]` : host;
    return port === null ? name : `${name}:${port}`;
  });
  return {
    hosts: hosts.join(","),
    chroot: url.path === "/" ? "" : url.path,
    ...(username === null ? {} : { username, password: password ?? "" }),
    ...defined({
      prefix: params.get("prefix"),
      acl: params.get("acl") as AclKind | undefined,
      layout: params.get("layout") as LayoutName | undefined,
      hold: params.get("hold") as HoldName | undefined,
    }),
    tls: tlsFromUrl(params),
  };
}

/** tls=true, and PEM files for certificates that Node does not trust by itself. */
function tlsFromUrl(params: EngineUrl["params"]): boolean | TlsOptions {
  const tls = params.get("tls") ?? "false";
  if (tls !== "true" && tls !== "false") {
    throw new UsageError(`tls is ${JSON.stringify(tls)}; it is true or false`);
  }
  const files = [...params.keys()].filter((name) => /^tls./.test(name));
  if (tls === "false" && files.length > 0) {
    throw new UsageError(`${files.join(", ")} without tls=true has no effect`);
  }
  if (tls === "false" || files.length === 0) return tls === "true";
  const options: Record<string, string | Buffer> = {};
  for (const name of files) {
    const value = params.get(name)!;
    const key = name.slice(3).toLowerCase();
    options[key] = key === "servername" ? value : readPem(name, value);
  }
  return options;
}

function readPem(name: string, path: string): Buffer {
  try {
    return readFileSync(path);
  } catch (cause) {
    throw new UsageError(`${name} names ${JSON.stringify(path)}, which cannot be read`, { cause });
  }
}

function checkPath(name: string, value: unknown, shape: RegExp, wants: string): void {
  // biome-ignore lint/suspicious/noControlCharactersInRegex: control characters are what it refuses
  const refused = /[%\u0000-\u001f\u007f-\u009f\ud800-\uf8ff\ufff0-\uffff]|(^|\/)\.{1,2}(\/|$)/;
  if (typeof value === "string" && shape.test(value) && !refused.test(value)) return;
  throw new UsageError(`${name} is ${JSON.stringify(value)}; it must be a path ${wants}`);
}

function defined<T extends object>(options: T): { [K in keyof T]: Exclude<T[K], undefined> } {
  const given = Object.entries(options).filter(([, value]) => value !== undefined);
  return Object.fromEntries(given) as { [K in keyof T]: Exclude<T[K], undefined> };
}
