// One of two processes that sell the same thing. It reads under a lock, tells what it read, waits for
// a word, and sells. The test that gives the word can stop the process for longer than its lease.
import { connect, HoldfastError } from "holdfast";
import pg from "pg";
import { RECIPES } from "./recipes.js";

/** What a seller tells: first that it has read, then how it ended. */
export interface Told {
  readonly token: string;
  readonly units?: number;
  /** "sold", the name of the library's error, or another's message. */
  readonly outcome?: string;
  /** Whether the lease was held when the word came. */
  readonly held?: boolean;
}

const [recipe = "", lockUrl = "", dataUrl = "", item = "", buyer = "", ttlMs, idleMs] =
  process.argv.slice(2);
process.on("disconnect", () => process.exit());
const word = new Promise((resolve) => process.once("message", resolve));

const client = new pg.Client({
  connectionString: dataUrl,
  // A holder that stops inside its transaction blocks its successor. The server ends such a session.
  idle_in_transaction_session_timeout: Number(idleMs),
});
// An ended session is told here and by the next query. Without a listener the process would end.
client.on("error", () => {});
await client.connect();
const locks = await connect(lockUrl, { defaults: { label: buyer } });
const lease = await locks.acquire(item, { ttlMs: Number(ttlMs) });
let held = true;

async function pause(units: number): Promise<void> {
  lease.assertHeld(); // The right question and the right answer, at this moment.
  tell({ units });
  await word;
  held = lease.held;
}

const sale = { client, lease, buyer, pause };
const outcome = await RECIPES[recipe as keyof typeof RECIPES](sale).then(
  () => "sold",
  (error: Error) => (error instanceof HoldfastError ? error.name : error.message),
);
tell({ outcome, held });

function tell(told: Omit<Told, "token">): void {
  process.send?.({ token: String(lease.token), ...told } satisfies Told);
}
