import { isOfOtherBoot, isProvenDead } from "../file/process-identity.js";
import { remainingPresenceMs } from "./liveness.js";
import { identityOf, type PeerRow } from "./rows.js";
import type { Statements } from "./statements.js";

/** Shorter than a head's heartbeat, so that each of them asks anew whether the holder lives. */
const PROOF_EVERY_MS = 100;
const MAX_ALIVE_AT = 1_000;

/** The engines that use the file: who is there, who is proven dead, and whose bell to ring. */
export class Peers {
  /** WakeFiles to ring once the transaction is committed. */
  readonly toWake = new Set<number>();
  readonly #statements: Statements;
  readonly #aliveAt = new Map<string, number>();

  constructor(statements: Statements) {
    this.#statements = statements;
  }

  /** Says that this engine is there, and where its bell hangs. */
  recordHeartbeat(wakeFile: number | null): void {
    const { boot, pidNamespace, pid, started, frame } = this.#statements.identity;
    const { self, now } = this.#statements;
    this.#statements.run("peerBeat", self, boot, pidNamespace, pid, started, wakeFile, frame, now);
  }

  /** Leaves no trace of this engine but the grants that it still holds. */
  leave(): void {
    this.#statements.run("peerLeaveQueue", this.#statements.self);
    this.#statements.run("peerForget", this.#statements.self);
  }

  find(peer: string): PeerRow | null {
    return this.#statements.get<PeerRow>("peerFind", peer);
  }

  isDead(peer: string): boolean {
    if (peer === this.#statements.self || this.#wasJustAlive(peer)) return false;
    const row = this.find(peer);
    return row !== null && this.#isProvenDead(row);
  }

  /** The peer of a waiter that is still there: not proven dead, and heard of lately. */
  present(peer: string): PeerRow | null {
    const row = this.find(peer);
    if (row === null || peer === this.#statements.self) return row;
    if (!this.#wasJustAlive(peer) && this.#isProvenDead(row)) return null;
    return remainingPresenceMs(this.#statements, row) > 0 ? row : null;
  }

  wake({ bell }: PeerRow): void {
    if (bell !== null) this.toWake.add(bell);
  }

  /** Takes the dead out of all lines, then does `between`, then forgets them. */
  sweep(between: () => void): void {
    const gone = this.#statements.all<PeerRow>("peersAll").filter((peer) => this.#isGone(peer));
    for (const peer of gone) this.#statements.run("peerLeaveQueue", peer.id);
    between();
    for (const peer of gone) this.#statements.run("peerForget", peer.id);
  }

  /** Of another boot nothing is proven, so its silence is waited out before it is believed. */
  #isGone(row: PeerRow): boolean {
    const [other, { identity }] = [identityOf(row), this.#statements];
    if (isProvenDead(other, identity)) return true;
    return isOfOtherBoot(other, identity) && remainingPresenceMs(this.#statements, row) <= 0;
  }

  /** Asking the system takes as long as all the rest of a transaction; once in a while is enough. */
  #isProvenDead(row: PeerRow): boolean {
    if (isProvenDead(identityOf(row), this.#statements.identity)) return true;
    if (this.#aliveAt.size >= MAX_ALIVE_AT) this.#aliveAt.clear();
    this.#aliveAt.set(row.id, this.#statements.now);
    return false;
  }

  #wasJustAlive(peer: string): boolean {
    return this.#statements.now - (this.#aliveAt.get(peer) ?? -Infinity) < PROOF_EVERY_MS;
  }
}
