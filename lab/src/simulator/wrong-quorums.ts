import { Quorum } from "holdfast/quorum/core";

type TakeBack = Parameters<Quorum["takeBack"]>;

/** Of several calls about one claim each judges and gives up for all. */
class Outspoken extends Quorum {
  override speaksFor(): boolean {
    return true;
  }
}

/** What was given up stays on the first node. */
class Forgetful extends Quorum {
  override takeBack(...[entry, nodes, restMs, then]: TakeBack): void {
    super.takeBack(entry, nodes & ~1, restMs, then);
  }
}

/** What is accepted after it was given up stays. */
class Heedless extends Quorum {
  readonly #givenUp = new WeakMap<object, number>();

  override takeBack(...[entry, nodes, restMs, then]: TakeBack): void {
    if (this.#givenUp.get(entry) === entry.givenUp) {
      then(true);
      return;
    }
    this.#givenUp.set(entry, entry.givenUp);
    super.takeBack(entry, nodes, restMs, then);
  }
}

/** A node whose clock was set counts like any other. */
class Trusting extends Quorum {
  constructor(...parts: ConstructorParameters<typeof Quorum>) {
    super(...parts);
    this.clockWatch.isSuspect = () => false;
  }
}

/** A client that certifies nodes although they belong to somebody else. */
class Intruding extends Quorum {
  override mayCertify(): boolean {
    return true;
  }
}

/** Clients that are wrong on purpose, each in one way. */
export const wrongQuorums = { Outspoken, Forgetful, Heedless, Trusting, Intruding } as const;
