import { init } from "../../init.js";
import { hangFault, relayFaults, relaysTo, restartFault } from "../torture/faults.fixture.js";
import { disposeAll, type Place } from "../torture/place.fixture.js";

const TTL_MS = 1_500;

interface DatabaseServer extends AsyncDisposable {
  readonly url: string;
  readonly port: number;
  pause(): void;
  resume(): void;
  restart(): Promise<void>;
}

/** What the test does to the database without the engine. */
interface Admin {
  readonly truth: Place["truth"];
  /** Ends sessions in the middle of their work, as an operator may. */
  endSessions(): Promise<void>;
  end(): Promise<void>;
}

/** A database, and one relay for each process. */
export async function sqlPlace(server: DatabaseServer, admin: Admin): Promise<Place> {
  await init(server.url);
  const relays = (await relaysTo([server.port])).flat();
  return {
    ttlMs: TTL_MS,
    can: { shared: true, limits: true, lockDelay: true },
    url: (index) => server.url.replace(`:${server.port}/`, `:${relays[index]!.port}/`),
    directUrl: server.url,
    faults: [
      ...relayFaults(relays, TTL_MS * 1.5),
      hangFault(() => server, TTL_MS),
      restartFault(() => server),
      { name: "sessions ended", inflict: () => admin.endSessions() },
    ],
    truth: (resource) => admin.truth(resource),
    async [Symbol.asyncDispose]() {
      await admin.end();
      await disposeAll([server, ...relays]);
    },
  };
}
