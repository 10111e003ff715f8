import type { ServerKind } from "./chosen.js";

/** What shows that it is there, and the Debian package that brings it. */
export type Wanted = { readonly package: string; readonly server?: OfServer } & (
  | { readonly binary: string }
  | { readonly file: string }
  /** Of Debian's own Python. */
  | { readonly module: string }
);

/** A part of a server whose version can be chosen; `names` are what it is called in the chosen folder. */
export interface OfServer {
  readonly kind: ServerKind;
  readonly names: readonly [string, ...string[]];
}

/**
 * Everything that tests, lab and bench use of Debian. What is not in this list cannot be asked for, so
 * that all of it can be installed before the first test begins: whoever installs a package in the
 * middle of one stops everything else in that process, and keeps the disk from the servers under test.
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
  // Or a MySQL, which needs no program to make its first tables.
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

export type Thing = keyof typeof CATALOGUE;

/** What a program that locks with Curator needs on its class path. */
export const CURATOR_JARS = [
  ...(["curator-recipes.jar", "curator-framework.jar", "curator-client.jar"] as const),
  ...(["zookeeper.jar", "zookeeper-jute.jar", "guava.jar"] as const),
  ...(["slf4j-api.jar", "slf4j-nop.jar"] as const),
] as const satisfies readonly Thing[];

function jar(name: string, debianPackage: string) {
  return { file: `/usr/share/java/${name}.jar`, package: debianPackage };
}
