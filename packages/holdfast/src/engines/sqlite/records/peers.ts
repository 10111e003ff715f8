import { isOfOtherBoot, isProvenDead } from "../file/process-identity.js";
import { remainingPresenceMs } from "./liveness.js";
import { identityOf, type PeerRow } from "./rows.js";
import type { Statements } from "./statements.js";

/**
 * Shorter than the head's heartbeat interval, so each of its heartbeats checks the holder again.
 */
const PROOF_EVERY_MS = 100;
const MAX_ALIVE_AT = 1_000;

/** The engines that use the file: which are present, which are proven dead, and which to wake. */
export class Peers {
  /** Numbers of the wake files to write to after the transaction is committed. */
  readonly toWake = new Set<number>();
  readonly #statements: Statements;
  readonly #aliveAt = new Map<string, number>();

  constructor(statements: Statements) {
    this.#statements = statements;
  }

  /** Records that this engine is present, and the number of its wake file. */
  recordHeartbeat(wakeFile: number | null): void {
    const { boot, pidNamespace, pid, started, frame } = this.#statements.identity;
    const { self, now } = this.#statements;
    this.#statements.run("peerBeat", self, boot, pidNamespace, pid, started, wakeFile, frame, now);
  }

  /** Removes this engine's waiters, and its own row unless it still holds grants. */
  leave(): void {
    this.#remove([this.#statements.self], () => {});
  }

  find(peer: string): PeerRow | null {
    return this.#statements.get<PeerRow>("peerFind", peer);
  }

  isDead(peer: string): boolean {
    if (peer === this.#statements.self || this.#wasJustAlive(peer)) return false;
    const row = this.find(peer);
    return row !== null && this.#isProvenDead(row);
  }

  /** The peer if it is present: not proven dead, and with a recent heartbeat. */
  present(peer: string): PeerRow | null {
    const row = this.find(peer);
    if (row === null || peer === this.#statements.self) return row;
    if (!this.#wasJustAlive(peer) && this.#isProvenDead(row)) return null;
    return remainingPresenceMs(this.#statements, row) > 0 ? row : null;
  }

  wake({ bell }: PeerRow): void {
    if (bell !== null) this.toWake.add(bell);
  }

  /**
   * The peers whose processes are proven dead. Asking the system about each takes as long as a
   * transaction, so this runs before a sweep begins its own. Death is final.
   */
  provenDead(): ReadonlySet<string> {
    const { identity } = this.#statements;
    const rows = this.#statements.all<PeerRow>("peersAll");
    const dead = rows.filter((row) => isProvenDead(identityOf(row), identity));
    return new Set(dead.map(({ id }) => id));
  }

  /** Removes dead peers from all queues, then runs `between`, then deletes their rows. */
  sweep(dead: ReadonlySet<string>, between: () => void): void {
    const gone: string[] = [];
    for (const row of this.#statements.all<PeerRow>("peersAll")) {
      if (dead.has(row.id) || this.#isOfOldBoot(row)) gone.push(row.id);
      else this.#rememberAlive(row.id);
    }
    this.#remove(gone, between);
  }

  #remove(peers: readonly string[], between: () => void): void {
    const list = JSON.stringify(peers);
    if (peers.length > 0) this.#statements.run("peersLeaveQueue", list);
    between();
    if (peers.length > 0) this.#statements.run("peersForget", list);
  }

  /**
   * A peer of another boot cannot be proven dead, so it is gone only after a time without
   * heartbeats.
   */
  #isOfOldBoot(row: PeerRow): boolean {
    const isOther = isOfOtherBoot(identityOf(row), this.#statements.identity);
    return isOther && remainingPresenceMs(this.#statements, row) <= 0;
  }

  /**
   * Asking the system takes as long as the rest of a transaction, so "alive" is remembered for a
   * while.
   */
  #isProvenDead(row: PeerRow): boolean {
    if (isProvenDead(identityOf(row), this.#statements.identity)) return true;
    this.#rememberAlive(row.id);
    return false;
  }

  #rememberAlive(peer: string): void {
    if (this.#aliveAt.size >= MAX_ALIVE_AT) this.#aliveAt.clear();
    this.#aliveAt.set(peer, this.#statements.now);
  }

  #wasJustAlive(peer: string): boolean {
    return this.#statements.now - (this.#aliveAt.get(peer) ?? -Infinity) < PROOF_EVERY_MS;
  }
}
