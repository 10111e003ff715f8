import { createConnection } from "node:net";
import { ensure } from "../installing/install.js";
import { freePort } from "../running/ports.js";
import { ServerProcess } from "../running/process.js";

// A port that was free a moment ago may be taken when the server asks for it.
const PORT_TRIES = 3;
const PROBE_TIMEOUT_MS = 2_000;

export interface RedisOptions {
  readonly port?: number;
  /** More of redis-server's own arguments, such as `["--replicaof", "127.0.0.1 7000"]`. */
  readonly args?: readonly string[];
  /** Environment variables, for example those of a ShiftedClock. */
  readonly env?: Readonly<Record<string, string>>;
}

export interface RedisServer extends AsyncDisposable {
  readonly port: number;
  readonly url: string;
  /** Another one after a restart. */
  readonly pid: number;
  readonly folder: string;
  log(): string;
  stop(): Promise<void>;
  pause(): void;
  resume(): void;
  /** Comes back on the same port, empty: nothing is saved. By default it is killed, not asked. */
  restart(options?: { signal?: NodeJS.Signals }): Promise<void>;
}

/** A real Redis on a free port of 127.0.0.1. Installs it if the machine has none. */
export async function startRedis(options: RedisOptions = {}): Promise<RedisServer> {
  const binary = ensure("redis-server");
  for (let attempt = 1; ; attempt++) {
    const port = options.port ?? (await freePort());
    try {
      return await startOn(binary, port, options);
    } catch (error) {
      const taken = /Address already in use/.test(String(error));
      if (!taken || options.port !== undefined || attempt === PORT_TRIES) throw error;
    }
  }
}

async function startOn(
  binary: string,
  port: number,
  { args: more = [], env = {} }: RedisOptions,
): Promise<RedisServer> {
  const server: ServerProcess = new ServerProcess({
    name: "redis",
    command: (folder) => [binary, ...argumentsFor(port, folder), ...more],
    probe: () => answers(port, server.pid),
    env,
  });
  await server.start();
  return {
    port,
    url: `redis://127.0.0.1:${port}`,
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

function argumentsFor(port: number, folder: string): string[] {
  return [
    ["--port", String(port)],
    ["--bind", "127.0.0.1"],
    ["--dir", folder],
    ["--save", ""],
    ["--appendonly", "no"],
    // Tests age and freeze servers with DEBUG.
    ["--enable-debug-command", "yes"],
  ].flat();
}

/** Resolves when this server answers PONG. Another server may have taken the port first. */
function answers(port: number, pid: number): Promise<void> {
  return new Promise((resolve, reject) => {
    const socket = createConnection({ port, host: "127.0.0.1", timeout: PROBE_TIMEOUT_MS });
    const settle = (error: Error | null) => {
      socket.destroy();
      if (error === null) resolve();
      else reject(error);
    };
    let heard = "";
    socket.on("connect", () => socket.write("PING\r\nINFO server\r\n"));
    socket.on("timeout", () => settle(new Error(`no answer within ${PROBE_TIMEOUT_MS} ms`)));
    socket.on("error", settle);
    // A replica without its primary answers with an error, which is also an answer.
    socket.on("data", (chunk) => {
      heard += String(chunk);
      const [, id] = /process_id:(\d+)/.exec(heard) ?? [];
      if (!/^(\+PONG|-MASTERDOWN)/.test(heard)) settle(new Error(heard));
      else if (id !== undefined) {
        settle(Number(id) === pid ? null : new Error(`process ${id} answers on port ${port}`));
      }
    });
  });
}
