import { spawnSync } from "node:child_process";
import { mkdirSync } from "node:fs";
import { createConnection } from "node:net";
import { dirname, join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { ensure } from "../installing/install.js";
import { fillWithEmptyData } from "../installing/template.js";
import { freePort } from "../running/ports.js";
import { ServerProcess } from "../running/process.js";
import { serverUser } from "../running/unprivileged.js";

const PORT_TRIES = 3;
const PROBE_TIMEOUT_MS = 2_000;
const ENDING_TRIES = 250;

export interface PostgresOptions {
  readonly port?: number;
  /**
   * Writes reach the disk before they are acknowledged; slower, and right after a power cut too.
   */
  readonly durable?: boolean;
  /** More settings, such as `["max_connections=20"]`. */
  readonly settings?: readonly string[];
  /** Beside those of this process, such as what a LogGate needs. */
  readonly env?: Readonly<Record<string, string>>;
}

export interface PostgresServer extends AsyncDisposable {
  readonly port: number;
  /** The URL of the superuser, who has no password. */
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

/** A real PostgreSQL on a free port of 127.0.0.1. Installs it if the machine has none. */
export async function startPostgres(options: PostgresOptions = {}): Promise<PostgresServer> {
  const programs = dirname(ensure("initdb"));
  for (let attempt = 1; ; attempt++) {
    const port = options.port ?? (await freePort());
    try {
      return await startOn(programs, port, options);
    } catch (error) {
      const taken = /Address already in use/.test(String(error));
      if (!taken || options.port !== undefined || attempt === PORT_TRIES) throw error;
    }
  }
}

async function startOn(
  programs: string,
  port: number,
  { durable = false, settings = [], env = {} }: PostgresOptions,
): Promise<PostgresServer> {
  const user = serverUser("postgres");
  const all = [
    ...(durable ? [] : ["fsync=off", "full_page_writes=off"]),
    ...["max_connections=200", "shared_buffers=32MB", ...settings],
  ];
  const server = new ServerProcess({
    name: "postgres",
    command: (folder) =>
      user.wrap([
        join(programs, "postgres"),
        ...["-D", join(folder, "data"), "-p", String(port), "-k", join(folder, "sockets")],
        ...["-h", "127.0.0.1", ...all.flatMap((setting) => ["-c", setting])],
      ]),
    env,
    probe: () => greet(port),
    // Ends the sessions instead of waiting for them.
    stopSignal: "SIGINT",
  });
  try {
    for (const name of ["data", "sockets"]) {
      mkdirSync(join(server.folder, name), { mode: 0o700 });
      user.own(join(server.folder, name));
    }
    const data = join(server.folder, "data");
    const init = [join(programs, "initdb"), "-D", data] as const;
    const options = ["-U", "postgres", "-A", "trust", "--no-sync", "--no-locale", "-E", "UTF8"];
    fillWithEmptyData(data, user.wrap([...init, ...options]));
  } catch (error) {
    await server.stop();
    throw error;
  }
  await server.start();
  return {
    port,
    url: `postgres://postgres@127.0.0.1:${port}/postgres`,
    get pid() {
      return server.pid;
    },
    folder: server.folder,
    log: () => server.log(),
    stop: () => server.stop(),
    pause: () => server.pause(),
    resume: () => server.resume(),
    restart: async ({ signal = "SIGKILL" } = {}) => {
      const sessions = childrenOf(server.pid);
      await server.end(signal);
      await ended(sessions);
      await server.start();
    },
    [Symbol.asyncDispose]: () => server.stop(),
  };
}

/** Each session is a process in its own group, so ending the server's group does not end them. */
function childrenOf(pid: number): number[] {
  const { stdout } = spawnSync("ps", ["-A", "-o", "pid=,ppid="], { encoding: "utf8" });
  return [...stdout.matchAll(/(\d+)\s+(\d+)/g)]
    .filter(([, , parent]) => Number(parent) === pid)
    .map(([, child]) => Number(child));
}

/**
 * Waits for sessions that outlive their server, because they would keep the next server from
 * starting.
 */
async function ended(pids: readonly number[]): Promise<void> {
  for (const pid of pids) {
    for (let tries = 0; tries < ENDING_TRIES && killed(pid); tries++) await sleep(20);
  }
}

/** Whether there was still something to kill. */
function killed(pid: number): boolean {
  try {
    return process.kill(pid, "SIGKILL");
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== "ESRCH") throw error;
    return false;
  }
}

/** Resolves when the server accepts a session. While it starts, it answers with an error. */
export function greet(port: number): Promise<void> {
  return new Promise((resolve, reject) => {
    const socket = createConnection({ port, host: "127.0.0.1", timeout: PROBE_TIMEOUT_MS });
    const settle = (error: Error | null) => {
      socket.destroy();
      if (error === null) resolve();
      else reject(error);
    };
    const words = Buffer.from("user\0postgres\0database\0postgres\0\0");
    const head = Buffer.alloc(8);
    head.writeInt32BE(head.length + words.length, 0);
    head.writeInt32BE(0x0003_0000, 4);
    socket.on("connect", () => socket.write(Buffer.concat([head, words])));
    socket.on("timeout", () => settle(new Error(`no answer within ${PROBE_TIMEOUT_MS} ms`)));
    socket.on("error", settle);
    socket.on("close", () => settle(new Error("the connection was closed")));
    socket.on("data", (chunk) => settle(chunk[0] === 0x52 ? null : new Error(String(chunk))));
  });
}
