// Ways to sell the last unit under a lock. All read, take their time, and write what follows from what
// they read. Two are right; the others sell what is not there. sellers.test.ts plays them.
import type { ClientBase } from "pg";
import { fencedOut, type Held } from "./mark.js";
import { register, transaction } from "./postgres.js";

export const TABLES = `
  CREATE TABLE stock (item text PRIMARY KEY, units int NOT NULL, token bigint NOT NULL DEFAULT 0);
  CREATE TABLE sales (item text NOT NULL, buyer text NOT NULL)`;

export interface Sale {
  readonly client: ClientBase;
  readonly lease: Held;
  readonly buyer: string;
  /** Whatever takes time: a payment, a long garbage collection, a machine that is moved. */
  pause(units: number): Promise<void>;
}

async function noCheck({ client, lease, buyer, pause }: Sale): Promise<void> {
  const units = await unitsOf(client, lease.resource);
  await pause(units);
  await atomically(client, () => take(client, lease.resource, units, buyer));
}

/** Compares with the last write. It cannot see a successor that has read and not yet written. */
async function checkAtTheWrite({ client, lease, buyer, pause }: Sale): Promise<void> {
  const { resource, token } = lease;
  const units = await unitsOf(client, resource);
  await pause(units);
  await atomically(client, async () => {
    const { rowCount } = await client.query(
      "UPDATE stock SET token = $2 WHERE item = $1 AND token <= $2",
      [resource, String(token)],
    );
    if (rowCount === 0) throw fencedOut(lease);
    await take(client, resource, units, buyer);
  });
}

/** Registers too late: what it read before that was not protected. */
async function registerAtTheWrite({ client, lease, buyer, pause }: Sale): Promise<void> {
  const { resource, token } = lease;
  const units = await unitsOf(client, resource);
  await pause(units);
  // As if the pause had come right after the look at the clocks, which is as likely as here.
  await register(client, { resource, token, assertHeld: () => {} });
  await transaction(client, lease, () => take(client, resource, units, buyer));
}

async function registerBeforeTheRead({ client, lease, buyer, pause }: Sale): Promise<void> {
  const { resource } = lease;
  // #region right
  await register(client, lease); // 1. register: from here on, older holders are refused
  const units = await unitsOf(client, resource); // 2. read
  await pause(units); // whatever happens here, and however long it takes
  await transaction(client, lease, async () => {
    await take(client, resource, units, buyer); // 3. in one transaction: check, write
  });
  // #endregion
}

/** Right as well. The pause comes where it hurts others most, between the check and the commit. */
async function pauseInTheTransaction({ client, lease, buyer, pause }: Sale): Promise<void> {
  const { resource } = lease;
  await register(client, lease);
  const units = await unitsOf(client, resource);
  await transaction(client, lease, async () => {
    await pause(units);
    await take(client, resource, units, buyer);
  });
}

export const RECIPES = {
  noCheck,
  checkAtTheWrite,
  registerAtTheWrite,
  registerBeforeTheRead,
  pauseInTheTransaction,
} as const;

async function unitsOf(client: ClientBase, item: string): Promise<number> {
  const { rows } = await client.query("SELECT units FROM stock WHERE item = $1", [item]);
  return rows[0].units;
}

async function take(client: ClientBase, item: string, units: number, buyer: string) {
  if (units === 0) throw new Error("sold out");
  await client.query("UPDATE stock SET units = $2 WHERE item = $1", [item, units - 1]);
  await client.query("INSERT INTO sales (item, buyer) VALUES ($1, $2)", [item, buyer]);
}

/** A transaction without a check. */
async function atomically(client: ClientBase, work: () => Promise<void>): Promise<void> {
  await client.query("BEGIN");
  try {
    await work();
    await client.query("COMMIT");
  } catch (error) {
    await client.query("ROLLBACK");
    throw error;
  }
}
