import type { NodeAnswer } from "holdfast/internal/quorum";
import type { NodeFlaws } from "./node-flaws.js";
import type { NodeMemory } from "./node-memory.js";

/** What a client says about the node that it certifies. */
interface Certification {
  readonly runId: string;
  readonly replId: string;
  readonly nonce: string;
}

/**
 * The life of a node, which a restart or a resync ends. A certificate belongs to one life, and to
 * what clients agreed on. Only a client that knows that the node forgot nothing may certify it.
 */
export class NodeLife {
  readonly #flaws: NodeFlaws;
  #runId: string;
  #replId: string;
  #agreement: string;
  #certificate: string | null = null;

  constructor(runId: string, replId: string, agreement: string, flaws: NodeFlaws) {
    this.#runId = runId;
    this.#replId = replId;
    this.#agreement = agreement;
    this.#flaws = flaws;
  }

  get runId(): string {
    return this.#runId;
  }

  get replId(): string {
    return this.#replId;
  }

  /** The text of a valid certificate of this life. */
  get certificate(): string {
    this.#certificate ??= `${this.#runId} ${this.#replId} ${this.#agreement}`;
    return this.#certificate;
  }

  /** Starts another life. */
  begin(runId: string, replId: string): void {
    this.#runId = runId;
    this.#replId = replId;
    this.#certificate = null;
  }

  /** The next request comes from a client with this agreement. */
  agree(agreement: string): void {
    if (agreement !== this.#agreement) this.#certificate = null;
    this.#agreement = agreement;
  }

  /** Why a node with this memory must not answer; null if its certificate is valid. */
  objection(memory: NodeMemory): NodeAnswer | null {
    if (this.#agreement === "") return null;
    const { certificate, nonce } = memory;
    if (certificate === this.certificate) return null;
    const life = `${this.#runId} ${this.#replId} `;
    if (certificate?.startsWith(life)) {
      return { kind: "terms", terms: certificate.slice(life.length) };
    }
    const [runId, replId] = [this.#runId, this.#replId];
    return { kind: "uncertified", runId, replId, nonce, lapsed: certificate !== null };
  }

  /** Stores the first nonce, with which a client certifies the node later. */
  mark(memory: NodeMemory, nonce: string): NodeAnswer {
    const why = this.objection(memory);
    if (why === null) return { kind: "certified" };
    if (why.kind !== "uncertified") return why;
    memory.nonce ??= nonce;
    return { ...why, nonce: memory.nonce };
  }

  certify(memory: NodeMemory, { runId, replId, nonce }: Certification): NodeAnswer {
    const why = this.objection(memory);
    if (why === null) return { kind: "certified" };
    if (why.kind !== "uncertified") return why;
    const { certifiesAnyLife } = this.#flaws;
    const certifiesWithoutNonce =
      this.#flaws.certifiesWithoutNonce ||
      (why.lapsed
        ? this.#flaws.certifiesLapsedWithoutNonce
        : this.#flaws.certifiesEmptiedWithoutNonce);
    const sameLife = certifiesAnyLife || (runId === this.#runId && replId === this.#replId);
    const sameNonce =
      certifiesWithoutNonce || certifiesAnyLife || (why.nonce !== null && why.nonce === nonce);
    if (!sameLife || !sameNonce) return why;
    memory.certificate = this.certificate;
    memory.nonce = null;
    return { kind: "certified" };
  }
}
