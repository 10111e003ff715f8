import { isNear } from "./did-you-mean.js";

/** Other names that people use for an engine. */
const OTHER_NAMES: Readonly<Record<string, string>> = {
  ...{ file: "sqlite", sqlite3: "sqlite", mariadb: "mysql", mysql2: "mysql" },
  ...{ pg: "postgres", pgsql: "postgres", zk: "zookeeper", etcd3: "etcd" },
  ...{ valkey: "redis", valkeys: "rediss", sentinel: "redis+sentinel", cluster: "redis+cluster" },
};
const USUAL_PORTS: Readonly<Record<string, string>> = {
  ...{ 6379: "redis", 26379: "redis+sentinel", 5432: "postgres", 3306: "mysql" },
  ...{ 2379: "etcd", 2181: "zookeeper" },
};
const MOST_MISTAKES = 2;
// Without user and password, so that the host can be shown. The path may be anything.
const HOST_AND_PORT = /^((?:[a-z0-9.-]+|\[[0-9a-f:.]+\]):(\d{1,5}))(\/.*)?$/is;
const FILE = /^[\w./-]+\.(db|sqlite3?)$/i;

/** `; did you mean "redis://localhost:6379"?`, or nothing if there is no good guess. */
export function orMeantUrl(text: string, known: readonly string[]): string {
  const meant = meantBy(text, known);
  return meant === null ? "" : `; did you mean "${meant}"?`;
}

function meantBy(text: string, known: readonly string[]): string | null {
  const [, host, port = "", path] = HOST_AND_PORT.exec(text) ?? [];
  if (host !== undefined) {
    return `${USUAL_PORTS[port] ?? "redis"}://${host}${path === undefined ? "" : "/…"}`;
  }
  if (FILE.test(text)) return `sqlite:${text}`;
  const [, scheme = "", slashes] = /^([a-z][a-z0-9+.-]*):(\/\/)?/i.exec(text) ?? [];
  const name = scheme.toLowerCase();
  const near = Object.hasOwn(OTHER_NAMES, name)
    ? OTHER_NAMES[name]
    : known.find((one) => isNear(name, one, name.length > 4 ? MOST_MISTAKES : 1));
  if (near === undefined) return null;
  return near === "sqlite" ? "sqlite:…" : slashes === undefined ? null : `${near}://…`;
}
