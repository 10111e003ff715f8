import { systemClock } from "../../../core/runtime/clock.js";
import type {
  Busy,
  Call,
  Claim,
  Engine,
  EngineTraits,
  Failed,
  Gone,
  Granted,
  HolderView,
  ListFilter,
  ListPage,
  Released,
  ReleaseRef,
  Renewed,
  RenewRef,
  ResourceView,
  RevokeRef,
  Sequence,
  WatchFacet,
} from "../../../engine.js";
import { settleEach } from "../../../engine-kit/settle-each.js";
import { EngineError, limitMismatch } from "../../../errors.js";
import { ResourceNodes } from "../claims/resource-node.js";
import { closedEngine, deadlineOf } from "../failure.js";
import { Folder } from "../inspect/folder.js";
import { LAYOUTS } from "../layout.js";
import type { ZookeeperTerms } from "../options.js";
import { hashOf, pathOf } from "../paths.js";
import { TOKEN_RANGE } from "../record.js";
import { prove } from "../session/prove.js";
import { Sessions } from "../session/sessions.js";
import { type Decision, Ledgers, type Reading } from "./ledgers.js";
import { Notifications } from "./notifications.js";
import {
  holdingOf,
  type Ledger,
  signatureOf,
  sizeOf,
  tokenInUse,
  withGrant,
  withGrave,
  withoutGrant,
} from "./record.js";
import { Records } from "./records.js";
import type { Judged } from "./sightings.js";

const DAY_MS = 86_400_000;
/** Who was refused looks again within a second; after a few it has given up. */
const LISTEN_MS = 5_000;
/** A megabyte less what renewals, revocations and tombstones may add to what is there. */
const MOST_BYTES = 900_000;

export const ZOOKEEPER_TTL_TRAITS: EngineTraits = {
  expiry: "ttl",
  ttl: { minMs: 100, maxMs: 365 * DAY_MS, stepMs: 1 },
  modes: ["exclusive", "shared"],
  limits: true,
  lockDelay: true,
  fencing: "durable",
  tokenRange: TOKEN_RANGE,
  leaves: true,
};

/**
 * Locks as records in persistent nodes, with a ttl that clients judge: ZooKeeper as a database that
 * survives its servers. A grant is over when it has stood still for its ttl before an observer's eyes.
 */
export class ZookeeperTtlEngine implements Engine {
  readonly name = "zookeeper";
  readonly traits = ZOOKEEPER_TTL_TRAITS;
  readonly #terms: ZookeeperTerms;
  readonly #sessions: Sessions;
  readonly #ledgers: Ledgers;
  readonly #notifications: Notifications;
  readonly #folder: Folder;
  readonly #listeners = new Set<(resource: string) => void>();
  #closed = false;

  constructor(terms: ZookeeperTerms) {
    this.#terms = terms;
    this.#sessions = new Sessions(terms, () => {});
    this.#folder = new Folder(terms.location, this.#sessions);
    const resourceNodes = new ResourceNodes(LAYOUTS.holdfast, terms.acl);
    this.#ledgers = new Ledgers(new Records(this.#sessions, resourceNodes, terms.acl));
    this.#notifications = new Notifications(this.#sessions, (resource) => {
      for (const listener of this.#listeners) listener(resource);
    });
  }

  /** Resolves when the servers answer. */
  open(withinMs: number): Promise<void> {
    return this.#sessions.ready(withinMs);
  }

  async tryAcquire(claim: Claim, call: Call): Promise<Granted | Busy | Gone> {
    const until = this.#enter(call);
    const { resource, ttlMs } = claim;
    const hash = hashOf(claim.grantId);
    const path = pathOf(this.#terms.location, resource);
    let signature = "";
    let untimed = false;
    const ask = () =>
      this.#ledgers.change(
        path,
        until,
        (reading) => {
          const [said, next] = decide(claim, hash, reading, call);
          signature = signatureOf(next ?? reading.ledger);
          untimed = reading.grants.some((grant) => grant.untimed);
          return [said, next];
        },
        { repeatable: true },
      );
    let answer = await ask();
    if (answer.kind === "busy" && untimed) {
      await this.#ledgers.time(path, until);
      answer = await ask();
    }
    const forMs = answer.kind === "granted" ? ttlMs : LISTEN_MS;
    if (answer.kind !== "gone") this.#notifications.hang(path, resource, forMs, signature);
    return answer;
  }

  async renew(
    grants: readonly RenewRef[],
    call: Call,
  ): Promise<readonly (Renewed | Gone | Failed)[]> {
    const until = this.#enter(call);
    return settleEach(grants, async (ref) => {
      const { resource, ttlMs } = ref;
      const path = pathOf(this.#terms.location, resource);
      let signature = "";
      const answer = await this.#ledgers.change(path, until, (reading) => {
        signature = signatureOf(reading.ledger);
        return renewal(ref, reading, call);
      });
      if (answer.kind === "renewed") this.#notifications.hang(path, resource, ttlMs, signature);
      return answer;
    });
  }

  async release(grants: readonly ReleaseRef[], call: Call) {
    const until = this.#enter(call);
    return settleEach(grants, ({ resource, grantId, tombstoneMs }) => {
      const hash = hashOf(grantId);
      const path = pathOf(this.#terms.location, resource);
      return this.#ledgers.change(path, until, (reading): Decision<Released | Gone> => {
        const buried =
          tombstoneMs > 0 ? withGrave(reading.ledger, hash, tombstoneMs) : reading.ledger;
        const own = alive(reading, hash);
        // An expired grant's lock-delay is not the late holder's to end, and what was left is nobody's.
        if (own === null || own.holding.left) {
          return [goneFrom(reading), tombstoneMs > 0 ? buried : null];
        }
        return [{ kind: "released" }, withoutGrant(buried, hash)];
      });
    });
  }

  async check({ resource, mode, token }: Sequence, call: Call): Promise<boolean> {
    const until = this.#enter(call);
    const path = pathOf(this.#terms.location, resource);
    // Not by the word of a leader that is none any more: somebody writes data by this answer.
    const proof = this.#sessions.on(
      () => this.#sessions.any(),
      (session) => prove(session, path, until),
    );
    const [reading] = await Promise.all([this.#ledgers.read(path, until), proof]);
    const found = reading === null ? null : holderOf(reading, token);
    return found !== null && found.holding.mode === mode && !found.holding.revoked;
  }

  async revoke({ resource, token, force }: RevokeRef, call: Call): Promise<"revoked" | "gone"> {
    const path = pathOf(this.#terms.location, resource);
    return this.#ledgers.change(path, this.#enter(call), (reading) => {
      const found = holderOf(reading, token);
      if (found === null || tokenInUse(found.holding) !== token) return ["gone", null];
      const { hash, holding } = found;
      const next = force
        ? withoutGrant(reading.ledger, hash)
        : withGrant(reading.ledger, hash, { ...holding, revoked: true });
      return ["revoked", next];
    });
  }

  async inspect(resource: string, call: Call): Promise<ResourceView> {
    return this.#inspect(resource, this.#enter(call));
  }

  async list(filter: ListFilter, call: Call): Promise<ListPage> {
    const until = this.#enter(call);
    return this.#folder.list(filter, until, (resource) => this.#inspect(resource, until));
  }

  async close(): Promise<void> {
    this.#closed = true;
    this.#listeners.clear();
    this.#notifications.close();
    this.#folder.forget();
    await this.#sessions.close();
  }

  readonly watch: WatchFacet = {
    onChange: (listener) => {
      this.#listeners.add(listener);
      return () => this.#listeners.delete(listener);
    },
  };

  /** For tests: what there is of a resource is seen, and then seen so much earlier. */
  async age(resource: string, ms: number, call: Call): Promise<void> {
    await this.#inspect(resource, this.#enter(call));
    this.#ledgers.sightings.age(pathOf(this.#terms.location, resource), ms);
  }

  async #inspect(resource: string, until: number): Promise<ResourceView> {
    const reading = await this.#ledgers.read(pathOf(this.#terms.location, resource), until);
    const grants = reading?.grants ?? [];
    const over = grants.filter(({ leftMs }) => leftMs <= 0);
    return {
      resource,
      holders: holdersOf(grants),
      waiters: [],
      closedMs: Math.max(0, ...over.map(({ blocksMs }) => blocksMs)),
    };
  }

  #enter(call: Call): number {
    if (this.#closed) throw closedEngine();
    return deadlineOf(systemClock.now(), call);
  }
}

function decide(
  claim: Claim,
  hash: string,
  reading: Reading,
  { startedAt }: Call,
): Decision<Granted | Busy | Gone> {
  const { ledger, grants } = reading;
  if (ledger.graves.has(hash)) return [{ kind: "gone", why: "unknown" }, null];
  const own = alive(reading, hash);
  if (own?.holding.left) return [{ kind: "gone", why: "unknown" }, null];
  if (own?.holding.revoked) return [{ kind: "gone", why: "revoked" }, null];
  if (own !== null) {
    const holding = { ...own.holding, beat: own.holding.beat + 1 };
    const { tokens, ttlMs } = holding;
    const good = { token: BigInt(holding.token), tokens, since: startedAt, ttlMs };
    return [{ kind: "granted", ...good }, withGrant(ledger, hash, holding)];
  }
  const other = ofOtherLimit(claim, grants);
  if (other !== null && !other.untimed) {
    throw limitMismatch(claim.resource, claim.limit, other.holding.limit);
  }
  if (other !== null || !fits(claim, grants) || Object.hasOwn(ledger.grants, hash)) {
    const retryAfterMs = Math.max(0, Math.min(...grants.map(({ blocksMs }) => blocksMs)));
    return [{ kind: "busy", holders: holdersOf(grants), retryAfterMs }, null];
  }
  const { tokens, ttlMs } = claim;
  const token = reading.takeToken();
  const next = withGrant(ledger, hash, holdingOf(claim, token));
  refuseTooLarge(claim.resource, next);
  return [{ kind: "granted", token, tokens, since: startedAt, ttlMs }, next];
}

/** Before it is sent: a server that is sent too much closes the connection and says nothing. */
function refuseTooLarge(resource: string, next: Ledger): void {
  const bytes = sizeOf(next);
  if (bytes <= MOST_BYTES) return;
  const holders = Object.keys(next.grants).length;
  throw new EngineError(
    `the record of "${resource}" would take ${bytes} bytes with ${holders} holders, and ZooKeeper ` +
      "takes a megabyte (jute.maxbuffer): fewer holders, or shorter labels",
    { effect: "none", retryable: false },
  );
}

function renewal(
  { grantId, ttlMs, index = 0, leave = false }: RenewRef,
  reading: Reading,
  { startedAt: since, order }: Call,
): Decision<Renewed | Gone> {
  const hash = hashOf(grantId);
  const own = alive(reading, hash);
  if (own === null) return [goneFrom(reading), null];
  const { holding } = own;
  if (holding.left && !leave) return [{ kind: "gone", why: "expired" }, null];
  const isNext = index > holding.index;
  if (holding.revoked && !isNext) return [{ kind: "gone", why: "revoked" }, null];
  // A later one was carried out before: what that gave stays as it is.
  if (order < holding.order) return [{ kind: "renewed", since, ttlMs: own.sureMs }, null];
  const { leftAt: _, ...rest } = holding;
  const next = { ...rest, ttlMs, beat: holding.beat + 1, order, left: leave };
  // A revocation was for a holder that has passed its lease on.
  const passedOn = isNext ? { index, revoked: false } : {};
  return [
    { kind: "renewed", since, ttlMs },
    withGrant(reading.ledger, hash, { ...next, ...passedOn }),
  ];
}

function fits({ mode, limit }: Claim, grants: readonly Judged[]): boolean {
  if (grants.length === 0) return true;
  if (mode === "exclusive" || grants.some((g) => g.holding.mode === "exclusive")) return false;
  return grants.length < (limit ?? Infinity);
}

function ofOtherLimit({ mode, limit }: Claim, grants: readonly Judged[]): Judged | null {
  if (mode !== "shared") return null;
  const others = grants.filter(({ holding: h }) => h.mode === "shared" && h.limit !== limit);
  return others.find(({ untimed }) => !untimed) ?? others[0] ?? null;
}

function alive({ grants }: Reading, hash: string): Judged | null {
  return grants.find((grant) => grant.hash === hash && grant.leftMs > 0) ?? null;
}

function holderOf({ grants }: Reading, token: bigint): Judged | null {
  const owns = ({ leftMs, holding }: Judged) => {
    const first = BigInt(holding.token);
    return leftMs > 0 && token >= first && token < first + BigInt(holding.tokens);
  };
  return grants.find(owns) ?? null;
}

function goneFrom({ grants }: Reading): Gone {
  return { kind: "gone", why: grants.some(({ leftMs }) => leftMs > 0) ? "replaced" : "expired" };
}

function holdersOf(grants: readonly Judged[]): HolderView[] {
  const living = grants.filter(({ leftMs }) => leftMs > 0);
  return living.map(({ holding, leftMs }) => {
    const { mode, label, revoked } = holding;
    return { mode, token: tokenInUse(holding), label, remainingMs: leftMs, revoked };
  });
}
