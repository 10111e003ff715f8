import assert from "node:assert";
import type { Call, Validity } from "../../engine.js";
import { type Client, expectKind, type Held } from "../client.js";
import { law } from "../law.js";
import { elapse } from "../timing.js";

/** How long ago a call pretends to have started: far more than any rounding. */
const AGO_MS = 120;

const HOUR_MS = 3_600_000;
/** Time between the start of a law's first call and its last, with a margin for a busy machine. */
const LAW_MS = 5_000;

/** No later than the call, and plausible: the other clock differs by an hour. */
function inItsOwnTime(call: Call, validity: Validity): void {
  countsFrom(call, validity);
  const earlyMs = call.startedAt - validity.since;
  assert(earlyMs < LAW_MS, `validity counts from ${earlyMs.toFixed(0)} ms before the call`);
}

function countsFrom(call: Call, validity: Validity): void {
  const lateMs = validity.since - call.startedAt;
  assert(lateMs <= 0, `validity counts from ${lateMs.toFixed(1)} ms after the call started`);
  assert(validity.ttlMs > 0, "an answer that is good for nothing is no grant");
}

/** Long enough to notice a heartbeat that only claims a fresh ttl and sets none. */
async function laterAndStillHonest(client: Client, held: Held, validity: Validity) {
  await client.outlastedByBackend(held, validity);
  await elapse(AGO_MS);
  const call = client.call(AGO_MS / 2);
  const again = expectKind(
    await client.heartbeat(held.claim, call),
    "granted",
    "a repeated heartbeat",
  );
  assert.equal(again.token, held.token, "a heartbeat changes no token");
  countsFrom(call, again);
  await client.outlastedByBackend(held, again);
}

export const validityLaws = [
  law("L4.9", "an acquired grant counts from the start of its call", [], async (s) => {
    const a = await s.client();
    const claim = a.claim(s.resource());
    const call = a.call(AGO_MS);
    const granted = expectKind(await a.try(claim, call), "granted", "a free resource");
    countsFrom(call, granted);
    await a.outlastedByBackend({ claim, granted, token: granted.token }, granted);
    // A grant with less than its ttl would be lost before anybody expects it.
    if (s.traits.expiry === "ttl") assert(granted.ttlMs >= claim.ttlMs - s.traits.ttl.stepMs);
  }),

  law("L4.10", "a renewal counts from the start of its call", [], async (s) => {
    const a = await s.client();
    const held = await a.take(s.resource());
    for (const ttlMs of [s.ttl(30_000), s.ttl(90_000), s.ttl(5_000)]) {
      const call = a.call(AGO_MS);
      const renewed = expectKind(await a.renew(held.claim, ttlMs, call), "renewed", "a live grant");
      countsFrom(call, renewed);
      await a.outlastedByBackend(held, renewed);
      if (s.traits.expiry === "ttl") assert(renewed.ttlMs >= ttlMs - s.traits.ttl.stepMs);
    }
  }),

  law(
    "L4.11",
    "a repeated claim is valid for no longer than the backend keeps the grant",
    [],
    async (s) => {
      const a = await s.client();
      const held = await a.take(s.resource());
      await elapse(AGO_MS);
      const call = a.call(AGO_MS / 2);
      const again = expectKind(await a.try(held.claim, call), "granted", "the same grantId");
      countsFrom(call, again);
      await a.outlastedByBackend(held, again);
    },
  ),

  law(
    "L4.12",
    "a grant given by enqueue counts from the start of its call",
    ["queue"],
    async (s) => {
      const a = await s.client();
      const claim = a.claim(s.resource());
      const call = a.call(AGO_MS);
      const granted = expectKind(await a.enqueue(claim, call), "granted", "a free resource");
      countsFrom(call, granted);
      const held = { claim, granted, token: granted.token };
      await laterAndStillHonest(a, held, granted);
      const late = a.call(AGO_MS / 2);
      const again = expectKind(await a.enqueue(claim, late), "granted", "the same grantId");
      countsFrom(late, again);
      await a.outlastedByBackend(held, again);
    },
  ),

  law(
    "L4.13",
    "a grant given by heartbeat counts from the start of the heartbeat or earlier",
    ["queue"],
    async (s) => {
      const [a, b] = await s.clients(2);
      const resource = s.resource();
      await a!.take(resource, { ttlMs: s.lifeMs });
      const claim = await b!.wait(resource);
      await s.expire(resource, s.lifeMs, a!);
      const call = b!.call(2);
      const granted = expectKind(
        await b!.heartbeat(claim, call),
        "granted",
        "the head after an expiry",
      );
      countsFrom(call, granted);
      await laterAndStillHonest(b!, { claim, granted, token: granted.token }, granted);
    },
  ),

  law(
    "L4.14",
    "a pushed grant is valid for no longer than the backend keeps it",
    ["queue"],
    async (s) => {
      const [a, b] = await s.clients(2);
      const resource = s.resource();
      const first = await a!.take(resource);
      const claim = await b!.wait(resource);
      await elapse(AGO_MS);
      await a!.releaseHeld(first.claim);
      await elapse(AGO_MS);
      const granted = b!.pushed.get(claim.grantId);
      // A push is optional. Without one, the next heartbeat returns the grant.
      if (granted !== undefined) {
        await b!.outlastedByBackend({ claim, granted, token: granted.token }, granted);
      }
      const held = await b!.untilGranted(claim);
      if (granted !== undefined)
        assert.equal(held.token, granted.token, "push and heartbeat agree");
      await laterAndStillHonest(b!, held, held.granted);
    },
  ),

  law(
    "L4.15",
    "a grant found by withdrawing is valid for no longer than the backend keeps it",
    ["queue"],
    async (s) => {
      const [a, b] = await s.clients(2);
      const resource = s.resource();
      const first = await a!.take(resource);
      const claim = await b!.wait(resource);
      await a!.releaseHeld(first.claim);
      await elapse(AGO_MS);
      const call = b!.call(AGO_MS / 2);
      const granted = expectKind(
        await b!.withdraw(claim, call),
        "granted",
        "one that came too late",
      );
      countsFrom(call, granted);
      await b!.outlastedByBackend({ claim, granted, token: granted.token }, granted);
    },
  ),

  law(
    "L4.16",
    "through the API, a lease's life does not count from the start of its wait",
    [],
    async (s) => {
      const [holder, locks] = [await s.client(), await s.locks()];
      // A busy machine can lose a short lease in any engine. An engine that counts from the wrong
      // moment loses every lease, no matter how long it is.
      let said = "";
      for (const wantedMs of [400, 1_000, 2_500, 5_000]) {
        const resource = s.resource();
        const ttlMs = s.ttl(wantedMs);
        const held = await holder.take(resource);
        const acquiring = locks.acquire(resource, { ttlMs, waitMs: 60_000, fair: "strict" });
        await elapse(ttlMs * 1.2);
        await holder.releaseHeld(held.claim);
        const lease = await acquiring;
        said = "granted, and lost already";
        if (!lease.held || lease.remainingMs() <= 0) continue;
        await elapse(ttlMs * 1.2);
        said = "renewed from the first moment on";
        if (lease.held) return;
      }
      assert.fail(said);
    },
    90_000,
  ),

  law("L4.17", "clients with different clocks agree on the holder", [], async (s) => {
    const [a, b] = await s.clients(2);
    for (const offsetMs of [-HOUR_MS, HOUR_MS]) {
      const resource = s.resource();
      const held = await a!.take(resource);
      const other = b!.claim(resource);
      const early = await b!.try(other, b!.call(offsetMs));
      expectKind(early, "busy", "a claim of a client with another clock");
      expectKind(await a!.renew(held.claim), "renewed", "a holder beside another clock");
      await a!.releaseHeld(held.claim);
      const call = b!.call(offsetMs);
      const granted = expectKind(await b!.try(other, call), "granted", "a free resource");
      inItsOwnTime(call, granted);
      await a!.refused(resource);
      const again = b!.call(offsetMs);
      const renewed = await b!.renew(other, other.ttlMs, again);
      inItsOwnTime(again, expectKind(renewed, "renewed", "a live grant"));
      await a!.refused(resource);
    }
  }),

  law("L4.18", "a waiter is granted in the time of its own clock", ["queue"], async (s) => {
    const [a, b] = await s.clients(2);
    for (const offsetMs of [-HOUR_MS, HOUR_MS]) {
      const resource = s.resource();
      const held = await a!.take(resource);
      const claim = b!.claim(resource);
      const first = b!.call(offsetMs);
      expectKind(await b!.enqueue(claim, first), "queued", "a waiter");
      expectKind(
        await b!.heartbeat(claim, b!.call(offsetMs)),
        "queued",
        "a waiter behind a live holder",
      );
      await a!.releaseHeld(held.claim);
      await elapse(20);
      const pushed = b!.pushed.get(claim.grantId);
      const call = b!.call(offsetMs);
      if (pushed) inItsOwnTime(call, pushed);
      inItsOwnTime(call, expectKind(await b!.heartbeat(claim, call), "granted", "the head"));
      await a!.refused(resource);
    }
  }),
];
