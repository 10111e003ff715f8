import type { ServerKind } from "./chosen.js";

/** How to find it on the machine, and the Debian package that contains it. */
export type Wanted = { readonly package: string; readonly server?: OfServer } & (
  | { readonly binary: string }
  | { readonly file: string }
  /** A module of Debian's own Python. */
  | { readonly module: string }
);

/**
 * A part of a server whose version can be chosen. `names` are its file names in the chosen folder.
 */
export interface OfServer {
  readonly kind: ServerKind;
  readonly names: readonly [string, ...string[]];
}

/**
 * Everything that tests, lab and bench use from Debian. Only items of this list can be requested,
 * so that all are installed before the first test. Installing a package during a test would block
 * its process and keep the disk busy that the servers under test need.
 */
export const CATALOGUE = {
  "redis-server": {
    ...{ binary: "redis-server", package: "redis-server" },
    server: { kind: "redis", names: ["redis-server", "valkey-server"] },
  },
  "redis-cli": { binary: "redis-cli", package: "redis-tools" },
  initdb: {
    ...{ binary: "initdb", package: "postgresql" },
    server: { kind: "postgres", names: ["initdb"] },
  },
  pgbouncer: { binary: "pgbouncer", package: "pgbouncer" },
  // A chosen MySQL needs no program to create its first tables.
  mariadbd: {
    ...{ binary: "mariadbd", package: "mariadb-server" },
    server: { kind: "mysql", names: ["mariadbd", "mysqld"] },
  },
  "mariadb-install-db": {
    ...{ binary: "mariadb-install-db", package: "mariadb-server" },
    server: { kind: "mysql", names: ["mariadb-install-db", "mysqld"] },
  },
  etcd: {
    ...{ binary: "etcd", package: "etcd-server" },
    server: { kind: "etcd", names: ["etcd"] },
  },
  etcdctl: { binary: "etcdctl", package: "etcd-client" },
  java: { binary: "java", package: "default-jre-headless" },
  // Also for java with the source of a program: a runtime alone has no compiler.
  javac: { binary: "javac", package: "default-jdk-headless" },
  openssl: { binary: "openssl", package: "openssl" },
  setpriv: { binary: "setpriv", package: "util-linux" },
  gcc: { binary: "gcc", package: "gcc" },
  "stdio.h": { file: "/usr/include/stdio.h", package: "libc6-dev" },
  "redis-py": { module: "redis", package: "python3-redis" },
  kazoo: { module: "kazoo", package: "python3-kazoo" },
  // The server's; the one below is for programs that lock with Curator.
  "zookeeper-server.jar": {
    ...jar("zookeeper", "zookeeper"),
    server: { kind: "zookeeper", names: ["zookeeper.jar"] },
  },
  "zookeeper.jar": jar("zookeeper", "zookeeper"),
  "zookeeper-jute.jar": jar("zookeeper-jute", "libzookeeper-java"),
  "slf4j-simple.jar": jar("slf4j-simple", "libslf4j-java"),
  "slf4j-api.jar": jar("slf4j-api", "libslf4j-java"),
  "slf4j-nop.jar": jar("slf4j-nop", "libslf4j-java"),
  "guava.jar": jar("guava", "libguava-java"),
  "curator-recipes.jar": jar("curator-recipes", "libcurator-recipes-java"),
  "curator-framework.jar": jar("curator-framework", "libcurator-framework-java"),
  "curator-client.jar": jar("curator-client", "libcurator-client-java"),
} as const satisfies Readonly<Record<string, Wanted>>;

export type CatalogueItem = keyof typeof CATALOGUE;

/** The class path of a program that locks with Curator. */
export const CURATOR_JARS = [
  ...(["curator-recipes.jar", "curator-framework.jar", "curator-client.jar"] as const),
  ...(["zookeeper.jar", "zookeeper-jute.jar", "guava.jar"] as const),
  ...(["slf4j-api.jar", "slf4j-nop.jar"] as const),
] as const satisfies readonly CatalogueItem[];

function jar(name: string, debianPackage: string) {
  return { file: `/usr/share/java/${name}.jar`, package: debianPackage };
}
