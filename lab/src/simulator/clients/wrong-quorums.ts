import { Quorum } from "holdfast/internal/quorum";

type TakeBack = Parameters<Quorum["takeBack"]>;

/** Each of several calls about one claim decides and gives up for all of them. */
class Outspoken extends Quorum {
  override speaksFor(): boolean {
    return true;
  }
}

/** Never releases on the first node what was given up. */
class Forgetful extends Quorum {
  override takeBack(...[entry, nodes, restMs, then]: TakeBack): void {
    super.takeBack(entry, nodes & ~1, restMs, then);
  }
}

/** Does not release what is accepted after it was given up. */
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

/** Counts a node whose clock was set like any other. */
class Trusting extends Quorum {
  constructor(...parts: ConstructorParameters<typeof Quorum>) {
    super(...parts);
    this.clockWatch.isSuspect = () => false;
  }
}

/** Certifies nodes although they have other terms. */
class Intruding extends Quorum {
  override mayCertify(): boolean {
    return true;
  }
}

/** Quorum code that is wrong on purpose, each in one way. */
export const wrongQuorums = { Outspoken, Forgetful, Heedless, Trusting, Intruding } as const;
