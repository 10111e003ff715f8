import { AsyncLocalStorage } from "node:async_hooks";
import { randomBytes } from "node:crypto";
import { describe, it } from "node:test";
import { Relay, type ZooKeeperServer } from "@holdfast/servers";
import { checkLaws, type Excuse, type Harness } from "../../../../conformance/index.js";
import { systemClock } from "../../../../core/runtime/clock.js";
import type { Engine } from "../../../../engine.js";
import { ZOOKEEPER_TRAITS, ZookeeperEngine } from "../../engine.js";
import { resolveZookeeper, type ZookeeperEngineOptions } from "../../options.js";
import { pathOf } from "../../paths.js";
import { ZOOKEEPER_TTL_TRAITS, ZookeeperTtlEngine } from "../../ttl/engine.js";
import { Session } from "../../wire/session.js";
import { GarblingRelay } from "./garbling-relay.fixture.js";
import { trueRecord, trueSessions } from "./truth.fixture.js";

const OPEN_MS = 10_000;
const ADMIN_MS = 60_000;

/** The servers of a test file. They are known only when they run. */
export interface Servers {
  hosts: string;
  members: readonly ZooKeeperServer[];
  restart(): Promise<void>;
}

type More = Omit<ZookeeperEngineOptions, "hosts" | "chroot">;

interface Wire extends AsyncDisposable {
  readonly port: number;
}

/** A harness that gives each law a chroot of its own, so that several laws run at a time. */
export function harness(servers: Servers, more: More = {}, excuses: Excuse[] = []): Harness {
  const relays = new Map<Engine, readonly Relay[]>();
  const chroots = new AsyncLocalStorage<string>();
  const chroot = () => chroots.getStore() ?? "/laws";
  const open = async <W extends Wire>(start: (port: number) => Promise<W>) => {
    const wires = await Promise.all(servers.members.map(({ port }) => start(port)));
    const hosts = wires.map(({ port }) => `127.0.0.1:${port}`).join(",");
    const terms = resolveZookeeper({ hosts, chroot: chroot(), ...more });
    const engine =
      terms.hold === "ttl" ? new ZookeeperTtlEngine(terms) : new ZookeeperEngine(terms);
    const close = engine.close.bind(engine);
    engine.close = async () => {
      await close();
      await Promise.all(wires.map((wire) => wire[Symbol.asyncDispose]()));
      relays.delete(engine);
    };
    await engine.open(OPEN_MS);
    return { engine, wires };
  };
  const openRelayed = async () => {
    const { engine, wires } = await open((port) => Relay.start(port));
    relays.set(engine, wires);
    return { engine, wires };
  };
  return {
    name: "zookeeper",
    excuses,
    ...(more.hold === "ttl" ? judging(relays) : { traits: ZOOKEEPER_TRAITS }),
    get url() {
      return `zookeeper://${servers.hosts}${chroot()}?hold=${more.hold ?? "session"}`;
    },
    open: async () => (await openRelayed()).engine,
    // The nodes of the last law are below another chroot, and end with their sessions.
    reset: () => chroots.enterWith(`/laws-${randomBytes(6).toString("hex")}`),
    sever: (engine) => {
      const between = relays.get(engine)!;
      for (const relay of between) relay.cut();
      return () => {
        for (const relay of between) relay.mend();
      };
    },
    restart: () => servers.restart(),
    truth: async (resource) => {
      const { location } = resolveZookeeper({ hosts: "h", chroot: chroot(), ...more });
      const { members } = servers;
      const hosts = members.map(({ port }) => ({ host: "127.0.0.1", port }));
      const admin = new Session({ hosts, timeoutMs: ADMIN_MS, tls: null, digest: null }, () => {});
      try {
        const path = pathOf(location, resource);
        return more.hold === "ttl"
          ? await trueRecord(admin, path)
          : await trueSessions(admin, members, path);
      } finally {
        await admin.close();
      }
    },
    relayed: async () => {
      const { engine, wires } = await openRelayed();
      return {
        engine,
        hold: () => {
          for (const relay of wires) relay.hold();
        },
        deliver: () => {
          for (const relay of wires) relay.deliver();
        },
      };
    },
    misanswered: async () => {
      const { engine, wires } = await open((port) => GarblingRelay.start(port));
      const answerWith = (shape: string | null) => {
        for (const relay of wires) relay.answerWith(shape);
      };
      return { engine, shapes: GarblingRelay.shapes, answerWith };
    },
  };
}

/** Registers the laws. Most of them wait for a session to end, so several run at a time. */
export function registerLaws(name: string, laws: Harness, atATime: number): void {
  const all: [title: string, run: () => Promise<void>][] = [];
  checkLaws(laws, (title, run) => all.push([title, run]));
  // These laws look at what keeps this process alive, or they restart or overload the servers.
  const isAlone = ([title]: (typeof all)[number]) => /^(L5\.1[12]|L6\.10|L10|L12)\b/.test(title);
  describe(`${name}, one at a time`, () => {
    for (const [title, run] of all.filter(isAlone)) it(title, run);
  });
  describe(name, { concurrency: atATime }, () => {
    for (const [title, run] of all.filter((law) => !isAlone(law))) it(title, run);
  });
}

/** Observers judge records, so time passes for all open engines. */
function judging(engines: ReadonlyMap<Engine, unknown>) {
  const age = async (resource: string, ms: number) => {
    const call = { startedAt: systemClock.now(), timeoutMs: OPEN_MS, order: 1 };
    for (const engine of engines.keys()) {
      await (engine as ZookeeperTtlEngine).age(resource, ms, call).catch(() => {});
    }
  };
  return { traits: ZOOKEEPER_TTL_TRAITS, queue: false, age, ageTombstones: age };
}
