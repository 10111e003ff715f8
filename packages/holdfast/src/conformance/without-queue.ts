import assert from "node:assert";
import type { Mode } from "../engine.js";
import type { Client } from "./client.js";
import type { Excuse, Harness } from "./harness.js";
import { LawContext } from "./law-context.js";

/** The laws about the order of waiters that apply to engines without a queue, too. */
export type OrderLaw = "L2.13" | "L13.10";

const WITNESSES: Readonly<Record<OrderLaw, (context: LawContext) => Promise<void>>> = {
  "L2.13": async (s) => {
    const [reader, writer, later] = await s.clients(3);
    const resource = s.resource();
    await granted(reader!, resource, "shared");
    await busy(writer!, resource);
    const { kind } = await later!.try(later!.claim(resource, { mode: "shared" }));
    assert.equal(kind, "busy", "a writer has waited for longer");
  },
  "L13.10": async (s) => {
    const [holder, early, late] = await s.clients(3);
    const resource = s.resource();
    const { grantId } = await granted(holder!, resource, "exclusive");
    await busy(early!, resource);
    await holder!.release({ resource, grantId });
    const { kind } = await late!.try(late!.claim(resource));
    assert.equal(kind, "busy", "somebody else has waited for longer");
  },
};

/** The excuses of an engine without a queue, with their witnesses: a later claim is granted. */
export function withoutQueue(why: string, ...laws: readonly OrderLaw[]): Excuse[] {
  return laws.map((law) => ({
    law,
    why,
    async witness(harness: Harness) {
      const context = new LawContext(harness);
      try {
        await WITNESSES[law](context);
      } finally {
        await context.tearDown();
      }
    },
  }));
}

// What comes before the overtaking must succeed. If it fails, that is no proof, and so no assertion.

async function granted(client: Client, resource: string, mode: Mode): Promise<{ grantId: string }> {
  const claim = client.claim(resource, { mode });
  const { kind } = await client.try(claim);
  if (kind !== "granted") throw new Error(`a claim on a free resource was answered with ${kind}`);
  return claim;
}

async function busy(client: Client, resource: string): Promise<void> {
  const { kind } = await client.try(client.claim(resource));
  if (kind !== "busy") throw new Error(`a claim on a held resource was answered with ${kind}`);
}
