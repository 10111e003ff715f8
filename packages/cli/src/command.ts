/** One verb of the command line. Each lives in a file of its own. */
export interface Command {
  /** One line for the list of verbs. */
  readonly summary: string;
  readonly help: string;
  /**
   * Takes the arguments after the verb and returns the exit code. Wrong arguments throw a
   * UsageError.
   */
  run(args: readonly string[]): Promise<number>;
}
