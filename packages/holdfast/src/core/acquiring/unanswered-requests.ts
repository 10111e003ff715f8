/**
 * The requests for one grantId that may still be on their way: their answers were lost, or have not
 * come yet. While there are any, the release must leave a tombstone, or a straggler becomes an orphan.
 */
export class UnansweredRequests {
  lost = false;
  unanswered = 0;
  #over = false;

  get exist(): boolean {
    return this.lost || this.unanswered > 0;
  }

  /** Whether nobody wants the grant any more: one that is told of from then on is nobody's. */
  get isOver(): boolean {
    return this.#over;
  }

  end(): void {
    this.#over = true;
  }
}

/** Nothing is under way and nothing was lost. That stays so, so all such grants share it. */
export const NONE_UNANSWERED: UnansweredRequests = new UnansweredRequests();
