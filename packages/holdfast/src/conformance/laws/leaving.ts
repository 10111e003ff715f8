import assert from "node:assert";
import { systemClock } from "../../core/runtime/clock.js";
import { type Client, expectKind } from "../client.js";
import { law } from "../law.js";
import { elapse, within } from "../timing.js";

const LATE_MS = 10_000;

/** Another client gets the resource once the time that was left is over. */
async function opensSoon(client: Client, resource: string): Promise<void> {
  const deadline = systemClock.now() + LATE_MS;
  for (;;) {
    if ((await client.try(client.claim(resource))).kind === "granted") return;
    assert(systemClock.now() < deadline, "a grant that was left must end at its time");
    await elapse(20);
  }
}

export const leavingLaws = [
  law(
    "L4.19",
    "a grant that was left outlives its client, until its time is over",
    ["leave"],
    async (s) => {
      const [a, b] = await s.clients(2);
      const resource = s.resource();
      const leftMs = s.ttl(s.harness.age ? 10_000 : 6_000);
      const { claim } = await a!.take(resource, { ttlMs: s.ttl(60_000) });
      const left = await a!.renew(claim, leftMs, a!.call(), { leave: true });
      expectKind(left, "renewed", "a live grant that is left");
      await within(10_000, a!.engine.close(), "close()");
      await elapse(100);
      await b!.keptOut(resource, "a claim on a resource that was left closed");
      await s.pass(resource, leftMs);
      await opensSoon(b!, resource);
    },
  ),

  law("L4.20", "a grant that was left outlives its process", ["leave", "url"], async (s) => {
    const b = await s.client();
    const resource = s.resource();
    const leftMs = s.ttl(s.harness.age ? 10_000 : 6_000);
    const child = s.child({ resource, options: { ttlMs: leftMs }, does: "once" });
    await child.until("ran");
    assert.equal(await child.exit(20_000), 0);
    await b.refused(resource, {}, "a claim after a run that keeps others out for a while");
    await s.pass(resource, leftMs);
    await opensSoon(b, resource);
  }),

  law(
    "L4.21",
    "a grant that was left can be neither renewed nor acquired again",
    ["leave"],
    async (s) => {
      const a = await s.client();
      const resource = s.resource();
      const { claim } = await a.take(resource);
      const early = a.call();
      const leave = () => a.renew(claim, s.ttl(20_000), a.call(), { leave: true });
      expectKind(await leave(), "renewed", "a live grant that is left");
      expectKind(await leave(), "renewed", "the same once more, as its answer may be lost");
      await a.renew(claim, s.ttl(60_000), early);
      expectKind(await a.renew(claim), "gone", "the renewal of a grant that was left");
      assert.notEqual((await a.try(claim)).kind, "granted", "its acquire, repeated");
      await a.refused(resource, {}, "another claim of the same client");
    },
  ),
];
