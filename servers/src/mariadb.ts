import { mkdirSync, writeFileSync } from "node:fs";
import { createConnection } from "node:net";
import { join } from "node:path";
import { ensure } from "./install.js";
import { freePort } from "./ports.js";
import { ServerProcess } from "./process.js";
import { runOnce } from "./unprivileged.js";

const PORT_TRIES = 3;
const PROBE_TIMEOUT_MS = 500;
// The first byte of the packet that greets a client, after its header.
const PROTOCOL_VERSION = 10;

export interface MariadbOptions {
  readonly port?: number;
  /** Writes reach the disk before they are acknowledged. */
  readonly durable?: boolean;
  /** More of mariadbd's own arguments, such as `["--default-time-zone=+05:00"]`. */
  readonly args?: readonly string[];
  /** Beside those of this process, such as what a LogGate needs. */
  readonly env?: Readonly<Record<string, string>>;
}

export interface MariadbServer extends AsyncDisposable {
  readonly port: number;
  /** Of root, who needs no password, on the database `holdfast_test`, which is there. */
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

/** A real MariaDB on a free port of 127.0.0.1. Installs it if the machine has none. */
export async function startMariadb(options: MariadbOptions = {}): Promise<MariadbServer> {
  const daemon = ensure("mariadbd");
  const installer = ensure("mariadb-install-db");
  for (let attempt = 1; ; attempt++) {
    const port = options.port ?? (await freePort());
    try {
      return await startOn(daemon, installer, port, options);
    } catch (error) {
      const taken = /Address already in use/.test(String(error));
      if (!taken || options.port !== undefined || attempt === PORT_TRIES) throw error;
    }
  }
}

async function startOn(
  daemon: string,
  installer: string,
  port: number,
  { durable = false, args = [], env = {} }: MariadbOptions,
): Promise<MariadbServer> {
  // It refuses to run as root unless it is told to.
  const asRoot = process.getuid?.() === 0 ? ["--user=root"] : [];
  // A server that starts removes what it takes for leftovers from its folder for temporary tables: in
  // a common one these would be another server's, which dies of it (signal 11).
  const own = (folder: string) => [
    `--datadir=${join(folder, "data")}`,
    `--tmpdir=${join(folder, "temporary")}`,
  ];
  const server = new ServerProcess({
    name: "mariadb",
    command: (folder) => [
      ...([daemon, "--no-defaults", ...asRoot, ...own(folder)] as [string, ...string[]]),
      ...[`--port=${port}`, "--bind-address=127.0.0.1", `--socket=${join(folder, "socket")}`],
      ...[`--pid-file=${join(folder, "pid")}`, "--skip-name-resolve", "--skip-log-bin"],
      ...["--innodb-buffer-pool-size=64M", "--innodb-log-file-size=16M", "--max-connections=300"],
      `--innodb-flush-log-at-trx-commit=${durable ? 1 : 0}`,
      `--init-file=${join(folder, "data", "init.sql")}`,
      ...args,
    ],
    env,
    probe: () => greet(port),
    readyWithinMs: 30_000,
  });
  try {
    mkdirSync(join(server.folder, "temporary"));
    const how = ["--auth-root-authentication-method=normal", "--skip-test-db"];
    const command = [installer, "--no-defaults", ...asRoot, ...own(server.folder), ...how];
    runOnce(command as [string, ...string[]], server.folder);
    const init = "CREATE DATABASE IF NOT EXISTS holdfast_test CHARACTER SET utf8mb4;\n";
    writeFileSync(join(server.folder, "data", "init.sql"), init);
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
