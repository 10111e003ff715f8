import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { ensure } from "../installing/install.js";
import { freePort } from "../running/ports.js";
import { ServerProcess } from "../running/process.js";
import { serverUser } from "../running/unprivileged.js";
import { greet } from "./postgres.js";

export interface PgbouncerOptions {
  /** The PostgreSQL behind it. */
  readonly target: number;
  /** `transaction` lends a session for each transaction; `session` until the client leaves. */
  readonly mode?: "transaction" | "session";
  readonly poolSize?: number;
}

export interface PgbouncerServer extends AsyncDisposable {
  readonly port: number;
  readonly url: string;
  readonly pid: number;
  log(): string;
  stop(): Promise<void>;
  restart(): Promise<void>;
}

/** A real PgBouncer before a PostgreSQL of these tests. Installs it if the machine has none. */
export async function startPgbouncer({
  target,
  mode = "transaction",
  poolSize = 20,
}: PgbouncerOptions): Promise<PgbouncerServer> {
  const binary = ensure("pgbouncer");
  const port = await freePort();
  const user = serverUser("postgres");
  const server = new ServerProcess({
    name: "pgbouncer",
    command: (folder) => user.wrap([binary, join(folder, "pgbouncer.ini")]),
    probe: () => greet(port),
    stopSignal: "SIGTERM",
  });
  writeFileSync(join(server.folder, "pgbouncer.ini"), settings(port, target, mode, poolSize));
  await server.start();
  return {
    port,
    url: `postgres://postgres@127.0.0.1:${port}/postgres`,
    get pid() {
      return server.pid;
    },
    log: () => server.log(),
    stop: () => server.stop(),
    restart: async () => {
      await server.end("SIGKILL");
      await server.start();
    },
    [Symbol.asyncDispose]: () => server.stop(),
  };
}

function settings(port: number, target: number, mode: string, poolSize: number): string {
  return `[databases]
* = host=127.0.0.1 port=${target} user=postgres
[pgbouncer]
listen_addr = 127.0.0.1
listen_port = ${port}
unix_socket_dir =
auth_type = any
pool_mode = ${mode}
default_pool_size = ${poolSize}
max_client_conn = 500
ignore_startup_parameters = extra_float_digits
`;
}
