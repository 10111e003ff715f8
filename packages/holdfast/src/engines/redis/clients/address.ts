import { UsageError } from "../../../errors.js";
import type { EngineUrl } from "../../../url.js";

interface Host {
  readonly host: string;
  readonly port: number;
}

/** The address of Redis, as a URL gives it. */
export interface Address {
  readonly hosts: readonly [Host, ...Host[]];
  readonly topology: "single" | "sentinel" | "cluster";
  /** The name that the Sentinels have for the primary. */
  readonly name: string;
  readonly username: string | null;
  readonly password: string | null;
  readonly database: number;
  readonly tls: boolean;
}

const TOPOLOGIES: Record<string, Address["topology"]> = {
  "redis+sentinel": "sentinel",
  "redis+cluster": "cluster",
};
const PORTS = { single: 6379, sentinel: 26_379, cluster: 6379 };
const FORMS = {
  single: "redis://127.0.0.1:6379/0",
  sentinel: "redis+sentinel://10.0.0.1,10.0.0.2,10.0.0.3/main",
  cluster: "redis+cluster://10.0.0.1,10.0.0.2,10.0.0.3",
};

export function addressOf(url: EngineUrl): Address {
  const { scheme, path, username, password } = url;
  const topology = TOPOLOGIES[scheme] ?? "single";
  const [first, ...more] = url.hosts.map(({ host, port }) => ({
    host,
    port: port ?? PORTS[topology],
  }));
  if (first === undefined || (topology === "single" && more.length > 0)) {
    const hosts = topology === "single" ? "one host" : "at least one host";
    throw new UsageError(`${scheme}:// takes ${hosts}, like "${FORMS[topology]}"`);
  }
  const parts = path.split("/").slice(1);
  const name = topology === "sentinel" ? (parts.shift() ?? "") : "";
  if (topology === "sentinel" && name === "") {
    throw new UsageError(
      `${scheme}:// names what the Sentinels watch after the hosts, like "${FORMS.sentinel}"`,
    );
  }
  const tls = scheme === "rediss" || readTls(url);
  const database = readDatabase(parts, topology, scheme, path);
  return { hosts: [first, ...more], topology, name, username, password, database, tls };
}

function readDatabase(
  parts: readonly string[],
  topology: Address["topology"],
  scheme: string,
  path: string,
): number {
  const [text = "", ...rest] = parts;
  const database = Number(text);
  const whole = rest.length === 0 && Number.isInteger(database) && database >= 0;
  if (whole && (topology !== "cluster" || database === 0)) return database;
  const wants =
    topology === "cluster"
      ? "a Cluster has database 0 only, and no path"
      : "the path ends with a database number, or with nothing";
  throw new UsageError(`${scheme}://: ${wants}; got "${path}"`);
}

function readTls({ params, scheme }: EngineUrl): boolean {
  const tls = params.get("tls") ?? "false";
  if (tls === "true" || tls === "false") return tls === "true";
  throw new UsageError(`${scheme}://: tls is "true" or "false", got ${JSON.stringify(tls)}`);
}

/** For messages: without user name and password. */
export function showAddress({ hosts, topology, name }: Address): string {
  const list = hosts.map(({ host, port }) => `${host}:${port}`).join(", ");
  return topology === "sentinel" ? `"${name}" by the Sentinels ${list}` : list;
}
