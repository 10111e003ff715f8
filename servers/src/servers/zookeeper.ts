import { writeFileSync } from "node:fs";
import { createConnection } from "node:net";
import { dirname, join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { classArchive } from "../installing/class-archive.js";
import { ensure } from "../installing/install.js";
import { freePorts } from "../running/ports.js";
import { ServerProcess } from "../running/process.js";

const MAIN = "org.apache.zookeeper.server.quorum.QuorumPeerMain";
const MEMBERS = 3;
const PORT_TRIES = 3;
const PROBE_TIMEOUT_MS = 1_000;
// Generous, because a busy server is not a hanging one.
const ANSWER_MS = 5_000;
const READY_MS = 60_000;
const LEADER_MS = 60_000;
const LOOK_EVERY_MS = 50;
// Short, so that sessions end soon after their timeout.
const TICK_MS = 50;
// How long one member waits for another, when it joins and later. A member that joins while the
// leader hangs does not take part in the next election before this is over; until then there is no
// quorum.
const PATIENCE_MS = 2_000;

const JAVA = [
  "-Xmx192m",
  "-XX:+UseSerialGC",
  "-XX:TieredStopAtLevel=1",
  "-Dzookeeper.forceSync=no",
  "-Dznode.container.checkIntervalMs=1000",
  "-Dorg.slf4j.simpleLogger.defaultLogLevel=warn",
];

export interface ZooKeeperOptions {
  /** The unit of the servers' own timeouts; sessions end at a multiple of it. */
  readonly tickMs?: number;
  /** More lines for zoo.cfg. */
  readonly config?: readonly string[];
  /** More arguments for java. */
  readonly java?: readonly string[];
}

export interface EnsembleOptions extends ZooKeeperOptions {
  /** The port by which one member (0, 1, 2) reaches another; a relay's, to come between them. */
  readonly between?: (from: number, to: number, port: number) => Promise<number>;
}

export interface ZooKeeperServer extends AsyncDisposable {
  readonly port: number;
  /** "127.0.0.1:port" */
  readonly hosts: string;
  readonly url: string;
  /** Another one after a restart. */
  readonly pid: number;
  log(): string;
  /** One of ZooKeeper's four-letter commands, such as mntr or ruok. */
  command(word: string): Promise<string>;
  /** A number in the answer of mntr. */
  metric(name: string): Promise<number>;
  stop(): Promise<void>;
  pause(): void;
  resume(): void;
  kill(): Promise<void>;
  /** Starts again what was killed; what it had acknowledged is still there. */
  start(): Promise<void>;
  restart(): Promise<void>;
}

export interface ZooKeeperEnsemble extends AsyncDisposable {
  readonly hosts: string;
  readonly url: string;
  readonly members: readonly ZooKeeperServer[];
  /** The leader. Waits until there is one. */
  leader(): Promise<ZooKeeperServer>;
  /**
   * Waits until every member leads or follows: then any one of them may fail, and a majority is
   * left.
   */
  whole(): Promise<void>;
  stop(): Promise<void>;
}

/** A real ZooKeeper on a free port of 127.0.0.1. Installs it if the machine has none. */
export async function startZooKeeper(options: ZooKeeperOptions = {}): Promise<ZooKeeperServer> {
  const java = await javaArguments(options.java);
  return withPorts(1, async ([port = 0]) => {
    const { server, process } = member(port, 1, [], { ...options, java });
    await process.start();
    return server;
  });
}

/** Three servers that elect a leader. */
export async function startZooKeeperEnsemble(
  options: EnsembleOptions = {},
): Promise<ZooKeeperEnsemble> {
  const java = await javaArguments(options.java);
  return withPorts(MEMBERS * 3, async (ports) => {
    const numbers = Array.from({ length: MEMBERS }, (_, i) => i);
    const peer = async (from: number, to: number) => {
      const [own, election] = [ports[to * 3 + 1]!, ports[to * 3 + 2]];
      const quorum = from === to ? own : ((await options.between?.(from, to, own)) ?? own);
      return `server.${to + 1}=127.0.0.1:${quorum}:${election}`;
    };
    const peers = await Promise.all(
      numbers.map((from) => Promise.all(numbers.map((to) => peer(from, to)))),
    );
    const all = numbers.map((i) => member(ports[i * 3]!, i + 1, peers[i]!, { ...options, java }));
    const stop = async () => void (await Promise.all(all.map(({ process }) => process.stop())));
    const started = await Promise.allSettled(all.map(({ process }) => process.start()));
    const failed = started.find((outcome) => outcome.status === "rejected");
    if (failed !== undefined) {
      await stop();
      throw failed.reason;
    }
    const members = all.map(({ server }) => server);
    const hosts = members.map((one) => one.hosts).join(",");
    const leader = () => leaderOf(members);
    const whole = () => allServe(members);
    return {
      ...{ hosts, url: `zookeeper://${hosts}`, members, leader, whole, stop },
      [Symbol.asyncDispose]: stop,
    };
  });
}

/** A port that was free a moment ago may be taken when the server asks for it. */
async function withPorts<T>(count: number, start: (ports: number[]) => Promise<T>): Promise<T> {
  for (let attempt = 1; ; attempt++) {
    try {
      return await start(await freePorts(count));
    } catch (error) {
      if (!/Address already in use/.test(String(error)) || attempt === PORT_TRIES) throw error;
    }
  }
}

function member(
  port: number,
  id: number,
  peers: readonly string[],
  { tickMs = TICK_MS, config = [], java = [] }: ZooKeeperOptions,
  stopSignal: NodeJS.Signals = "SIGKILL",
): { server: ZooKeeperServer; process: ServerProcess } {
  const process = new ServerProcess({
    name: "zookeeper",
    command: (folder) => {
      const path = join(folder, "zoo.cfg");
      const lines = [...configuration(port, folder, tickMs), ...peers, ...config];
      writeFileSync(path, `${lines.join("\n")}\n`);
      writeFileSync(join(folder, "myid"), String(id));
      return [ensure("java"), ...java, MAIN, path];
    },
    // A member without a quorum answers this with a refusal.
    probe: async () => {
      const answer = await ask(port, "srvr", PROBE_TIMEOUT_MS);
      if (!/^Mode: /m.test(answer)) throw new Error(answer);
    },
    readyWithinMs: READY_MS,
    stopSignal,
  });
  const hosts = `127.0.0.1:${port}`;
  const stop = () => process.stop();
  const kill = () => process.end("SIGKILL");
  const server: ZooKeeperServer = {
    ...{ port, hosts, url: `zookeeper://${hosts}` },
    get pid() {
      return process.pid;
    },
    log: () => process.log(),
    command: (word) => ask(port, word, ANSWER_MS),
    metric: async (name) => {
      const line = new RegExp(`^${name}\\t(\\S+)$`, "m").exec(await ask(port, "mntr", ANSWER_MS));
      if (line === null) throw new Error(`mntr has no ${name}`);
      return Number(line[1]);
    },
    ...{ stop, pause: () => process.pause(), resume: () => process.resume(), kill },
    start: () => process.start(),
    restart: async () => {
      await kill();
      await process.start();
    },
    [Symbol.asyncDispose]: stop,
  };
  return { server, process };
}

function configuration(port: number, folder: string, tickMs: number): string[] {
  return [
    `dataDir=${folder}`,
    `clientPort=${port}`,
    "clientPortAddress=127.0.0.1",
    `tickTime=${tickMs}`,
    `minSessionTimeout=${tickMs * 2}`,
    "maxSessionTimeout=3600000",
    // In ticks.
    `initLimit=${Math.ceil(PATIENCE_MS / tickMs)}`,
    `syncLimit=${Math.ceil(PATIENCE_MS / tickMs)}`,
    "maxClientCnxns=0",
    "admin.enableServer=false",
    "4lw.commands.whitelist=*",
  ];
}

/** All that java is told before the name of the program. */
async function javaArguments(more: readonly string[] = []): Promise<string[]> {
  const server = ensure("zookeeper-server.jar");
  // Debian's jar names its neighbours by their usual place, where another version has another
  // protocol.
  const protocol = join(dirname(server), "zookeeper-jute.jar");
  const jars = [protocol, server, ensure("slf4j-simple.jar")];
  const plain = [...JAVA, "-cp", jars.join(":")];
  const archive = await classArchive([ensure("java"), ...jars], (args) => playOnce(args, plain));
  return [...archive, ...JAVA, ...more, "-cp", jars.join(":")];
}

/** A server that starts, answers, and ends in order. */
async function playOnce(args: readonly string[], plain: readonly string[]): Promise<void> {
  await withPorts(1, async ([port = 0]) => {
    const { process } = member(port, 1, [], { java: [...args, ...plain] }, "SIGTERM");
    await process.start();
    await process.stop();
  });
}

async function leaderOf(members: readonly ZooKeeperServer[]): Promise<ZooKeeperServer> {
  const at = await look("no leader", async () => {
    const found = (await modes(members)).indexOf("leader");
    return found < 0 ? null : found;
  });
  return members[at]!;
}

async function allServe(members: readonly ZooKeeperServer[]): Promise<void> {
  await look("not every member serves", async () => {
    const said = await modes(members);
    return said.includes("leader") && said.every((mode) => mode !== "") ? true : null;
  });
}

/** What each member says that it is; "" for one that hangs, or has no leader yet. */
function modes(members: readonly ZooKeeperServer[]): Promise<string[]> {
  return Promise.all(
    members.map(async (one) => {
      const said = await ask(one.port, "srvr", PROBE_TIMEOUT_MS).catch(() => "");
      return /^Mode: (\w+)/m.exec(said)?.[1] ?? "";
    }),
  );
}

async function look<T>(otherwise: string, see: () => Promise<T | null>): Promise<T> {
  const deadline = performance.now() + LEADER_MS;
  for (;;) {
    const seen = await see();
    if (seen !== null) return seen;
    if (performance.now() > deadline) throw new Error(`${otherwise} within ${LEADER_MS} ms`);
    await sleep(LOOK_EVERY_MS);
  }
}

function ask(port: number, word: string, withinMs: number): Promise<string> {
  return new Promise((resolve, reject) => {
    const socket = createConnection({ port, host: "127.0.0.1" });
    let answer = "";
    // Idleness is not enough: a paused server accepts, and never says anything.
    socket.setTimeout(withinMs, () => socket.destroy(new Error("no answer")));
    socket.on("connect", () => socket.write(word));
    socket.on("data", (bytes) => {
      answer += bytes;
    });
    socket.on("error", reject);
    socket.on("close", () => (answer === "" ? reject(new Error("no answer")) : resolve(answer)));
  });
}
