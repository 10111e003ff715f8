// Engines that differ from the memory engine in ways that the contract allows. The laws must pass.
import { once } from "node:events";
import { type AddressInfo, createConnection, createServer, type Socket } from "node:net";
import { after, before, test } from "node:test";
import { systemClock } from "../core/runtime/clock.js";
import type { Engine } from "../engine.js";
import { settleEach } from "../engine-kit/settle-each.js";
import { MEMORY_TRAITS } from "../engines/memory/engine.js";
import { findLaw } from "./index.js";
import { elapse } from "./timing.js";
import { altered } from "./wrong-engines/altered.js";
import { memoryHarness } from "./wrong-engines/memory-harness.js";

/** How long a backend may need for its first answer after a restart: an election, a clock. */
const SLOW_START_MS = 3_200;

const server = createServer((socket) => void socket.write("hello"));
before(async () => {
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
});
after(() => server.close());

/** Answers batches entry by entry, also when it was closed. */
function failsEachEntry(inner: Engine): Engine {
  const batch = <R, A>(refs: readonly R[], ask: (ref: readonly R[]) => Promise<readonly A[]>) =>
    settleEach(refs, async (ref) => (await ask([ref]))[0]!);
  return altered(inner, {
    renew: (refs, call) => batch(refs, (one) => inner.renew(one, call)),
    release: (refs, call) => batch(refs, (one) => inner.release(one, call)),
    queue: {
      ...inner.queue!,
      heartbeat: (refs, call) => batch(refs, (one) => inner.queue!.heartbeat(one, call)),
    },
  });
}

/** Opens its connection at its first call, and keeps it until it is closed. */
function connectsLate(inner: Engine): Engine {
  let socket: Socket | null = null;
  const connect = async () => {
    if (socket !== null) return;
    const { port } = server.address() as AddressInfo;
    socket = createConnection({ port, host: "127.0.0.1" });
    // From then on the socket of the server is there, too.
    await once(socket, "data");
  };
  return altered(inner, {
    tryAcquire: async (claim, call) => {
      await connect();
      return inner.tryAcquire(claim, call);
    },
    inspect: async (resource, call) => {
      await connect();
      return inner.inspect(resource, call);
    },
    queue: {
      ...inner.queue!,
      enqueue: async (claim, call) => {
        await connect();
        return inner.queue!.enqueue(claim, call);
      },
    },
    close: async () => {
      socket?.destroy();
      await inner.close();
    },
  });
}

test("L11.1 accepts failed entries of a batch from a closed engine", () =>
  findLaw("L11.1").run(memoryHarness(failsEachEntry)));

for (const law of ["L10.2", "L10.7", "L10.8", "L12.4"]) {
  test(`${law} accepts an engine that connects at its first call`, () =>
    findLaw(law).run(memoryHarness(connectsLate)));
}

test("L6.10 accepts a backend that takes seconds to answer after a restart", async () => {
  const traits = { ...MEMORY_TRAITS, fencing: "durable" } as const;
  let readyAt = 0;
  const harness = memoryHarness((inner) =>
    altered(inner, {
      traits,
      async tryAcquire(claim, call) {
        await elapse(Math.max(0, readyAt - systemClock.now()));
        return inner.tryAcquire(claim, call);
      },
    }),
  );
  const restart = () => {
    readyAt = systemClock.now() + SLOW_START_MS;
  };
  await findLaw("L6.10").run({ ...harness, traits, restart });
});
