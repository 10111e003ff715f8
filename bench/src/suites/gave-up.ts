/**
 * The contender's own time limit ended. This is counted as an answer; other rejections are
 * failures.
 */
export class GaveUp extends Error {
  override readonly name = "GaveUp";
}

/** Acquires again each time the contender gives up, as a user who needs the lock does. */
export async function acquireRepeatedly<T>(
  acquire: () => Promise<T>,
  onGaveUp: () => void,
  stillWanted: () => boolean,
): Promise<T | null> {
  for (;;) {
    try {
      return await acquire();
    } catch (error) {
      if (!(error instanceof GaveUp)) throw error;
      onGaveUp();
      if (!stillWanted()) return null;
    }
  }
}
