import { HoldfastError } from "../../../errors.js";

const MOST_CAUSES = 4;
// A server that does not know a command quotes its arguments. Those of HELLO include the password.
const QUOTED = /, with args beginning with:[^\n]*/g;

/**
 * A copy of a client's error that may be shown. Clients add the whole command to their errors, with
 * grantIds and passwords. The copy keeps only name, message, stack, code and causes.
 */
export function clientError(error: unknown, depth = 0): Error {
  if (error instanceof HoldfastError) return error;
  if (!(error instanceof Error)) return new Error(withoutArguments(String(error)));
  const { name, message, stack, code, cause, lastNodeError } = error as ClientError;
  const because = depth < MOST_CAUSES ? (cause ?? lastNodeError) : undefined;
  const copy = new Error(
    withoutArguments(message),
    because === undefined ? {} : { cause: clientError(because, depth + 1) },
  );
  // Not enumerable, as on every error. Otherwise inspect would show the name twice.
  Object.defineProperty(copy, "name", { value: name, configurable: true, writable: true });
  copy.stack = withoutArguments(stack ?? `${name}: ${message}`);
  return typeof code === "string" ? Object.assign(copy, { code }) : copy;
}

type ClientError = Error & {
  /** Set by Node.js where a connection could not be made. */
  readonly code?: unknown;
  /** Set by an ioredis Cluster: the error of the node that it asked last. */
  readonly lastNodeError?: unknown;
};

function withoutArguments(text: string): string {
  return text.replace(QUOTED, "");
}
