import { mkdirSync, writeFileSync } from "node:fs";
import { createConnection } from "node:net";
import { basename, dirname, join } from "node:path";
import { isChosen } from "../installing/chosen.js";
import { ensure } from "../installing/install.js";
import { fillWithEmptyData } from "../installing/template.js";
import { freePort } from "../running/ports.js";
import { ServerProcess } from "../running/process.js";

const PORT_TRIES = 3;
const PROBE_TIMEOUT_MS = 2_000;
// The first byte of the packet that greets a client, after its header.
const PROTOCOL_VERSION = 10;
const MYSQL = ["--mysqlx=OFF", "--secure-file-priv=", "--innodb-redo-log-capacity=32M"];
// From the first start: a log of another size is copied with the data, and each server that starts makes it anew.
const LOG_OF_MARIADB = "--innodb-log-file-size=16M";
// The default root user is for "localhost", which never matches with skip-name-resolve.
const ROOT_OF_MYSQL = [
  "CREATE USER IF NOT EXISTS root@'127.0.0.1';",
  "GRANT ALL ON *.* TO root@'127.0.0.1' WITH GRANT OPTION;",
];
// A kill loses nothing that the kernel has, and most tests are not about power cuts.
const HASTY = ["--innodb-flush-log-at-trx-commit=0", "--sync-binlog=0"];

export interface MariadbOptions {
  readonly port?: number;
  /** Writes reach the disk before they are acknowledged. */
  readonly durable?: boolean;
  /** With a binary log, which MySQL always has. */
  readonly binaryLog?: boolean;
  /** More of the server's own arguments, such as `["--default-time-zone=+05:00"]`. */
  readonly args?: readonly string[];
  /** Beside those of this process, such as what a LogGate needs. */
  readonly env?: Readonly<Record<string, string>>;
}

export interface MariadbServer extends AsyncDisposable {
  readonly port: number;
  /** The URL of root, who has no password, on the existing database `holdfast_test`. */
  readonly url: string;
  readonly pid: number;
  readonly folder: string;
  log(): string;
  stop(): Promise<void>;
  pause(): void;
  resume(): void;
  /** Comes back on the same port with its data. By default it is killed, not asked. */
  restart(options?: { signal?: NodeJS.Signals }): Promise<void>;
}

/** Whether MySQL's server was chosen instead of MariaDB's. */
export function isMysql(): boolean {
  return basename(ensure("mariadbd")) === "mysqld";
}

/** A part of the path of InnoDB's log, for a LogGate. */
export function innodbLog(): string {
  return isMysql() ? "#ib_redo" : "ib_logfile";
}

/**
 * A real MariaDB on a free port of 127.0.0.1, or the MySQL that was chosen. Installs MariaDB if the
 * machine has neither.
 */
export async function startMariadb(options: MariadbOptions = {}): Promise<MariadbServer> {
  const daemon = ensure("mariadbd");
  for (let attempt = 1; ; attempt++) {
    const port = options.port ?? (await freePort());
    try {
      return await startOn(daemon, port, options);
    } catch (error) {
      const taken = /Address already in use/.test(String(error));
      if (!taken || options.port !== undefined || attempt === PORT_TRIES) throw error;
    }
  }
}

async function startOn(
  daemon: string,
  port: number,
  { durable = false, binaryLog = false, args = [], env = {} }: MariadbOptions,
): Promise<MariadbServer> {
  const server = new ServerProcess({
    name: "mariadb",
    command: (folder) => [
      ...([daemon, ...common(daemon, folder)] as [string, ...string[]]),
      ...[`--port=${port}`, "--bind-address=127.0.0.1", `--socket=${join(folder, "socket")}`],
      ...[`--pid-file=${join(folder, "pid")}`, "--skip-name-resolve"],
      ...["--innodb-buffer-pool-size=64M", "--max-connections=300"],
      ...(isMysql() ? MYSQL : [LOG_OF_MARIADB]),
      ...(isMysql() ? [] : [binaryLog ? "--log-bin=binary" : "--skip-log-bin"]),
      ...(durable ? ["--innodb-flush-log-at-trx-commit=1"] : HASTY),
      `--init-file=${join(folder, "data", "init.sql")}`,
      ...args,
    ],
    env,
    probe: () => greet(port),
    readyWithinMs: 60_000,
  });
  try {
    for (const name of ["data", "temporary"]) mkdirSync(join(server.folder, name), { mode: 0o700 });
    const installer = ensure("mariadb-install-db");
    const how = isMysql()
      ? ["--initialize-insecure"]
      : ["--auth-root-authentication-method=normal", "--skip-test-db", LOG_OF_MARIADB];
    fillWithEmptyData(join(server.folder, "data"), [
      installer,
      ...common(daemon, server.folder),
      ...how,
    ]);
    const init = ["CREATE DATABASE IF NOT EXISTS holdfast_test CHARACTER SET utf8mb4;"];
    if (isMysql()) init.push(...ROOT_OF_MYSQL);
    writeFileSync(join(server.folder, "data", "init.sql"), `${init.join("\n")}\n`);
  } catch (error) {
    await server.stop();
    throw error;
  }
  await server.start();
  return {
    port,
    url: `mysql://root@127.0.0.1:${port}/holdfast_test`,
    get pid() {
      return server.pid;
    },
    folder: server.folder,
    log: () => server.log(),
    stop: () => server.stop(),
    pause: () => server.pause(),
    resume: () => server.resume(),
    restart: async ({ signal = "SIGKILL" } = {}) => {
      await server.end(signal);
      await server.start();
    },
    [Symbol.asyncDispose]: () => server.stop(),
  };
}

function common(daemon: string, folder: string): string[] {
  return [
    "--no-defaults",
    // It refuses to run as root unless it is told to.
    ...(process.getuid?.() === 0 ? ["--user=root"] : []),
    // One that lies where it was not built for finds its messages by this.
    ...(isChosen("mysql") ? [`--basedir=${dirname(dirname(daemon))}`] : []),
    `--datadir=${join(folder, "data")}`,
    // A starting server removes supposed leftovers from its folder for temporary tables. In a
    // shared folder these would be files of another server, which then crashes (signal 11).
    `--tmpdir=${join(folder, "temporary")}`,
  ];
}

/** Resolves when the server greets, which it does once it is ready. */
function greet(port: number): Promise<void> {
  return new Promise((resolve, reject) => {
    const socket = createConnection({ port, host: "127.0.0.1", timeout: PROBE_TIMEOUT_MS });
    const settle = (error: Error | null) => {
      socket.destroy();
      if (error === null) resolve();
      else reject(error);
    };
    socket.on("timeout", () => settle(new Error(`no answer within ${PROBE_TIMEOUT_MS} ms`)));
    socket.on("error", settle);
    socket.on("close", () => settle(new Error("the connection was closed")));
    socket.on("data", (chunk) =>
      settle(chunk[4] === PROTOCOL_VERSION ? null : new Error(String(chunk))),
    );
  });
}
