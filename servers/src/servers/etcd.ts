import { request as httpRequest } from "node:http";
import { request as httpsRequest } from "node:https";
import { setTimeout as sleep } from "node:timers/promises";
import { ensure } from "../installing/install.js";
import { freePorts } from "../running/ports.js";
import { ServerProcess } from "../running/process.js";

// A port that was free a moment ago may be taken when the server asks for it.
const PORT_TRIES = 3;
const PROBE_TIMEOUT_MS = 2_000;
const LEADER_MS = 60_000;

export interface EtcdOptions {
  /** More of etcd's own arguments. */
  readonly args?: readonly string[];
  /** The server's certificate files. Clients then use TLS. */
  readonly tls?: { readonly certFile: string; readonly keyFile: string };
}

export interface EtcdServer extends AsyncDisposable {
  readonly port: number;
  readonly url: string;
  /** Another one after a restart. */
  readonly pid: number;
  readonly folder: string;
  log(): string;
  stop(): Promise<void>;
  pause(): void;
  resume(): void;
  /** Ends it and keeps its data; `start` brings it back. By default it is killed, not asked. */
  kill(signal?: NodeJS.Signals): Promise<void>;
  start(): Promise<void>;
  /** Comes back on the same port with its data. By default it is killed, not asked. */
  restart(options?: { signal?: NodeJS.Signals }): Promise<void>;
}

export interface EtcdCluster extends AsyncDisposable {
  readonly members: readonly EtcdServer[];
  /** Names all members. */
  readonly url: string;
  /** The leader as the other members see it. Waits for an election. */
  leader(): Promise<EtcdServer>;
  stop(): Promise<void>;
}

/** A real etcd on a free port of 127.0.0.1. Installs it if the machine has none. */
export async function startEtcd(options: EtcdOptions = {}): Promise<EtcdServer> {
  const { members } = await startMembers(1, options);
  return members[0]!;
}

/** Members of one cluster, as processes of one machine. */
export async function startEtcdCluster(size = 3, options: EtcdOptions = {}): Promise<EtcdCluster> {
  return startMembers(size, options);
}

async function startMembers(size: number, options: EtcdOptions): Promise<EtcdCluster> {
  const binary = ensure("etcd");
  for (let attempt = 1; ; attempt++) {
    const ports = await freePorts(2 * size);
    const members = Array.from({ length: size }, (_, i) => member(binary, ports, i, options));
    try {
      await all(members.map((one) => one.start()));
      return cluster(members);
    } catch (error) {
      await Promise.all(members.map((one) => one.stop()));
      const taken = /address already in use/.test(String(error));
      if (!taken || attempt === PORT_TRIES) throw error;
    }
  }
}

function cluster(members: readonly EtcdServer[]): EtcdCluster {
  const stop = async () => void (await Promise.all(members.map((one) => one.stop())));
  return {
    members,
    url: `etcd://${members.map(({ port }) => `127.0.0.1:${port}`).join(",")}`,
    leader: () => leaderOf(members),
    stop,
    [Symbol.asyncDispose]: stop,
  };
}

/** Client ports come first, peer ports after them. */
function member(
  binary: string,
  ports: readonly number[],
  index: number,
  { args = [], tls }: EtcdOptions,
): EtcdServer {
  const size = ports.length / 2;
  const port = ports[index]!;
  const scheme = tls === undefined ? "http" : "https";
  const peer = (i: number) => `http://127.0.0.1:${ports[size + i]}`;
  const everyone = Array.from({ length: size }, (_, i) => `m${i}=${peer(i)}`).join(",");
  const flags = (folder: string) => [
    ...["--name", `m${index}`, "--data-dir", `${folder}/data`],
    ...["--listen-client-urls", `${scheme}://127.0.0.1:${port}`],
    ...["--advertise-client-urls", `${scheme}://127.0.0.1:${port}`],
    ...["--listen-peer-urls", peer(index), "--initial-advertise-peer-urls", peer(index)],
    ...["--initial-cluster", everyone, "--initial-cluster-state", "new"],
    ...["--heartbeat-interval", "50", "--election-timeout", "500", "--unsafe-no-fsync"],
    ...["--logger", "zap"],
    ...(tls === undefined ? [] : ["--cert-file", tls.certFile, "--key-file", tls.keyFile]),
  ];
  const server = new ServerProcess({
    name: "etcd",
    command: (folder) => [binary, ...flags(folder), ...args],
    probe: async () => void (await ask(port, "/health", null, tls !== undefined)),
    // A leader that is asked to stop first looks for a successor. That takes seconds if all members
    // stop at once.
    stopSignal: "SIGKILL",
  });
  return {
    port,
    url: `etcd://127.0.0.1:${port}${tls === undefined ? "" : "?tls=true"}`,
    get pid() {
      return server.pid;
    },
    folder: server.folder,
    log: () => server.log(),
    stop: () => server.stop(),
    pause: () => server.pause(),
    resume: () => server.resume(),
    kill: (signal = "SIGKILL") => server.end(signal),
    start: () => server.start(),
    restart: async ({ signal = "SIGKILL" } = {}) => {
      await server.end(signal);
      await server.start();
    },
    [Symbol.asyncDispose]: () => server.stop(),
  };
}

interface Status {
  readonly header: { readonly member_id: string };
  readonly leader?: string;
}

async function leaderOf(members: readonly EtcdServer[]): Promise<EtcdServer> {
  const deadline = performance.now() + LEADER_MS;
  for (;;) {
    const asked = members.map(({ port }) => ask(port, "/v3/maintenance/status", {}, false));
    const answers = (await Promise.allSettled(asked)).map((answer) =>
      answer.status === "fulfilled" ? (answer.value as Status) : null,
    );
    // A member without contact may still believe that it leads. So the majority decides.
    const votes = (id: string) => answers.filter((answer) => answer?.leader === id).length;
    const at = answers.findIndex(
      (answer) => answer !== null && votes(answer.header.member_id) * 2 > members.length,
    );
    if (at >= 0) return members[at]!;
    if (performance.now() > deadline) throw new Error(`no leader within ${LEADER_MS} ms`);
    await sleep(50);
  }
}

/** One answer of the JSON gateway, or of a plain page without a body to send. */
function ask(port: number, path: string, body: object | null, tls: boolean): Promise<unknown> {
  return new Promise((resolve, reject) => {
    const options = { host: "127.0.0.1", port, path, agent: false, timeout: PROBE_TIMEOUT_MS };
    const method = body === null ? "GET" : "POST";
    const request = tls
      ? httpsRequest({ ...options, method, rejectUnauthorized: false })
      : httpRequest({ ...options, method });
    request.on("error", reject);
    request.on("timeout", () => request.destroy(new Error("no answer")));
    request.on("response", (response) => {
      let text = "";
      response.setEncoding("utf8");
      response.on("data", (chunk: string) => {
        text += chunk;
      });
      response.on("error", reject);
      response.on("end", () => {
        if (response.statusCode !== 200) reject(new Error(`${response.statusCode}: ${text}`));
        else resolve(JSON.parse(text));
      });
    });
    request.end(body === null ? undefined : JSON.stringify(body));
  });
}

/**
 * Like Promise.all, but waits for all even if one fails: a server that is still starting cannot be
 * stopped.
 */
async function all<T>(works: readonly Promise<T>[]): Promise<T[]> {
  await Promise.allSettled(works);
  return Promise.all(works);
}
