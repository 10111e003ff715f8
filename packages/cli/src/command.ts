/** One verb of the command line. Each lives in a file of its own. */
export interface Command {
  /** One line for the list of verbs. */
  readonly summary: string;
  readonly help: string;
  /** Gets what follows the verb, gives the exit code. Mistakes of the caller are UsageErrors. */
  run(args: readonly string[]): Promise<number>;
}
