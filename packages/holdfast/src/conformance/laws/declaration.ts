import assert from "node:assert";
import { type LawGroup, traitsOf } from "../harness.js";
import { law } from "../law.js";

export const declaration: LawGroup = {
  id: "L0",
  name: "declaration",
  text:
    "The harness declares what the engine declares, so that no law is left out that the engine " +
    "could keep, and the engine's traits are consistent.",
  laws: [
    law("L0.1", "the harness declares what the engine offers", [], async (s) => {
      const engine = await s.engine();
      const declared = s.harness.traits;
      if (declared) assert.deepEqual(engine.traits, declared);
      assert.equal(Boolean(engine.queue), s.harness.queue !== false, "whether there is a queue");
      assert.equal(Boolean(engine.watch), s.harness.watch !== false, "whether there is a watch");
      const { modes, limits, lockDelay, tokenRange } = traitsOf(s.harness);
      const offered = engine.traits;
      assert.deepEqual([...offered.modes].sort(), [...modes].sort());
      assert.deepEqual([offered.limits, offered.lockDelay], [limits, lockDelay]);
      assert.equal(offered.tokenRange >= 2, tokenRange >= 2);
    }),

    law("L0.2", "the traits are consistent", [], async (s) => {
      const { name, traits } = await s.engine();
      const { ttl, modes, limits, tokenRange } = traits;
      assert(name.length > 0);
      assert(ttl.minMs >= 1 && ttl.stepMs >= 1 && ttl.maxMs >= ttl.minMs);
      assert(modes.includes("exclusive"), "exclusive is the one mode that every engine has");
      assert(!limits || modes.includes("shared"), "a limit is a limit of shared claims");
      assert(Number.isInteger(tokenRange) && tokenRange >= 1 && tokenRange <= 1024);
    }),
  ],
};
