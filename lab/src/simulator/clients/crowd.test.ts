// Contenders for one resource in virtual time. No message is lost, so this measures speed and
// fairness.
import assert from "node:assert/strict";
import { test } from "node:test";
import { playCrowd } from "./crowd.js";

const CROWDS = [
  { contenders: 3, rttMs: 0.5, holdMs: 20, restMs: 0 },
  { contenders: 20, rttMs: 2, holdMs: 20, restMs: 0 },
  { contenders: 20, rttMs: 2, holdMs: 2, restMs: 20 },
  { contenders: 20, rttMs: 20, holdMs: 2, restMs: 50 },
  { contenders: 50, rttMs: 2, holdMs: 2, restMs: 20 },
  { contenders: 50, rttMs: 20, holdMs: 2, restMs: 50 },
];
const MOST_OF_IDEAL = 1.6;

for (const crowd of CROWDS) {
  const { contenders, rttMs, holdMs, restMs } = crowd;
  const rest = restMs === 0 ? "come back at once" : `rest for up to ${restMs} ms`;
  test(`${contenders} contenders ${rttMs} ms away that ${rest} are served fairly and without delay`, (t) => {
    const report = playCrowd({ seed: 1, nodes: 5, forMs: 20_000, ...crowd });
    const { msPerGrant, scripts, fewest, most } = report;
    t.diagnostic(
      `${msPerGrant.toFixed(1)} ms a grant, ${scripts.toFixed(1)} scripts a node and grant, ${fewest} to ${most} grants each`,
    );
    assert.ok(fewest > 0 && most <= 2 * fewest, `${fewest} to ${most} grants each`);
    // A release and its notification, a claim and its answer, and the holding.
    assert.ok(msPerGrant <= MOST_OF_IDEAL * (2 * rttMs + holdMs), `${msPerGrant} ms a grant`);
  });
}
