import type { Law, LawGroup } from "./harness.js";
import { abort } from "./laws/abort.js";
import { belief } from "./laws/belief.js";
import { checkAndRevoke } from "./laws/check-and-revoke.js";
import { close } from "./laws/close.js";
import { cost } from "./laws/cost.js";
import { deadWaiters } from "./laws/dead-waiters.js";
import { declaration } from "./laws/declaration.js";
import { exactness } from "./laws/exactness.js";
import { exclusion } from "./laws/exclusion.js";
import { expiry } from "./laws/expiry.js";
import { failure } from "./laws/failure.js";
import { late } from "./laws/late.js";
import { lockDelay } from "./laws/lock-delay.js";
import { names } from "./laws/names.js";
import { order } from "./laws/order.js";
import { release } from "./laws/release.js";
import { renewal } from "./laws/renewal.js";
import { repeat } from "./laws/repeat.js";
import { sharing } from "./laws/sharing.js";
import { stampedes } from "./laws/stampede.js";
import { succession } from "./laws/succession.js";
import { survival } from "./laws/survival.js";
import { tokens } from "./laws/tokens.js";
import { wake } from "./laws/wake.js";

/** The groups of laws by number, each with its text. */
export const groups: readonly LawGroup[] = [
  ...[declaration, exclusion, sharing, succession, expiry, renewal, tokens, repeat, release, names],
  ...[abort, failure, close, order, wake, stampedes, deadWaiters, lockDelay, checkAndRevoke],
  ...[belief, exactness, late, survival, cost],
];

export const laws: readonly Law[] = groups.flatMap((group) => group.laws);
