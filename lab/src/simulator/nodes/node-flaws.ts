/** Deliberate mistakes of a node. The simulator must find each of them. */
export interface NodeFlaws {
  readonly raisesEqual?: boolean;
  readonly renewalCreates?: boolean;
  readonly ignoresTombstones?: boolean;
  readonly certifiesWithoutNonce?: boolean;
  readonly certifiesAnyLife?: boolean;
  /** A repeated claim gets only what is left of its first ttl. */
  readonly repeatsGiveNoLife?: boolean;
  readonly renewsAsTheyArrive?: boolean;
  readonly keepsNoLockDelay?: boolean;
  readonly certifiesEmptiedWithoutNonce?: boolean;
  readonly certifiesLapsedWithoutNonce?: boolean;
  /** The clock does not stand in for a counter that was forgotten. */
  readonly trustsNoClock?: boolean;
  readonly joinsPastAnyCounter?: boolean;
  /**
   * A grant joins by the rule of a claim: its fence must exceed the counter, even one that it set
   * itself.
   */
  readonly joinsAboveOnly?: boolean;
  readonly tombstonesMs?: number;
  /** A release by an older call ends an attempt that a newer call has taken over. */
  readonly endsNewerCalls?: boolean;
}
